// tests/exec/forward_pass.test.cpp - evaluating what was trained
#include <tensorpar/exec/forward_pass.hpp>

#include <doctest/doctest.h>
#include <tensorpar/plan/tasks.hpp>
#include <tensorpar/typed/typed.hpp>

#include "support/spine.hpp"

using namespace tests;

TEST_CASE("the loss of a forward pass is the loss of the training step, whatever the plan") {
  for (computation_graph const& g : {residual_mlp(), small_transformer()}) {
    std::mt19937 draw(3);
    executor_of<double> e(differentiate(g), random_plan(g, 4, draw));
    e.initialise(2);
    e.step(random_batch(g, 1, 1), 0.1);
    forward_pass<compute::eigen<double>> f(g);
    f.take_parameters(e);
    host_batch const b = random_batch(g, 1, 2);
    f.run(b);
    double const loss = f.output("loss").at(0);
    CHECK(loss == doctest::Approx(e.step(b, 0).loss).epsilon(1e-12));
  }
}

namespace {
struct two_dropouts {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {64, 32});
    auto w = g.weight("w", {64, 32}, init::ones);
    g.output("loss", all(all(x | dropout{0.5, 1}, w) | mul{}, x | dropout{0.5, 1}) | mean_squared_error{});
  }
};
}  // namespace

TEST_CASE("nothing is dropped out when evaluating, and two equal dropouts of a model draw differently when training") {
  computation_graph const g = lower(typed<two_dropouts>);
  host_batch batch{{"x", {{64, 32}, std::vector<float>(64 * 32, 1), {}}}};
  executor_of<double> e(differentiate(g), serial_plan(g));
  e.initialise(1);
  CHECK(e.step(batch, 0).loss > 0.5);            // (2 - 0)^2 where the masks differ: about half of the elements
  forward_pass<compute::eigen<double>> f(g);
  f.take_parameters(e);
  f.run(batch);
  CHECK(f.output("loss").at(0) == 0);
}

TEST_CASE("what is missing is named") {
  computation_graph const g = residual_mlp();
  forward_pass<compute::eigen<double>> f(g);
  CHECK_THROWS_WITH_AS(f.run(random_batch(g, 1, 1)), doctest::Contains("have no values yet"), error);
  executor_of<double> e(differentiate(g), serial_plan(g));
  e.initialise(1);
  f.take_parameters(e);
  CHECK_THROWS_WITH_AS(f.output("loss"), doctest::Contains("no pass has ended well"), error);
  CHECK_THROWS_WITH_AS(f.run({}), doctest::Contains("lacks input"), error);
  CHECK_THROWS_WITH_AS(f.output("loss"), doctest::Contains("no pass has ended well"), error);
  f.run(random_batch(g, 1, 1));
  CHECK_THROWS_WITH_AS(f.output("nothing"), doctest::Contains("no output 'nothing'"), error);
  executor_of<double> other(differentiate(small_transformer()), serial_plan(small_transformer()));
  CHECK_THROWS_WITH_AS(f.take_parameters(other), doctest::Contains("no parameter"), error);
}
