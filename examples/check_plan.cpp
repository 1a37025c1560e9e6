// examples/check_plan.cpp - a plan that is kept in a file, then trained beside one device in a prime field
#include "scratch_folder.hpp"
#include "standard_output.hpp"
#include <algorithm>
#include <cstdio>
#include <map>
#include <tensorpar/plan.hpp>
#include <tensorpar/run.hpp>

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
/// All parameters by name after some steps, in a field where equal programs give equal numbers.
template <class Run> std::map<std::string, std::vector<prime_field>> trained(Run run, host_batch const& data) {
  run.initialise(1);
  for (int k = 0; k < 3; ++k) run.step(data, 0.125);
  std::map<std::string, std::vector<prime_field>> all;
  computation_graph const& g = run.graph().graph;
  for (std::size_t x = 0; x < run.graph().gradient.size(); ++x)
    if (g.values[x].role == value_role::parameter) all[g.values[x].name] = run.fetch(static_cast<int>(x));
  return all;
}
using planned_run = trainer<compute::eigen<prime_field>, comm::threads>;
using serial_run = executor<compute::eigen<prime_field>, comm::threads>;
// [end]

int main() {
  scratch_folder const folder;
  std::string const file = folder.path() + "/plan.json";
  // [quoted: plan]
  training_problem const problem{.graph = lower(typed<mlp>, {batch = 1}), .samples = 16, .optimizer = {optimizer_kind::momentum}};
  planned const found = plan_training(problem, preset("logical:4"), cost::analytical{});
  if (!found.feasible()) throw error(text_of(*found.infeasible), "planning", "more memory or more devices");
  write_plan(found.plan, file);
  // [end]
  host_batch data{{"x", host_tensor::reals({16, 16}, std::vector<float>(16 * 16))},
                  {"label", host_tensor::integers({16}, std::vector<std::int32_t>(16, 3))}};
  for (std::size_t i = 0; i < data["x"].real.size(); ++i) data["x"].real[i] = static_cast<float>(i % 7);
  // [quoted: use]
  plan const p = read_plan(file);
  computation_graph const whole = ir::rebatch(problem.graph, 16);                    // the batch on one device
  plan const one = one_device_plan(whole, training_options{"loss", p.optimizer});
  bool const equal = trained(planned_run(problem, p), data) == trained(serial_run(whole, one), data);
  // [end]
  std::printf("%d devices, %.3g s a step, at most %lld bytes: %s serial training\n", p.cluster.size(), p.step_seconds,
              static_cast<long long>(*std::max_element(p.peak_bytes.begin(), p.peak_bytes.end())), equal ? "equal to" : "NOT");
  return equal ? 0 : 1;
}
