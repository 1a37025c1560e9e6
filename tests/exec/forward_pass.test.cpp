// tests/exec/forward_pass.test.cpp - evaluating what was trained
#include <tensorpar/exec/forward_pass.hpp>

#include <doctest/doctest.h>
#include <tensorpar/program/unroll.hpp>

#include "support/spine.hpp"
#include "support/typed_models.hpp"

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

TEST_CASE("nothing is dropped out when evaluating, and two equal dropouts of a model draw differently when training") {
  computation_graph const g = lower(typed<models::two_dropouts>);
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
  CHECK_THROWS_WITH_AS(f.run({}), doctest::Contains("lacks input"), error);
  host_batch const b = random_batch(g, 1, 1);
  CHECK_THROWS_WITH_AS(f.run(b), doctest::Contains("has no values yet (at forward_pass); valid: take_parameters"), error);
  CHECK_THROWS_WITH_AS(f.output("loss"), doctest::Contains("output 'loss' has no values yet"), error);
  CHECK_THROWS_WITH_AS(f.store(-1, {}), doctest::Contains("value -1 is no parameter"), error);
  CHECK_THROWS_WITH_AS(f.fetch(g.output("loss")), doctest::Contains("is no parameter"), error);
  CHECK_THROWS_WITH_AS(f.output("nothing"), doctest::Contains("no output 'nothing'"), error);
  executor_of<double> other(differentiate(small_transformer()), serial_plan(small_transformer()));
  CHECK_THROWS_WITH_AS(f.take_parameters(other), doctest::Contains("the executor's parameters have no values yet"), error);
  other.initialise(1);
  CHECK_THROWS_WITH_AS(f.take_parameters(other), doctest::Contains("no parameter"), error);
}

TEST_CASE("a bad batch is named, and the next one is passed as if nothing had happened") {
  computation_graph const g = small_transformer();
  executor_of<double> e(differentiate(g), serial_plan(g));
  e.initialise(3);
  forward_pass<compute::eigen<double>> f(g);
  f.take_parameters(e);
  host_batch const good = random_batch(g, 1, 1);
  f.run(good);
  auto const loss = f.output("loss");
  auto const refuses = [&](char const* words, auto const& change) {
    host_batch b = good;
    change(b);
    CHECK_THROWS_WITH_AS(f.run(b), doctest::Contains(words), error);
    f.run(good);
    CHECK(f.output("loss") == loss);
  };
  refuses("input 'tokens' holds 12 at [3, 5] (at batch); valid: 0 to 11, for embedding 'embed'", [](host_batch& b) { b["tokens"].index[23] = 12; });
  refuses("input 'labels' holds -1 at [0, 0]", [](host_batch& b) { b["labels"].index[0] = -1; });
  refuses("the batch has 'mask', which is no input of the model (at forward_pass)", [](host_batch& b) { b["mask"]; });
  refuses("input 'labels' is given real numbers", [](host_batch& b) { b["labels"] = {b["labels"].shape, std::vector<float>(24), {}}; });
  refuses("input 'labels' has shape [3,6]i32", [](host_batch& b) { b["labels"].shape.d[0].n = 3; });
}

TEST_CASE("a pass whose parameters were stored one by one is the pass, time after time") {
  computation_graph const g = small_transformer();
  executor_of<double> e(differentiate(g), serial_plan(g));
  e.initialise(3);
  forward_pass<compute::eigen<double>> a(g), b(g);
  a.take_parameters(e);
  for (int x = 0; x < static_cast<int>(g.values.size()); ++x)
    if (g.value(x).role == value_role::parameter) {
      CHECK_THROWS_WITH_AS(b.store(x, {1, 2}), doctest::Contains("is given 2 elements"), error);
      b.store(x, e.fetch(x));
      CHECK(b.fetch(x) == a.fetch(x));
    }
  for (u64 k = 0; k < 3; ++k) {
    host_batch const batch = random_batch(g, 1, k);
    a.run(batch);
    b.run(batch);
    CHECK(a.output("loss") == b.output("loss"));
  }
  CHECK_THROWS_AS(b.run({}), error);
  CHECK_THROWS_WITH_AS(b.output("loss"), doctest::Contains("a pass that came to its end"), error);
  forward_pass<compute::eigen<double>> moved = std::move(a);
  moved.run(random_batch(g, 1, 2));
  CHECK(moved.output("loss").size() == 1);
}
