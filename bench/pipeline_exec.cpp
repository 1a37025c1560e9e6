// bench/pipeline_exec.cpp - pipelines on paced devices: how well the simulator foretells a measured step
#include "../examples/standard_output.hpp"
#include "paced_models.hpp"
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <string>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/exec/comm/paced.hpp>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/peers/optima/lines.hpp>
#include <tensorpar/search/pipeline/schedules/microbatch.hpp>
#include <tensorpar/search/pipeline/to_plan.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tensorpar/zoo/graphpipe.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::peers;
using paced_models::batch_of, paced_models::made;

namespace {

/// Operators with weights and attention take time, the rest none: small tensors compute in microseconds, far less than this.
double pace(op::any_op const& o, shapes in, shapes out) {
  if (!o.is<linear>() && !o.is<contraction>() && !o.is<attention>() && !o.is<attention_grad>()) return 0;
  return 3e-3 + 6e-6 * o.op->flops(o.attr, in, out);
}
/// What the simulator is told: the same, and what a message between threads takes.
struct paced_prices {
  double message = 30e-6;
  double seconds(cost::compute_query const& q) const { return pace(q.op, q.in, q.out); }
  double seconds(cost::reshard_query const&) const { return message; }
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Measured steps of pipelines on paced devices against simulated ones"};
  bool quick = false;
  int repeat = 3;
  app.add_flag("--quick", quick, "one model on 4 devices");
  app.add_option("--repeat", repeat, "steps; the median counts");
  CLI11_PARSE(app, argc, argv);
  struct case_of { std::string name; computation_graph graph; };
  std::vector<case_of> const all{
      {"two branches", made<zoo::mmt<>>(zoo::mmt_sizes{.branches = 2, .layers = 4, .tokens = 4, .hidden = 8, .heads = 2, .wide = 16})},
      {"mmt", made<zoo::mmt<>>(zoo::mmt_sizes{.branches = 4, .layers = 2, .tokens = 4, .hidden = 8, .heads = 2, .wide = 16})},
      {"dlrm", made<zoo::dlrm_graphpipe<>>(zoo::dlrm_graphpipe_sizes{
                   .dense = 4, .sparse = 3, .layers = 4, .top = 2, .hidden = 8, .rows = 16, .width = 4, .bag = 3})},
      {"candle uno", made<zoo::candle_uno_graphpipe<>>(zoo::candle_uno_graphpipe_sizes{.branches = 7, .layers = 4, .hidden = 8})}};
  for (case_of const& c : all)
    for (int devices : {4, 8}) {
      if (quick && (devices == 8 || c.name != "candle uno")) continue;
      // planned with the same prices: a device of this speed, links that cost nothing
      machine const on = make_cluster("paced", {"paced", 5e5 / 3, 1e15, i64{1} << 40, 3e-3}, devices, devices,
                                      {"memory", devices, 1e-6, 1e12}, {});
      graph_stage_options o;
      o.mini_batch = 16;
      o.max_data = 1;
      graph_stages<cost::analytical> const m(c.graph, on, cost::analytical{cost::measured_rates}, o);
      stage_options so;
      so.micro_batches = {2, 4};
      for (bool sequential : {false, true}) {
        stage_result const r = sequential ? pipedream_stages(c.graph, m, so) : find_stages(c.graph, m, so);
        for (schedule_kind k : {schedule_kind::one_f_one_b, schedule_kind::gpipe, schedule_kind::greedy, schedule_kind::zb_h1}) {
          if (quick && k != schedule_kind::one_f_one_b) continue;
          auto const p = make_schedule(k, r.pipeline, edges_of(r), costs_of(r));
          if (!p) continue;
          planned_step const step = passes::pipeline_pass(c.graph, plan_of(c.graph, on, m, *p, r.choices));
          executor<compute::paced<compute::eigen<float>, pace>, comm::threads> run(step);
          run.initialise(1);
          double const simulated = simulate(run.program(), on, paced_prices{}, {true, false}).seconds;
          host_batch const batch = batch_of(c.graph, o.mini_batch);
          std::vector<double> times;
          for (int i = 0; i < repeat; ++i) times.push_back(run.step(batch, 0.01).seconds);
          std::sort(times.begin(), times.end());
          double const measured = times[times.size() / 2];
          std::printf("{\"bench\":\"pipeline_exec\",\"case\":\"%s, %d devices, %s, %s\",\"metric\":\"measured step\",\"value\":%.6g,\"unit\":\"s\","
                      "\"reference\":%.6g,\"ratio\":%.4f}\n",
                      c.name.c_str(), devices, sequential ? "sequential" : "graph", std::string(name_of(k)).c_str(), measured, simulated,
                      measured / simulated);
          std::fflush(stdout);
        }
      }
    }
  return 0;
}
