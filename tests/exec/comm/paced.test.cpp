// tests/exec/comm/paced.test.cpp - paced operators take their time and compute the same
#include <tensorpar/exec/comm/paced.hpp>

#include <doctest/doctest.h>

#include "support/random_pipeline.hpp"
#include "support/spine.hpp"
#include <tensorpar/simulate/engine.hpp>

using namespace tests;

namespace {
double one_millisecond(tensorpar::op::any_op const& o, shapes, shapes) { return o.is<linear>() || o.is<contraction>() ? 1e-3 : 0; }
struct same_price {
  double seconds(tensorpar::cost::compute_query const& q) const { return one_millisecond(q.op, q.in, q.out); }
  double seconds(tensorpar::cost::reshard_query const&) const { return 0; }
};
}  // namespace

TEST_CASE("no step is faster than the simulation of its prices, and results do not change") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(6);
  for (int i = 0; i < 4; ++i) {
    plan const p = random_pipeline(g, {.devices = 2 + i}, 1, 4, draw);
    planned_step const s = tensorpar::passes::pipeline_pass(g, p);
    executor<compute::paced<compute::eigen<double>, one_millisecond>, comm::threads> slow(s);
    executor_of<double> fast(s);
    slow.initialise(1);
    fast.initialise(1);
    host_batch const b = random_batch(g, 4, 3);
    double const measured = slow.step(b, 0.125).seconds;
    fast.step(b, 0.125);
    CHECK(measured >= simulate(slow.program(), p.cluster, same_price{}, {.overlap = true, .memory = false}).seconds);
    CHECK(parameters_of(slow) == parameters_of(fast));
  }
}
