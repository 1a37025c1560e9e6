// tests/exec/step/step_for.test.cpp - an executor takes any plan of a forward graph, and trains as one device does
#include <tensorpar/exec/step/step_for.hpp>

#include <doctest/doctest.h>

#include <tensorpar/program/evidence/certificate.hpp>

#include "support/random_pipeline.hpp"
#include "support/spine.hpp"

using namespace tests;

namespace {
template <class E> auto parameters_after_two(E& e, computation_graph const& g, int parts) {
  e.initialise(3);
  for (u64 k = 0; k < 2; ++k) e.step(random_batch(g, parts, k), 0.125);
  return parameters_of(e);
}
}  // namespace

TEST_CASE("shardings, savings and pipelines by one constructor: exactly the parameters of one device") {
  computation_graph const g = small_transformer();
  std::mt19937 draw(11);
  for (int trial = 0; trial < 9; ++trial) {
    CAPTURE(trial);
    plan p = random_plan_of_a_kind(g, trial, draw);
    p.graph = g.hash();
    int const parts = p.pipeline.empty() ? p.micro_batches : static_cast<int>(p.pipeline.mini_batch);
    executor_of<prime_field> one(g, one_device_plan(g, training_options{"loss", p.optimizer, parts}));
    executor_of<prime_field> all(g, p);
    auto const wanted = parameters_after_two(one, g, parts);
    CHECK(parameters_after_two(all, g, parts) == wanted);
    executor_of<prime_field> made(tensorpar::exec::step_for<compute::eigen<prime_field>>(g, p));
    CHECK(made.program().scalar_bytes == sizeof(prime_field));
    CHECK(parameters_after_two(made, g, parts) == wanted);
  }
}

TEST_CASE("what a plan was sealed with is what its step has to be, and kernels have to be there") {
  computation_graph const g = residual_mlp();
  plan p = serial_plan(g);
  p.graph = g.hash();
  seal(g, p);
  CHECK_NOTHROW(tensorpar::exec::step_for<compute::eigen<float>>(g, p));
  ++p.tasks;
  CHECK_THROWS_WITH_AS(tensorpar::exec::step_for<compute::eigen<float>>(g, p), doctest::Contains("sealed"), error);
  p.tasks = 0;
  CHECK_THROWS_WITH_AS(tensorpar::exec::step_for<compute::eigen<float>>(small_cnn(), p), doctest::Contains("another graph"), error);
}
