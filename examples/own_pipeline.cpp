// examples/own_pipeline.cpp - a model with branches, planned as a pipeline whose stages follow them, drawn, and trained on threads
#include "standard_output.hpp"
#include <cstdio>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/report/pipeline_text.hpp>
#include <tensorpar/search/pipeline/fit_stages.hpp>
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
  machine const cluster = logical(4);
  computation_graph const graph = lower(net, {batch = 1});                        // one sample: micro-batches are multiples of it
  search::graph_stage_options options;
  options.mini_batch = 32;
  options.max_data = 1;                                                          // pipelines only, no copies of stages
  search::graph_stages<cost::analytical> const model(graph, cluster, cost::analytical{}, options);
  // stages, devices and micro-batch sizes: of what the search finds, the program that simulates fastest and fits into memory
  search::fitted_stages const found = search::fit_stages(graph, graph, cluster, model, {}, search::schedule_kind::zb_h1);
  if (!found.feasible()) return std::printf("device %d lacks memory\n", found.infeasible->device), 1;
  passes::stage_edges const edges = search::edges_of(found.stages);
  std::printf("%zu stages, %d deep, a step of %.3f ms; %d programs compared\n", found.stages.choices.size(), found.stages.cost.depth,
              1e3 * found.seconds, found.tried);
  simulation::pipeline_run const drawn = simulation::simulate_pipeline(found.plan.pipeline, edges, search::costs_of(found.stages), true);
  std::printf("%s", report::pipeline_text(found.plan.pipeline, drawn, 80).c_str());
  executor<compute::eigen<float>, comm::threads> run(graph, found.plan);
  run.initialise(1);
  host_batch data{{"left", host_tensor::reals({32, 64}, std::vector<float>(32 * 64, 0.5f))},
                  {"right", host_tensor::reals({32, 64}, std::vector<float>(32 * 64, 0.25f))}};
  for (int k = 0; k < 3; ++k) std::printf("loss %.4f\n", run.step(data, 0.1).loss);
}
// [end]
