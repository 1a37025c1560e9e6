// examples/plan_batch.cpp - a batch and a machine: the planner chooses micro-batches, shardings, stages and rules; the plan trains
#include "standard_output.hpp"
#include <cstdio>
#include <tensorpar/plan.hpp>
#include <tensorpar/run.hpp>

// [quoted: batch]
using namespace tensorpar;
constexpr axis batch{"batch"}, classes{"classes"};

struct deep {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, 256});
    auto label = g.input("label", {batch}, dtype::i32);
    auto logits = x | repeat(6, seq(linear{256}, relu{})) | linear{.out = 10, .to = classes};
    g.output("loss", all(logits, label) | cross_entropy{});
  }
};
constexpr auto net = typed<deep>;

/// Two nodes of two cores with a slow network between them.
machine two_nodes() {
  device_kind const core{.name = "core", .flops = 2e9, .memory_bandwidth = 1e10, .memory = i64{1} << 30, .launch = 2e-6};
  link_level const memory{.name = "memory", .latency = 2e-6, .bandwidth = 5e9},
      network{.name = "network", .latency = 2e-5, .bandwidth = 1e7};
  return make_cluster("mine", core, 4, 2, memory, network);
}

int main() {
  training_problem problem{.graph = lower(net, {batch = 1}), .samples = 64, .optimizer = {optimizer_kind::adamw}};
  problem.scratch =
      exec::scratch_of<compute::eigen<float>>();               // of the kernels that will run the plan: memory is counted to the byte
  planned const found = plan_training(problem, two_nodes(), cost::analytical{}, {.effort = effort::thorough});
  if (!found.feasible()) return std::printf("%s\n", text_of(*found.infeasible).c_str()), 1;
  for (tried_plan const& c : found.tried)
    if (c.feasible()) std::printf("%s, %d micro-batches, %d stages: %.3f ms\n", c.what.c_str(), c.micro_batches, c.stages, 1e3 * c.seconds);
  trainer<compute::eigen<float>, comm::threads> run(found);
  run.initialise(1);
  host_batch const data{{"x", host_tensor::reals({64, 256}, std::vector<float>(64 * 256, 0.5f))},
                        {"label", host_tensor::integers({64}, std::vector<std::int32_t>(64, 3))}};
  for (int k = 0; k < 3; ++k) std::printf("loss %.4f\n", run.step(data, 0.001).loss);
}
// [end]
