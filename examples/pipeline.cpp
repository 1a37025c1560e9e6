// examples/pipeline.cpp - plan, draw and run pipelines: stages that follow the model, micro-batch schedules, sequential baselines
#include "standard_output.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <optional>
#include <tensorpar/check/check.hpp>
#include <tensorpar/core/json.hpp>
#include <tensorpar/core/whole_file.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/peers/optima/lines.hpp>
#include <tensorpar/peers/optima/piper_stages.hpp>
#include <tensorpar/peers/optima/stage_numbers.hpp>
#include <tensorpar/plan/plan_file.hpp>
#include <tensorpar/report/page/pipeline_page.hpp>
#include <tensorpar/search/intra/machine_parts.hpp>
#include <tensorpar/search/pipeline/fit_stages.hpp>
#include <tensorpar/search/pipeline/map_within.hpp>
#include <tensorpar/search/pipeline/schedules/microbatch.hpp>
#include <tensorpar/search/pipeline/stages/any_model.hpp>
#include <tensorpar/search/pipeline/stages/fold.hpp>
#include <tensorpar/search/pipeline/to_plan.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tensorpar/zoo/graphpipe.hpp>

#include "flags.hpp"

using namespace tensorpar;

namespace {

struct settings {
  std::string model = "mmt", profile, units = "as-published", planner = "graphpipe", schedule = "1f1b", html, plan_file;
  int devices = 8, node = 4, branches = 0, width = 100, train = 0, max_tensor = 1;
  i64 batch = 0;
  double memory = 16e9, bandwidth = 12.5e9;
  bool json = false, reduced = false, recompute = false, bottleneck = false, map = false;
};

/// What is planned: a graph, and what came of planning it.
struct planned {
  std::string name;
  search::stage_result result;
  double seconds = 0;
};

using graph_lists = std::vector<std::vector<int>>;       // by node, its predecessors

search::stage_result plan_with(std::string const& planner, graph_lists const& g, search::any_stages const& m,
                               search::stage_options const& o) {
  if (planner == "graphpipe") return search::find_stages(g, m, o);
  if (planner == "pipedream") return peers::pipedream_stages(g, m, o);
  if (planner == "piper") return peers::piper_stages(g, m, o);
  if (planner == "uniform") return peers::uniform_stages(g, m, o);
  throw error("planner \"" + planner + "\"", "--planner", "graphpipe, pipedream, piper, uniform; for a model also programs");
}
/// Two stages take turns on every group of devices.
bool folds(search::schedule_kind k) {
  return k == search::schedule_kind::interleaved || k == search::schedule_kind::zb_v || k == search::schedule_kind::v_half ||
      k == search::schedule_kind::v_min;
}

planned timed(settings const& s, std::string name, graph_lists const& g, search::any_stages const& m) {
  search::stage_options o;
  if (s.bottleneck) o.objective = search::stage_objective::bottleneck;
  if (s.schedule == "kfkb") o.ks = {1, 2, 4};
  if (folds(search::schedule_named(s.schedule))) {
    if (s.planner != "uniform")
      throw error("schedule " + s.schedule + " with planner " + s.planner, "--planner", "uniform: equal stages in a line");
    o.micro_batches = {std::max<i64>(1, m.mini_batch() / (4 * s.devices))};
  }
  auto const from = std::chrono::steady_clock::now();
  planned p{std::move(name), plan_with(s.planner, g, m, o), 0};
  p.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  return p;
}

computation_graph model_graph(settings const& s) {
  model_builder g;
  bool const few = s.branches > 0;
  if (s.model == "mmt" || s.model == "two_branches") {
    zoo::mmt_sizes z;
    if (s.reduced) z = {.branches = 4, .layers = 2, .tokens = 8, .hidden = 32, .heads = 4, .wide = 64};
    if (s.model == "two_branches") { z.branches = 2; z.layers = s.reduced ? 2 : 4; }
    if (few) z.branches = s.branches;
    zoo::mmt<>::define(g, z);
  } else if (s.model == "dlrm_graphpipe") {
    zoo::dlrm_graphpipe_sizes z;
    if (s.reduced) z = {.dense = 3, .sparse = 3, .layers = 2, .top = 1, .hidden = 32, .rows = 64, .width = 8, .bag = 4};
    if (few) z.dense = z.sparse = s.branches;
    zoo::dlrm_graphpipe<>::define(g, z);
  } else if (s.model == "candle_uno_graphpipe") {
    zoo::candle_uno_graphpipe_sizes z;
    if (s.reduced) z = {.branches = 7, .layers = 2, .hidden = 32};
    if (few) z.branches = s.branches;
    zoo::candle_uno_graphpipe<>::define(g, z);
  } else throw error("model \"" + s.model + "\"", "--model", "mmt, dlrm_graphpipe, candle_uno_graphpipe, two_branches");
  return lower(g, {zoo::batch = 1});
}

/// The format is known by what the file starts with and the keys it has.
peers::profiled_stages profile_stages(settings const& s) {
  core::profile_units const u = s.units == "milliseconds" ? core::profile_units::compute_in_milliseconds
      : core::profile_units::as_published;
  if (!s.profile.ends_with(".json")) return peers::stages_of(peers::read_pipedream(s.profile));
  core::json const j = core::read_json(s.profile);
  if (j.contains("maxSizePerFPGA")) return peers::stages_of(peers::decode_dnn_partitioning(j, s.profile, u));
  return peers::stages_of(peers::decode_piper(j, s.profile, u));
}

/// `turns` stages share every device: so many devices with a part of the memory each, nodes as large. The last node may be partly filled.
machine cluster(settings const& s, int turns = 1) {
  device_kind k = kinds::v100();
  k.memory = static_cast<i64>(s.memory / turns);
  int const devices = s.devices * turns, node = std::min(s.node, s.devices) * turns, full = (devices + node - 1) / node * node;
  machine const whole = make_cluster("nodes of " + std::to_string(std::min(s.node, s.devices)), k, full, node, {"NVLink", node, 3e-6, 50e9},
                                     {"network", full, 6e-6, s.bandwidth});
  return search::detail::part_of(whole, {0, devices});
}

core::json stages_json(planned const& p, pipeline const& scheduled, simulation::pipeline_run const& run) {
  core::json all = core::json::array();
  for (std::size_t i = 0; i < p.result.choices.size(); ++i) {
    search::stage_choice const& c = p.result.choices[i];
    device_range const g = scheduled.groups[static_cast<std::size_t>(scheduled.stages[i].group)];
    core::json x = core::json::object();
    x["operators"] = scheduled.stages[i].nodes;
    x["devices"] = {g.first, g.first + g.count - 1};
    x["micro_batch"] = c.micro_batch;
    x["k"] = c.k;
    x["data"] = c.data;
    x["tensor"] = c.tensor;
    x["recompute"] = c.recompute;
    x["in_flight"] = run.in_flight[i];
    x["bytes"] = p.result.cost.work[i].bytes(run.in_flight[i]);
    all.push_back(std::move(x));
  }
  return all;
}

/// Trains with random data; the last step's timeline. Parameters are compared with one device's in the tests, not here.
void train(settings const& s, computation_graph const& g, plan const& p) {
  executor<compute::eigen<float>, comm::threads> run(passes::pipeline_pass(g, p));
  run.initialise(1);
  for (int step = 0; step < s.train; ++step) {
    host_batch batch;
    for (graph_value const& v : g.values) {
      if (v.role != value_role::input) continue;
      host_tensor t;
      t.shape = v.type;
      t.shape.d[0].n *= p.pipeline.mini_batch / p.pipeline.unit;
      exec::random_stream const draw{static_cast<u64>(step), core::name_hash(v.name)};
      for (i64 i = 0, n = t.shape.elements(); i < n; ++i) {
        double const u = draw.uniform(static_cast<u64>(i));
        if (is_integer(v.type.type)) t.index.push_back(static_cast<std::int32_t>(u * 64));
        else t.real.push_back(static_cast<float>(u));
      }
      batch[v.name] = std::move(t);
    }
    step_result const r = run.step(batch, 0.01);
    if (s.json) std::cout << core::json({{"event", "step"}, {"step", step}, {"loss", r.loss}, {"seconds", r.seconds}}).dump() << "\n";
    else std::printf("step %d: loss %.6f, %s\n", step, r.loss, report::seconds_text(r.seconds).c_str());
  }
  i64 most = 0;
  for (i64 b : run.allocated_bytes()) most = std::max(most, b);
  if (!s.json) std::printf("largest arena: %s\n", report::bytes_text(static_cast<double>(most)).c_str());
}

int too_small(settings const& s, planned const& p, int device, double lacks) {
  if (s.json)
    std::cout << core::json({{"event", "infeasible"}, {"model", p.name}, {"device", device}, {"lacks_bytes", lacks}}).dump() << "\n";
  else std::printf("no pipeline found that fits under schedule %s: device %d lacks %s\n", s.schedule.c_str(), device,
                   report::bytes_text(lacks).c_str());
  return 3;
}

int work(settings s) {
  search::schedule_kind const kind = search::schedule_named(s.schedule);
  bool const usual = s.batch == 0;
  if (usual)
    s.batch = (s.model == "mmt" || !s.profile.empty() ? 16 : s.model == "dlrm_graphpipe" ? 64 : s.model == "two_branches" ? 4 : 1024)
        * s.devices;
  if (usual && s.reduced && s.model == "mmt") s.batch = 4 * s.devices;
  int const stages_on = folds(kind) ? 2 * s.devices : s.devices;       // so many stages are looked for
  planned p;
  std::optional<computation_graph> graph;
  std::optional<search::graph_stages<cost::analytical>> model;
  std::optional<search::fitted_stages> fitted;
  if (s.profile.empty()) {
    graph = model_graph(s);
    search::graph_stage_options o;
    o.mini_batch = s.batch;
    o.max_tensor = s.max_tensor;
    o.recompute = s.recompute;
    if (folds(kind)) o.max_data = 1;
    model.emplace(*graph, cluster(s, folds(kind) ? 2 : 1), cost::analytical{}, o);
    graph_lists before;
    for (int v = 0; v < graph->node_count(); ++v) before.push_back(graph->predecessors(v));
    if (s.planner == "programs") {                    // graphpipe's candidates, unrolled and simulated: the fastest that fits
      if (folds(kind)) throw error("schedule " + s.schedule + " with planner programs", "--planner", "uniform");
      search::stage_options looks;
      if (s.schedule == "kfkb") looks.ks = {1, 2, 4};
      if (s.bottleneck) looks.objective = search::stage_objective::bottleneck;
      auto const from = std::chrono::steady_clock::now();
      fitted = search::fit_stages(before, *graph, cluster(s), *model, looks, kind);
      p = {s.model, fitted->stages, std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count()};
      if (auto const& lacks = fitted->infeasible) return too_small(s, p, lacks->device, static_cast<double>(lacks->missing));
      if (!s.json)
        std::printf("%d programs compared: the fastest that fits takes %s a step\n", fitted->tried,
                    report::seconds_text(fitted->seconds).c_str());
    } else {
      p = timed(s, s.model, before, search::any_stages(*model));
    }
  } else {
    peers::profiled_stages const read = profile_stages(s);
    search::stage_devices d = search::stage_devices::equal(stages_on, s.memory * s.devices / stages_on);
    d.inner_bandwidth = d.outer_bandwidth = s.bandwidth;
    search::additive_stages::options o;
    o.mini_batch = s.batch;
    o.max_tensor = s.max_tensor;
    o.recompute = s.recompute;
    if (folds(kind)) o.max_data = 1;
    p = timed(s, s.profile, read.graph, search::any_stages(search::additive_stages(read.operators, read.tensors, d, o)));
  }
  search::stage_result& r = p.result;
  if (!r.feasible()) {
    return too_small(s, p, r.infeasible->device, r.infeasible->lacks);
  }
  passes::stage_edges const edges = folds(kind) ? passes::chain_of_stages(static_cast<int>(r.pipeline.stages.size())) : search::edges_of(r);
  pipeline const stages = !folds(kind) ? r.pipeline
                                       : search::fold_stages(r.pipeline, static_cast<int>(r.pipeline.stages.size()) / 2,
                                                     kind == search::schedule_kind::interleaved ? search::fold_kind::round
                                                         : search::fold_kind::back_and_forth);
  std::optional<pipeline> const scheduled = fitted ? fitted->plan.pipeline
      : search::make_schedule(kind, stages, edges, search::costs_of(r));
  if (!scheduled) throw error("schedule " + s.schedule + " does not fit these stages", "--schedule", "another schedule");
  simulation::pipeline_run const run = simulation::simulate_pipeline(*scheduled, edges, search::costs_of(r), true);

  std::vector<double> peak(static_cast<std::size_t>(s.devices), 0), bytes;  // with the samples that this schedule keeps in flight
  for (std::size_t i = 0; i < r.choices.size(); ++i) {
    bytes.push_back(r.cost.work[i].bytes(run.in_flight[i]));
    device_range const g = scheduled->groups[static_cast<std::size_t>(scheduled->stages[i].group)];
    for (int d = g.first; d < g.first + g.count; ++d) peak[static_cast<std::size_t>(d)] += bytes.back();
  }
  if (fitted) peak.assign(fitted->arena.begin(), fitted->arena.end());
  double const step_seconds = fitted ? fitted->seconds : run.makespan;
  auto const fullest = std::max_element(peak.begin(), peak.end());
  if (*fullest > s.memory) return too_small(s, p, static_cast<int>(fullest - peak.begin()), *fullest - s.memory);
  if (!s.html.empty())
    core::write_whole_file(s.html, report::pipeline_page(p.name + " on " + std::to_string(s.devices) + " devices",
                                           {{s.planner + ", " + s.schedule, *scheduled, edges, run, bytes}}));
  if (!s.json) {
    std::printf("%s on %d devices, %lld samples per step: %zu stages, depth %d, found in %s by %s\n", p.name.c_str(), s.devices,
                static_cast<long long>(scheduled->mini_batch), r.choices.size(), r.cost.depth, report::seconds_text(p.seconds).c_str(),
                s.planner.c_str());
    if (r.added) std::printf("the graph is not series-parallel: %d dependencies added\n", r.added);
    std::printf("stages found in the family: %s\n", std::string(name_of(r.source)).c_str());
    std::printf("slowest stage %s per sample, at least %s (gap %s); step %s with %s, idle %s\n",
                report::seconds_text(r.cost.bottleneck).c_str(),
                report::seconds_text(r.bound).c_str(), report::percent_text(r.gap).c_str(), report::seconds_text(run.makespan).c_str(),
                    s.schedule.c_str(), report::percent_text(run.bubble() / run.makespan).c_str());
    for (std::size_t i = 0; i < r.choices.size(); ++i) {
      search::stage_choice const& c = r.choices[i];
      std::printf("  stage %zu: %zu operators on %s, %lld x %lld samples%s%s%s, %lld in flight, %s\n", i, scheduled->stages[i].nodes.size(),
                  report::detail::group_text(scheduled->groups[static_cast<std::size_t>(scheduled->stages[i].group)]).c_str(),
                  static_cast<long long>(scheduled->mini_batch / c.micro_batch), static_cast<long long>(c.micro_batch),
                  c.data > 1 ? (", data " + std::to_string(c.data)).c_str() : "",
                      c.tensor > 1 ? (", tensor " + std::to_string(c.tensor)).c_str() : "",
                  c.recompute ? ", recomputed" : "", static_cast<long long>(run.in_flight[i]), report::bytes_text(bytes[i]).c_str());
    }
    std::printf("%s", report::pipeline_text(*scheduled, run, s.width).c_str());
  }
  if (graph && (s.train > 0 || !s.plan_file.empty() || s.map)) {
    plan q = fitted ? fitted->plan : search::plan_of(*graph, cluster(s), *model, *scheduled, r.choices);
    if (s.map) {
      plan better = search::map_within(*graph, q, cost::analytical{}).plan;
      auto const step = [&](plan const& x) { return simulate(unroll(passes::pipeline_pass(*graph, x)), x.cluster,
                                                             cost::analytical{}).seconds; };
      double const before = step(q), after = step(better);
      if (!s.json)
        std::printf("shardings inside stages: step %s by the rule, %s mapped, both simulated operator by operator; the faster is taken\n",
                    report::seconds_text(before).c_str(), report::seconds_text(after).c_str());
      if (after < before) q = std::move(better);
    }
    q.model = s.model;
    q.step_seconds = step_seconds;
    if (!s.plan_file.empty()) write_plan(q, s.plan_file);
    if (s.train > 0) {
      planned_step const step = passes::pipeline_pass(*graph, q);
      require_accepted(check(step.graph, step.plan, unroll(step)), "plan");
      train(s, *graph, q);
    }
  }
  if (s.json) {
    core::json j = core::json::object();
    j["event"] = "plan";
    j["model"] = p.name;
    j["devices"] = s.devices;
    j["planner"] = s.planner;
    j["schedule"] = s.schedule;
    j["search_s"] = p.seconds;
    j["bottleneck_s"] = r.cost.bottleneck;
    j["iteration_s"] = step_seconds;
    j["bound_s"] = r.bound;
    j["gap"] = r.gap;
    j["family"] = name_of(r.source);
    j["stages"] = stages_json(p, *scheduled, run);
    j["peak_bytes"] = peak;
    std::cout << j.dump() << "\n";
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Plans a pipeline for a model or a profile, draws it, and trains with it on threads"};
  settings s;
  app.add_option("--model", s.model, "mmt, dlrm_graphpipe, candle_uno_graphpipe, two_branches");
  app.add_option("--branches", s.branches, "instead of the model's own number")->check(CLI::Range(1, 16));
  app.add_flag("--reduced", s.reduced, "small sizes, so that --train takes seconds");
  app.add_option("--profile", s.profile,
                 "a PipeDream graph.txt, or a JSON profile of Piper or dnn-partitioning, instead of a model")->check(CLI::ExistingFile);
  app.add_option("--units", s.units, "of compute times in JSON profiles")->check(CLI::IsMember({"as-published", "milliseconds"}));
  app.add_option("--devices", s.devices)->check(CLI::Range(1, 4096));
  app.add_option("--node", s.node, "devices of a node, 4 unless told; the last node may be partly filled")->check(CLI::Range(1, 4096));
  app.add_option("--batch", s.batch, "samples per step (with a profile: profiled batches)")->check(CLI::Range(i64{1}, i64{1} << 30));
  app.add_option("--memory", s.memory, "bytes of a device")->check(CLI::Range(1.0, 1e18));
  app.add_option("--bandwidth", s.bandwidth, "bytes per second between nodes")->check(CLI::PositiveNumber);
  app.add_option("--tensor", s.max_tensor, "largest tensor-parallel degree")->check(CLI::Range(1, 4096));
  app.add_flag("--map", s.map, "inside stages, the shardings that the mapping search finds instead of those of a rule");
  app.add_flag("--recompute", s.recompute, "stages may compute their activations anew");
  app.add_option("--planner", s.planner, "graphpipe, pipedream, piper, uniform; programs: of graphpipe's the one that simulates fastest");
  app.add_option("--schedule", s.schedule, "gpipe, 1f1b, kfkb, greedy, interleaved-1f1b, zb-h1, zb-h2, zb-auto, zb-v, v-half, v-min");
  app.add_flag("--bottleneck", s.bottleneck, "make the slowest stage fast, not the step");
  app.add_option("--train", s.train, "steps on threads, with random data")->check(CLI::Range(0, 1'000'000));
  app.add_option("--plan", s.plan_file, "write the plan here");
  app.add_option("--html", s.html, "write a page with the drawing here");
  app.add_option("--width", s.width, "columns of the drawing in the terminal")->check(CLI::Range(10, 1000));
  app.add_flag("--json", s.json, "one object per line");
  CLI11_PARSE(app, argc, argv);
  try {
    if (!s.profile.empty())
      flags::refuse(app, "--profile", {"--model", "--branches", "--reduced", "--node", "--plan", "--train", "--map"});
    flags::require(app, "--profile", {"--units"});
    if (s.json) flags::refuse(app, "--json", {"--width"});
    return work(s);
  } catch (std::exception const& e) {
    std::fprintf(stderr, "pipeline: %s\n", e.what());
    return 1;
  }
}
