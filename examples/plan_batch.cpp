// examples/plan_batch.cpp - a batch and a machine: the search chooses micro-batches, shardings or stages; the result is checked and run
#include "standard_output.hpp"
#include <cstdio>
#include <tensorpar/check/check.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/search/optimize_batch.hpp>
#include <tensorpar/typed/typed.hpp>

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

int main() {
  machine const cluster = make_cluster("mine", {"core", 2e9, 1e10, i64{1} << 30, 2e-6}, 4, 2, {"memory", 2, 2e-6, 5e9}, {"network", 4, 2e-5, 1e7});
  batch_options options;
  options.search.optimizer.kind = optimizer_kind::adamw;
  batch_result const found = optimize_batch(lower(net, {batch = 1}), 64, cluster, analytical{}, options);
  if (!found.feasible()) return std::printf("device %d lacks memory\n", found.infeasible->device), 1;
  for (batch_candidate const& c : found.tried)
    if (c.feasible()) std::printf("%s, %d micro-batches, %d stages: %.3f ms\n", c.what.c_str(), c.micro_batches, c.stages, 1e3 * c.seconds);
  planned_step const step = step_for<compute::eigen<float>>(found.graph, found.plan);   // the program, whatever the kind of plan
  require_accepted(check(step.graph, step.plan, step.program), "plan");
  executor<compute::eigen<float>, comm::threads> run(step);                             // or at once: run(found.graph, found.plan)
  run.initialise(1);
  host_batch data{{"x", {{64, 256}, std::vector<float>(64 * 256, 0.5f), {}}},
                  {"label", {shape({64}, dtype::i32), {}, std::vector<std::int32_t>(64, 3)}}};
  for (int k = 0; k < 3; ++k) std::printf("loss %.4f\n", run.step(data, 0.001).loss);
}
// [end]
