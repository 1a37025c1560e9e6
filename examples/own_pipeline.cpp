// examples/own_pipeline.cpp - a model with branches, planned as a pipeline whose stages follow them, drawn, and trained on threads
#include <cstdio>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/exec/eigen.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/exec/threads.hpp>
#include <tensorpar/ir/machine_presets.hpp>
#include <tensorpar/report/pipeline_text.hpp>
#include <tensorpar/search/microbatch.hpp>
#include <tensorpar/search/stages/to_plan.hpp>
#include <tensorpar/typed/typed.hpp>

// [quoted: pipeline]
using namespace tensorpar;
constexpr axis batch{"batch"};

struct two_towers {
  static constexpr void define(auto& g) {
    auto tower = [&](char const* name) {
      ref x = g.input(name, {batch, 64});
      for (int i = 0; i < 4; ++i) x = x | linear{64} | relu{};
      return x;
    };
    auto left = tower("left"), right = tower("right");
    g.output("loss", all(left, right) | mean_squared_error{});
  }
};
constexpr auto net = typed<two_towers>;

int main() {
  machine const cluster = make_cluster("mine", {"core", 2e9, 1e10, i64{1} << 30, 2e-6}, 4, 4, {"memory", 4, 2e-6, 5e9}, {});
  computation_graph const graph = lower(net, {batch = 1});                        // one sample: micro-batches are multiples of it
  graph_stage_options options;
  options.mini_batch = 32;
  options.most_data = 1;                                                          // pipelines only, no copies of stages
  graph_stages<analytical> const model(graph, cluster, analytical{}, options);
  stage_result const found = find_stages(graph, model);                           // stages, devices, micro-batch sizes
  auto const order = make_schedule(schedule_kind::zb_h1, found.pipeline, edges_of(found), costs_of(found));
  std::printf("%zu stages, %d deep, gap %.1f %%\n", found.choices.size(), found.cost.depth, 100 * found.gap);
  std::printf("%s", pipeline_text(*order, simulate_pipeline(*order, edges_of(found), costs_of(found), true), 80).c_str());
  plan const chosen = plan_of(graph, cluster, model, *order, found.choices);
  executor<compute::eigen<float>, comm::threads> run(expand(graph, chosen));
  run.initialise(1);
  host_batch data{{"left", {{32, 64}, std::vector<float>(32 * 64, 0.5f), {}}}, {"right", {{32, 64}, std::vector<float>(32 * 64, 0.25f), {}}}};
  for (int k = 0; k < 3; ++k) std::printf("loss %.4f\n", run.step(data, 0.1).loss);
}
// [end]
