// tensorpar/plan/pipeline_codec.hpp - a pipeline as JSON
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/plan/pipeline.hpp>
#include <tensorpar/plan/plan_reader.hpp>

namespace tensorpar::detail {

/// "F2.7": stage 2's forward pass over micro-batch 7; B backward, W weights.
inline std::string code_of(pass_entry const& e) {
  return std::string(1, "FBW"[static_cast<int>(e.what)]) + std::to_string(e.stage) + "." +
         std::to_string(e.micro_batch);
}

inline core::json encode_pipeline(pipeline const& p) {
  core::json r = core::json::object(), groups = core::json::array(), stages = core::json::array(),
      schedule = core::json::array();
  r["mini_batch"] = p.mini_batch;
  r["unit"] = p.unit;
  for (device_range const& g : p.groups) groups.push_back({{"first", g.first}, {"count", g.count}});
  for (pipeline_stage const& s : p.stages) {
    core::json x = core::json::object();
    x["nodes"] = s.nodes;
    x["group"] = s.group;
    x["micro_batch"] = s.micro_batch;
    x["k"] = s.k;
    x["split_backward"] = s.split_backward;
    x["recompute"] = s.recompute;
    x["shard_optimizer"] = s.shard_optimizer;
    stages.push_back(std::move(x));
  }
  for (auto const& o : p.schedule) {
    core::json x = core::json::array();
    for (pass_entry const& e : o) x.push_back(code_of(e));
    schedule.push_back(std::move(x));
  }
  r["groups"] = std::move(groups);
  r["stages"] = std::move(stages);
  r["schedule"] = std::move(schedule);
  return r;
}

/// Indices and sizes within bounds; whether stages partition the operators and orders can run is asked when
/// the plan is expanded.
inline pipeline decode_pipeline(plan_reader const& r, int operators, int devices) {
  r.object({"mini_batch", "unit", "groups", "stages", "schedule"});
  pipeline p;
  p.mini_batch = r["mini_batch"].integer(1, i64{1} << 40);
  p.unit = r["unit"].integer(1, p.mini_batch);
  plan_reader const groups = r["groups"], stages = r["stages"], schedule = r["schedule"];
  for (std::size_t i = 0, n = groups.array(1, idx(devices)); i < n; ++i) {
    groups[i].object({"first", "count"});
    int const first = groups[i]["first"].bounded(0, devices - 1);
    p.groups.push_back({first, groups[i]["count"].bounded(1, devices - first)});
  }
  for (std::size_t i = 0, n = stages.array(1, idx(operators)); i < n; ++i) {
    plan_reader const s = stages[i], nodes = s["nodes"];
    s.object({"nodes", "group", "micro_batch", "k", "split_backward", "recompute", "shard_optimizer"});
    pipeline_stage x;
    for (std::size_t k = 0, m = nodes.array(1, idx(operators)); k < m; ++k)
      x.nodes.push_back(nodes[k].bounded(k ? i64{x.nodes.back()} + 1 : 0, operators - 1));
    x.group = s["group"].bounded(0, static_cast<i64>(p.groups.size()) - 1);
    x.micro_batch = s["micro_batch"].integer(1, p.mini_batch);
    if (p.mini_batch / x.micro_batch > max_micro_batches)
      s["micro_batch"].fail(std::to_string(p.mini_batch / x.micro_batch) + " micro-batches",
                            "at most " + std::to_string(max_micro_batches));
    if (p.mini_batch % x.micro_batch || x.micro_batch % p.unit)
      s["micro_batch"].fail(
          std::to_string(x.micro_batch) + " samples",
          "a multiple of " + std::to_string(p.unit) + " that divides " + std::to_string(p.mini_batch));
    x.k = s["k"].bounded(1, plan_max_micro_batches);
    x.split_backward = s["split_backward"].boolean();
    x.recompute = s["recompute"].boolean();
    x.shard_optimizer = s["shard_optimizer"].boolean();
    p.stages.push_back(std::move(x));
  }
  auto number = [](std::string const& s, std::size_t& at) {
    i64 n = 0;
    std::size_t const from = at;
    while (at < s.size() && at - from < 9 && s[at] >= '0' && s[at] <= '9') n = n * 10 + (s[at++] - '0');
    return at == from || (s[from] == '0' && at - from > 1) ? -1 : n;
  };
  for (std::size_t g = 0, n = schedule.array(p.groups.size(), p.groups.size()); g < n; ++g) {
    std::vector<pass_entry> all;
    for (std::size_t i = 0, m = schedule[g].array(0, SIZE_MAX); i < m; ++i) {
      plan_reader const e = schedule[g][i];
      std::string const s = e.text();
      std::size_t at = 1;
      std::size_t const kind = s.empty() ? 3 : std::string("FBW").find(s[0]);
      i64 const stage = number(s, at);
      bool good = kind < 3 && stage >= 0 && stage < static_cast<i64>(p.stages.size()) && at < s.size() &&
                  s[at++] == '.';
      i64 const micro = good ? number(s, at) : -1;
      good = good && at == s.size() && micro >= 0 && micro < p.micro_batches(static_cast<int>(stage));
      if (!good)
        e.fail("not a pass", "F, B or W, a stage, a full stop and one of its micro-batches, like F0.3");
      all.push_back({static_cast<int>(stage), static_cast<pass>(kind), static_cast<int>(micro)});
    }
    p.schedule.push_back(std::move(all));
  }
  return p;
}

}  // namespace tensorpar::detail
