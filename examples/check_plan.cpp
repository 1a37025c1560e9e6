// examples/check_plan.cpp - a plan that is sealed and kept, then run beside serial training in a prime field
#include "scratch_folder.hpp"
#include "standard_output.hpp"
#include <cstdio>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/plan/plan_file.hpp>
#include <tensorpar/program/evidence/certificate.hpp>
#include <tensorpar/search/intra/optimize.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;
constexpr axis batch{"batch"}, features{"features"}, classes{"classes"};

struct mlp {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(16)});
    auto label = g.input("label", {batch}, dtype::i32);
    g.output("loss", all(x | linear{32} | relu{} | linear{.out = 4, .to = classes}, label) | cross_entropy{});
  }
};

// [quoted: check]
/// All parameters after some steps, in a field where equal programs give equal numbers.
std::vector<std::vector<prime_field>> trained(training_graph const& step, plan const& p, host_batch const& data) {
  executor<compute::eigen<prime_field>, comm::threads> run(step, p);
  run.initialise(1);
  for (int k = 0; k < 3; ++k) run.step(data, 0.125);
  std::vector<std::vector<prime_field>> all;
  for (std::size_t x = 0; x < step.gradient.size(); ++x)
    if (step.graph.values[x].role == value_role::parameter) all.push_back(run.fetch(static_cast<int>(x)));
  return all;
}
// [end]

// [quoted: plan]
plan planned(computation_graph const& graph, machine const& cluster) {
  search_options o;
  o.micro_batches = 2;
  o.optimizer.kind = optimizer_kind::momentum;
  search_result found = optimize(graph, cluster, analytical{}, o);
  if (!found.feasible()) throw error(text_of(*found.infeasible), "planned", "more memory or more devices");
  plan p = std::move(found.plan);
  seal(graph, p);                                                                // peak_bytes, and what its program is known by
  saving_step const s = save_memory(differentiate(graph, training_of(p)), p);    // the graph of the step, as the executor has it
  p.step_seconds = simulate(unroll(s.graph, s.plan), p.cluster, analytical{}).seconds;
  return p;
}
// [end]

int main() {
  computation_graph const graph = lower(typed<mlp>, {batch = 8});
  scratch_folder const folder;
  std::string const file = folder.path() + "/plan.json";
  write_plan(planned(graph, logical(4)), file);
  host_batch data{{"x", {{16, 16}, std::vector<float>(16 * 16, 0.5f), {}}},      // two micro-batches of 8
                  {"label", {shape({16}, dtype::i32), {}, std::vector<std::int32_t>(16, 3)}}};
  for (std::size_t i = 0; i < data["x"].real.size(); ++i) data["x"].real[i] = static_cast<float>(i % 7);
  // [quoted: use]
  plan const p = read_plan(file);
  training_graph const step = differentiate(graph, training_of(p));              // the plan's optimizer and micro-batches
  bool const equal = trained(step, p, data) == trained(step, one_device_plan(graph, p), data);
  // [end]
  std::printf("%d devices, %.3g s a step, at most %lld bytes: %s serial training\n", p.cluster.size(), p.step_seconds,
              static_cast<long long>(*std::max_element(p.peak_bytes.begin(), p.peak_bytes.end())), equal ? "equal to" : "NOT");
  return equal ? 0 : 1;
}
