// examples/tutorial.cpp - from a model to a resumed run: declare, plan, look, check, train, save, resume
#include "scratch_folder.hpp"
#include "standard_output.hpp"
#include <algorithm>
#include <cstdio>
#include <map>
#include <tensorpar/core/whole_file.hpp>
#include <tensorpar/plan.hpp>
#include <tensorpar/report/page/html.hpp>
#include <tensorpar/report/text.hpp>
#include <tensorpar/run.hpp>
#include <tensorpar/simulate/engine.hpp>

using namespace tensorpar;

// [quoted: model]
constexpr axis batch{"batch"}, features{"features"}, classes{"classes"};

struct classifier {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, features(64)});
    auto label = g.input("label", {batch}, dtype::i32);
    auto logits = x | repeat<3>(seq(linear{64}, relu{})) | linear{.out = 8, .to = classes};
    g.output("logits", logits);
    g.output("loss", all(logits, label) | cross_entropy{});
  }
};
constexpr auto net = typed<classifier>;
static_assert(parameters(net) == 3 * (64 * 64 + 64) + 64 * 8 + 8);
// [end]

// [quoted: data]
/// Sample i of a step is a one at some place, and its class is that place modulo 8.
host_batch batch_of(u64 step) {
  std::vector<float> x(32 * 64);
  std::vector<std::int32_t> label(32);
  for (std::size_t i = 0; i < 32; ++i) {
    std::size_t const place = (7 * i + step) % 64;
    x[i * 64 + place] = 1;
    label[i] = static_cast<std::int32_t>(place % 8);
  }
  return {{"x", host_tensor::reals({32, 64}, x)}, {"label", host_tensor::integers({32}, label)}};
}
// [end]

// [quoted: check]
/// All parameters by name after two steps, in a field where equal programs give equal numbers.
template <class Run> std::map<std::string, std::vector<prime_field>> trained(Run run) {
  run.initialise(1);
  for (u64 k = 0; k < 2; ++k) run.step(batch_of(k), 0.125);
  std::map<std::string, std::vector<prime_field>> all;
  computation_graph const& g = run.graph().graph;
  for (std::size_t x = 0; x < run.graph().gradient.size(); ++x)
    if (g.values[x].role == value_role::parameter) all[g.values[x].name] = run.fetch(static_cast<int>(x));
  return all;
}
bool computes_what_one_device_does(training_problem const& problem, planned const& found) {
  computation_graph const whole = ir::rebatch(problem.graph, problem.samples);
  plan const alone = one_device_plan(whole, training_options{problem.loss, problem.optimizer});
  return trained(trainer<compute::eigen<prime_field>, comm::threads>(found)) ==
         trained(executor<compute::eigen<prime_field>, comm::threads>(whole, alone));
}
// [end]

// [quoted: train]
using my_trainer = trainer<compute::eigen<float>, comm::threads>;

/// Trains up to so many steps, from where the last run was saved.
void train(my_trainer& run, u64 steps, std::string const& folder) {
  if (found_checkpoint const last = latest_checkpoint(folder)) load_checkpoint(run, last.path);
  else run.initialise(1);
  while (run.steps() < steps) run.step(batch_of(run.steps()), 0.01);
  save_checkpoint(run, folder);
}
// [end]

int main() {
  scratch_folder const scratch;
  std::string const page = scratch.path() + "/plan.html", file = scratch.path() + "/plan.json", folder = scratch.path() + "/run";
  // [quoted: plan]
  training_problem problem{.graph = lower(net, {batch = 1}), .samples = 32, .optimizer = {optimizer_kind::adamw}};
  problem.scratch = exec::scratch_of<compute::eigen<float>>();        // of the kernels that will run it
  machine const four = preset("logical:4");
  planned const found = plan_training(problem, four, cost::analytical{});
  if (!found.feasible()) throw error(text_of(*found.infeasible), "planning", "more memory or more devices");
  for (tried_plan const& c : found.tried)
    if (c.feasible()) std::printf("%s, %d micro-batches: %.3f ms\n", c.what.c_str(), c.micro_batches, 1e3 * c.seconds);
  // [end]
  // [quoted: look]
  planned_step const& step = found.step;
  timeline const predicted = simulate(step.program, four, cost::analytical{});
  std::printf("%s", report::explain(step.graph, step.plan, step.program, predicted).c_str());
  core::write_whole_file(page, report::html_report(step.graph, step.plan, step.program, predicted));
  // [end]
  if (!computes_what_one_device_does(problem, found)) return std::printf("the plan computes something else\n"), 1;
  // [quoted: first]
  write_plan(found.plan, file);
  my_trainer first(problem, read_plan(file));                   // a program of its own needs no search
  train(first, 60, folder);
  // [end]
  // [quoted: resumed]
  my_trainer second(plan_training(problem, preset("logical:2"), cost::analytical{}));      // two devices are left
  train(second, 120, folder);                                   // goes on from step 60
  // [end]
  // [quoted: use]
  double const loss = second.evaluate(batch_of(1000));
  std::vector<float> const logits = second.evaluate(batch_of(1000), {"logits"}).at("logits");   // [32, 8], row by row
  // [end]
  int right = 0;
  for (std::size_t i = 0; i < 32; ++i) {
    auto const row = logits.begin() + static_cast<std::ptrdiff_t>(i * 8);
    right += std::max_element(row, row + 8) - row == batch_of(1000).at("label").index[i];
  }
  std::printf("%llu steps, loss %.4f, %d of 32 right\n", static_cast<unsigned long long>(second.steps()), loss, right);
  return right > 28 ? 0 : 1;
}
