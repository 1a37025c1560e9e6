// tensorpar/plan/pipeline_form.hpp - do a pipeline's stages, groups and sizes fit the operators and the
// cluster?
#pragma once
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/plan/plan.hpp>
#include <utility>

namespace tensorpar::detail {

[[noreturn]] inline void bad_pipeline(std::string what, std::string where, std::string valid) {
  throw error(std::move(what), "pipeline: " + where, std::move(valid));
}
inline std::string spelled(pass_entry const& e) {
  return "stage " + std::to_string(e.stage) + "'s " + std::string(name_of(e.what)) + " pass " +
         std::to_string(e.micro_batch);
}

/// The stage of every operator. Throws `error` where stages do not partition the operators (C1, but for
/// convexity, which shows when orders are merged), groups overlap or leave the cluster or the shardings of
/// their operators leave them (C3), and where sizes do not divide.
inline std::vector<int> stages_of_operators(int operators, plan const& p) {
  pipeline const& pipe = p.pipeline;
  if (pipe.schedule.size() != pipe.groups.size())
    bad_pipeline("orders for " + std::to_string(pipe.schedule.size()) + " groups", "order",
                 std::to_string(pipe.groups.size()) + ", one per group");
  auto const n = idx(operators);
  int const devices = p.cluster.size(), groups = static_cast<int>(pipe.groups.size());
  if (p.nodes.size() != n)
    bad_pipeline("the plan decides about " + std::to_string(p.nodes.size()) + " operators, the graph has " +
                     std::to_string(n),
                 "plan", "a plan made for this graph");
  if (p.micro_batches != 1)
    bad_pipeline(std::to_string(p.micro_batches) + " micro-batches beside a pipeline", "plan",
                 "1: stages have their own");
  if (!p.node_order.empty())
    bad_pipeline("an order of operators beside a pipeline", "plan",
                 "none: groups have their own orders of passes");
  std::vector<int> owner(idx(devices), -1);
  for (int g = 0; g < groups; ++g) {
    device_range const& d = pipe.groups[idx(g)];
    if (d.count < 1 || d.first < 0 || d.first > devices - d.count)
      bad_pipeline("devices " + std::to_string(d.first) + " to " + std::to_string(i64{d.first} + d.count - 1),
                   "group " + std::to_string(g), "devices 0 to " + std::to_string(devices - 1));
    for (int i = d.first; i < d.first + d.count; ++i)
      if (std::exchange(owner[idx(i)], g) >= 0)
        bad_pipeline("device " + std::to_string(i) + " is in two groups", "group " + std::to_string(g),
                     "groups that do not overlap");
  }
  std::vector<int> of_node(n, -1);
  // forward passes: fewer entries are refused before anything is built for them
  std::vector<i64> promised(pipe.groups.size(), 0);
  for (int s = 0; s < static_cast<int>(pipe.stages.size()); ++s) {
    pipeline_stage const& x = pipe.stages[idx(s)];
    std::string const here = "stage " + std::to_string(s);
    if (x.group < 0 || x.group >= groups)
      bad_pipeline("group " + std::to_string(x.group), here,
                   "a group from 0 to " + std::to_string(groups - 1));
    if (pipe.unit < 1 || x.micro_batch < 1 || x.micro_batch % pipe.unit || pipe.mini_batch % x.micro_batch ||
        pipe.mini_batch < 1)
      bad_pipeline(std::to_string(x.micro_batch) + " samples per micro-batch", here,
                   "a multiple of " + std::to_string(pipe.unit) + " that divides the mini-batch of " +
                       std::to_string(pipe.mini_batch));
    if (pipe.mini_batch / x.micro_batch > max_micro_batches)
      bad_pipeline(std::to_string(pipe.mini_batch / x.micro_batch) + " micro-batches", here,
                   "at most " + std::to_string(max_micro_batches));
    promised[idx(x.group)] += pipe.mini_batch / x.micro_batch;
    device_range const& d = pipe.groups[idx(x.group)];
    for (int v : x.nodes) {
      if (v < 0 || idx(v) >= n)
        bad_pipeline("operator " + std::to_string(v), here, "operators 0 to " + std::to_string(n - 1));
      if (std::exchange(of_node[idx(v)], s) >= 0)
        bad_pipeline("operator " + std::to_string(v) + " is in two stages", here, "one stage per operator");
      ir::sharding const& w = p.nodes[idx(v)].sharding;
      i64 last = w.start;
      for (ir::mesh_axis const& a : w.axes) last += (a.degree - 1) * a.stride;
      if (w.start < d.first || last >= d.first + d.count)
        bad_pipeline("operator " + std::to_string(v) + " is sharded over devices " + std::to_string(w.start) +
                         " to " + std::to_string(last),
                     here,
                     "devices " + std::to_string(d.first) + " to " + std::to_string(d.first + d.count - 1));
    }
  }
  for (int g = 0; g < groups; ++g)
    if (static_cast<i64>(pipe.schedule[idx(g)].size()) < promised[idx(g)])
      bad_pipeline(
          std::to_string(pipe.schedule[idx(g)].size()) + " passes", "order of group " + std::to_string(g),
          "every pass of its stages once: " + std::to_string(promised[idx(g)]) + " forward passes alone");
  for (std::size_t v = 0; v < n; ++v)
    if (of_node[v] < 0)
      bad_pipeline("operator " + std::to_string(v) + " is in no stage", "stages", "one stage per operator");
  return of_node;
}

}  // namespace tensorpar::detail
