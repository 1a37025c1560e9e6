// bench/pipeline.cpp - how long partitioning into stages takes, and what graph pipelines gain over sequential ones
#include "../examples/standard_output.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <sys/resource.h>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/peers/optima/lines.hpp>
#include <tensorpar/peers/optima/piper_stages.hpp>
#include <tensorpar/search/pipeline/grouped.hpp>
#include <tensorpar/search/pipeline/schedules/microbatch.hpp>
#include <tensorpar/search/pipeline/stages/additive.hpp>
#include <tensorpar/search/pipeline/to_plan.hpp>
#include <tensorpar/zoo/graphpipe.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::peers;

namespace {

void line(std::string const& name, char const* metric, double value, char const* unit, double reference) {
  std::printf(
      "{\"bench\":\"pipeline\",\"case\":\"%s\",\"metric\":\"%s\",\"value\":%.6g,\"unit\":\"%s\",\"reference\":%.6g,\"ratio\":%.4g}\n",
      name.c_str(), metric, value, unit, reference, reference > 0 ? value / reference : 0.0);
  std::fflush(stdout);
}
double memory_mb() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_maxrss) / 1024;
}
template <class F> double seconds(F&& f) {
  auto const from = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
}

/// Summit as the thesis uses it (section 3.7): four V100 to a node. 15.7 TFLOP/s in fp32, 16 GiB; NVLink 50 GB/s and EDR 12.5 GB/s for a
/// device in one direction.
machine summit(int devices, double launch) {
  device_kind gpu = kinds::v100();
  gpu.launch = launch;
  return make_cluster("summit", gpu, devices, devices < 4 ? devices : 4, {"NVLink", 4, 3e-6, 50e9}, {"EDR", devices, 6e-6, 12.5e9});
}
/// Seconds that an operator costs however small it is: of the device alone, and in a runtime that analyses tasks for each operator. The
/// thesis (footnote 8) names this overhead of its runtime and gives no figure, so several are assumed.
constexpr double bare = 6e-6, overheads[] = {bare, 2e-4, 5e-4, 2e-3};

struct cell {
  char const* model;
  int devices;
  i64 mini_batch;               // section 3.10.3, continued in proportion beyond 32 devices
  double graphpipe, pipedream;  // Table 3.1: seconds of search
};
constexpr cell cells[] = {{"mmt", 4, 64, 0.12, 2.57},
                          {"mmt", 8, 128, 0.76, 11.9},
                          {"mmt", 16, 256, 3.00, 44.3},
                          {"mmt", 32, 512, 10.11, 151},
                          {"dlrm_graphpipe", 4, 256, 0.33, 6.39},
                          {"dlrm_graphpipe", 8, 512, 2.73, 31.3},
                          {"dlrm_graphpipe", 16, 1024, 13.28, 131},
                          {"dlrm_graphpipe", 32, 2048, 54.6, 505},
                          {"candle_uno_graphpipe", 4, 4096, 0.19, 3.84},
                          {"candle_uno_graphpipe", 8, 8192, 1.43, 17.0},
                          {"candle_uno_graphpipe", 16, 16384, 6.14, 66.1},
                          {"candle_uno_graphpipe", 32, 32768, 22.37, 234}};

computation_graph graph_of(std::string const& model, int branches) {
  model_builder g;
  if (model == "mmt")
    zoo::mmt<>::define(g);
  else if (model == "dlrm_graphpipe")
    zoo::dlrm_graphpipe<>::define(g);
  else if (model == "two_branches")
    zoo::two_branches::define(g);
  else
    zoo::candle_uno_graphpipe<>::define(g, {.branches = branches > 0 ? branches : 7});
  return lower(g, {zoo::batch = 1});
}
graph_stages<cost::analytical> model_of(computation_graph const& g, int devices, i64 mini_batch, double launch = bare) {
  graph_stage_options o;
  o.mini_batch = mini_batch;
  return graph_stages<cost::analytical>(g, summit(devices, launch), cost::analytical{}, o);
}

/// Piper sees layers, as its authors' inputs do: operators one by one have too many downsets. Operators in a row per layer, branch by
/// branch.
std::vector<int> layers_of(std::string const& model, int operators) {
  int const each = model == "mmt" ? 8 : 2, branches = model == "mmt" ? 256 : model == "dlrm_graphpipe" ? 70 : 56;
  std::vector<int> r;
  for (int v = 0; v < operators; ++v) r.push_back(v < branches ? v / each : v - branches + branches / each);
  return r;
}
/// Piper's least bottleneck, or why there is none.
void against_piper(std::string const& name, cell const& c, computation_graph const& g, graph_stages<cost::analytical> const& m,
                   stage_options const& o, stage_result const& graph, double found) {
  grouped_stages<graph_stages<cost::analytical>> const layers(g, m, layers_of(c.model, m.operators()));
  try {
    stage_result piper;
    double const t = seconds([&] { piper = piper_stages(layers.graph(), layers, o); });
    line(name, "search against Piper's over layers in this model", found, "s", t);
    if (piper.feasible()) line(name, "least bottleneck against Piper's", graph.cost.bottleneck, "s", piper.cost.bottleneck);
  } catch (error const& e) {
    if (e.problem().find("downsets") == std::string::npos) throw;
    line(name, "Piper: more than 400000 downsets of layers", 1, "", 0);
  }
}

/// A cell of Table 3.1: seconds of search, and the bottleneck against PipeDream's in the same model.
void table(std::string const& name, cell const& c) {
  computation_graph const g = graph_of(c.model, 0);
  auto const m = model_of(g, c.devices, c.mini_batch);
  stage_options o;
  stage_result graph, sequential;
  double const target = std::max(0.02, c.graphpipe / 100), found = seconds([&] { graph = find_stages(g, m, o); }),
               walked = seconds([&] { sequential = pipedream_stages(g, m, o); });
  line(name, "search", found, "s", target);
  line(name, "search against GraphPipe's", found, "s", c.graphpipe);
  line(name, "search against PipeDream's in this model", found, "s", walked);
  line(name, "gap of the bottleneck", graph.gap, "", 0);
  o.objective = stage_objective::bottleneck;
  line(name, "search, least bottleneck", seconds([&] { graph = find_stages(g, m, o); }), "s", target);
  line(name, "search, PipeDream's least bottleneck", seconds([&] { sequential = pipedream_stages(g, m, o); }), "s", c.pipedream);
  line(name, "least bottleneck against PipeDream's", graph.cost.bottleneck, "s", sequential.cost.bottleneck);
  line(name, "gap of the least bottleneck", graph.gap, "", 0);
  against_piper(name, c, g, m, o, graph, found);
  stage_result const uniform = uniform_stages(g, m, o);
  if (uniform.feasible())
    line(name, "least bottleneck against equal counts of operators", graph.cost.bottleneck, "s", uniform.cost.bottleneck);
}

/// Seconds of a step, simulated: with 1F1B or, where that is faster, the greedy schedule.
double simulated(stage_result const& r) {
  double least = 1e300;
  for (schedule_kind k : {schedule_kind::one_f_one_b, schedule_kind::greedy})
    if (auto const p = make_schedule(k, r.pipeline, edges_of(r), costs_of(r)))
      least = std::min(least, simulation::simulate_pipeline(*p, edges_of(r), costs_of(r)).makespan);
  return least;
}
/// Graph against sequential pipelines by simulated steps: each planner's best pipeline, and as the thesis's planners choose. `wanted`: the
/// paper's gain.
void compare(std::string const& name, computation_graph const& g, int devices, i64 mini_batch, double launch, double wanted) {
  auto const m = model_of(g, devices, mini_batch, launch);
  char overhead[40];
  std::snprintf(overhead, sizeof overhead, ", %g us an operator", launch * 1e6);
  for (stage_objective objective : {stage_objective::thesis, stage_objective::iteration}) {
    stage_options o;
    o.objective = objective;
    if (objective == stage_objective::thesis) o.tolerance = 0.01;
    stage_result const graph = find_stages(g, m, o), sequential = pipedream_stages(g, m, o);
    std::string const full = name + overhead + ", objective " + std::string(name_of(objective));
    if (!graph.feasible() || !sequential.feasible()) {
      line(full, "infeasible", graph.feasible() + 2 * sequential.feasible(), "", 0);
      continue;
    }
    double const ours = simulated(graph), theirs = simulated(sequential);
    line(full, "throughput over sequential", theirs / ours, "", wanted);
    line(full, "throughput over sequential if nothing were ever idle", theirs / (graph.bound * static_cast<double>(mini_batch)), "",
         wanted);
    line(full, "step", ours, "s", theirs);
    line(full, "bottleneck", graph.cost.bottleneck, "s", sequential.cost.bottleneck);
    line(full, "depth", graph.cost.depth, "stages", sequential.cost.depth);
    line(full, "stages", static_cast<double>(graph.choices.size()), "", static_cast<double>(sequential.choices.size()));
    line(full, "micro-batch", static_cast<double>(graph.choices.front().micro_batch), "samples",
         static_cast<double>(sequential.choices.front().micro_batch));
    double most = 0, max_sequential = 0;
    for (double b : graph.cost.bytes) most = std::max(most, b);
    for (double b : sequential.cost.bytes) max_sequential = std::max(max_sequential, b);
    line(full, "peak memory", most, "B", max_sequential);
  }
}

/// Modules of branches of convolutions, one after another: as many nodes as asked for.
std::vector<std::vector<int>> wide_graph(int nodes) {
  std::vector<std::vector<int>> before{{}};
  int last = 0;
  u64 state = 1;
  auto next = [&](int n) { return static_cast<int>(core::mix(state++) % static_cast<u64>(n)); };
  while (static_cast<int>(before.size()) < nodes - 30) {
    std::vector<int> ends;
    for (int b = 0, n = 3 + next(4); b < n; ++b) {
      int at = last;
      for (int l = 0, m = 1 + next(5); l < m; ++l) {
        before.push_back({at});
        at = static_cast<int>(before.size()) - 1;
      }
      ends.push_back(at);
    }
    before.push_back(ends);
    last = static_cast<int>(before.size()) - 1;
  }
  return before;
}

void wide(int nodes, int devices) {
  auto const g = wide_graph(nodes);
  u64 state = 7;
  auto number = [&] { return 1 + static_cast<double>(core::mix(state++) % 1000) / 100; };
  std::vector<operator_numbers> ops;
  std::vector<double> bytes;
  for (std::size_t v = 0; v < g.size(); ++v) {
    double const f = 1e-5 * number();
    ops.push_back({f, f, f, 2e-5, 2, 1e5 * number(), 1e6 * number(), 0});
    bytes.push_back(1e6 * number());
  }
  stage_devices d = stage_devices::equal(devices, 16e9);
  d.per_node = 4;
  d.inner_bandwidth = 50e9;
  d.outer_bandwidth = 12.5e9;
  additive_stages const m(ops, tensors_of(g, bytes), d, {128, 2, 1 << 20, 1, false, false});
  stage_result r;
  std::string const name = "wide " + std::to_string(g.size()) + " nodes on " + std::to_string(devices);
  double const t = seconds([&] { r = find_stages(g, m); });
  line(name, "search", t, "s", 2);
  line(name, "peak memory of the process", memory_mb(), "MB", 500);
  if (!r.feasible()) return line(name, "infeasible", 1, "", 0);
  line(name, "gap of the bottleneck", r.gap, "", 0);
  line(name, "stages", static_cast<double>(r.choices.size()), "", 0);
  stage_options o;
  o.objective = stage_objective::bottleneck;
  stage_result least, walked;
  line(name, "search, least bottleneck", seconds([&] { least = find_stages(g, m, o); }), "s", 2);
  line(name, "search, PipeDream in this model", seconds([&] { walked = pipedream_stages(g, m, o); }), "s", 0);
  line(name, "least bottleneck", least.cost.bottleneck, "s", walked.cost.bottleneck);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"How long partitioning into stages takes, and what graph pipelines gain"};
  bool quick = false;
  std::string only;
  int devices = 0;
  app.add_flag("--quick", quick, "one small case of each kind");
  app.add_option("--search", only,
                 "no output but one search of this model, to time the whole process: mmt, dlrm_graphpipe, candle_uno_graphpipe");
  app.add_option("--devices", devices, "for --search");
  CLI11_PARSE(app, argc, argv);
  if (!only.empty()) {
    for (cell const& c : cells)
      if (only == c.model && devices == c.devices) {
        computation_graph const g = graph_of(c.model, 0);
        return find_stages(g, model_of(g, c.devices, c.mini_batch)).feasible() ? 0 : 1;
      }
    return 2;
  }
  for (cell const& c : cells) {
    if (quick && (c.devices > 4 || std::string(c.model) != "mmt")) continue;
    std::string const name = std::string(c.model) + " on " + std::to_string(c.devices);
    std::string const command = std::string("\"") + argv[0] + "\" --search " + c.model + " --devices " + std::to_string(c.devices);
    int failed = 0;
    double whole = 1e300;
    for (int i = 0; i < 3; ++i) whole = std::min(whole, seconds([&] { failed += std::system(command.c_str()) != 0; }));
    line(name, failed ? "whole process, failed" : "whole process, best of three", whole, "s", std::max(0.02, c.graphpipe / 100));
    table(name, c);
  }
  if (quick) {
    compare("two branches (3.7.4) on 8", graph_of("two_branches", 0), 8, 64, bare, 1.2);
    wide(100, 4);
    return 0;
  }
  for (char const* model : {"mmt", "dlrm_graphpipe", "candle_uno_graphpipe"})
    for (int n : {64, 128, 256, 512, 1024}) {
      i64 const each = std::string(model) == "mmt" ? 16 : std::string(model) == "dlrm_graphpipe" ? 64 : 1024;
      computation_graph const g = graph_of(model, 0);
      auto const m = model_of(g, n, each * n);
      stage_result r;
      line(std::string(model) + " on " + std::to_string(n), "search", seconds([&] { r = find_stages(g, m); }), "s", 5);
      line(std::string(model) + " on " + std::to_string(n), "gap of the bottleneck", r.feasible() ? r.gap : 1, "", 0);
    }
  for (double launch : overheads) {
    for (cell const& c : cells)
      compare(std::string(c.model) + " on " + std::to_string(c.devices), graph_of(c.model, 0), c.devices, c.mini_batch, launch, 1.61);
    for (int branches : {2, 4, 8, 16})  // figure 3.7, left
      for (int n : {4, 8, 16})
        compare("candle_uno_graphpipe, " + std::to_string(branches) + " branches on " + std::to_string(n),
                graph_of("candle_uno_graphpipe", branches), n, 1024 * n, launch, branches == 16 ? 2 : 0);
    compare("two branches (3.7.4) on 8", graph_of("two_branches", 0), 8, 64, launch, 1.2);
  }
  wide(1000, 8);
  wide(2000, 8);
  wide(2000, 32);
  return 0;
}
