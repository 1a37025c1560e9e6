// tests/exec/step/step_check.test.cpp - what a step refuses before it begins, and that the executor is as good as before
#include <tensorpar/exec/step/step_check.hpp>

#include <doctest/doctest.h>
#include <limits>

#include "support/spine.hpp"

using namespace tests;

TEST_CASE("rates that are no finite numbers from 0 are refused, and change nothing") {
  computation_graph const g = residual_mlp();
  executor_of<float> run(differentiate(g), serial_plan(g));
  run.initialise(1);
  auto const before = parameters_of(run);
  host_batch const b = random_batch(g, 1, 1);
  for (double bad : {std::nan(""), -0.1, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), 1e300})
    CHECK_THROWS_WITH_AS(run.step(b, bad), doctest::Contains("a finite number from 0 to 3.4e+38"), error);
  CHECK(parameters_of(run) == before);
  CHECK(run.steps() == 0);
  CHECK_FALSE(run.failed());
  CHECK_NOTHROW(run.step(b, 0));
  CHECK(parameters_of(run) == before);
  executor_of<double> wide(differentiate(g), serial_plan(g));
  wide.initialise(1);
  CHECK_NOTHROW(wide.step(b, 1e300));                  // finite in this scalar
  CHECK_THROWS_WITH_AS(wide.step(b, std::nan("")), doctest::Contains("a learning rate of nan (at step)"), error);
}

TEST_CASE("an input without axes is one number for all micro-batches") {
  computation_graph g;
  int const x = g.add_input("x", {4, 6}), w = g.add_parameter("w", {6}, tensorpar::op::init::ones), factor = g.add_input("factor", {});
  int const y = out(g, g.add(contraction("bi,i->b"), {x, w}));
  int const loss = out(g, g.add(mean_squared_error{}, {y, g.add_input("y", {4})}));
  g.add_output("loss", out(g, g.add(mul{}, {loss, factor})));
  auto const trained = [&](int micro_batches, std::vector<float> const& factors) {
    training_options o;
    o.micro_batches = micro_batches;
    plan p = serial_plan(g);
    p.micro_batches = micro_batches;
    executor_of<double> run(differentiate(g, o), p);
    run.initialise(1);
    i64 const rows = 4 * micro_batches;
    host_batch b{{"x", {{rows, 6}, std::vector<float>(static_cast<std::size_t>(rows * 6), 0.5f), {}}},
                 {"y", {{rows}, std::vector<float>(static_cast<std::size_t>(rows), 0.25f), {}}},
                 {"factor", {{}, factors, {}}}};
    double const first = run.step(b, 0.25).loss;
    return std::pair{first, run.fetch(w)};
  };
  CHECK(trained(3, {2}) == trained(1, {2}));
  CHECK(trained(3, {2}).first == 2 * 2.75 * 2.75);
  CHECK_THROWS_WITH_AS(trained(3, {2, 2, 2}), doctest::Contains("input 'factor' has 3 real numbers (at batch); valid: 1"), error);
}
