// tests/exec/micro_batches.test.cpp - a step does the same however its batch is cut into micro-batches
#include <tensorpar/exec/executor.hpp>

#include <doctest/doctest.h>

#include "support/spine.hpp"
#include <functional>
#include <tensorpar/op/operators.hpp>

using namespace tests;

namespace {

using network = std::function<computation_graph(i64 samples)>;

template <class S> std::vector<std::vector<S>> trained(network const& net, host_batch const& data, i64 samples, training_options const& o) {
  computation_graph const g = net(samples / o.micro_batches);
  executor_of<S> run(g, one_device_plan(g, o));
  run.initialise(1);
  for (int k = 0; k < 3; ++k) run.step(data, 0.1);
  return parameters_of(run);
}

/// Every number of micro-batches that divides 60 and 84: all up to 7, and 10, 12, 14, 15, 20.
void equal_in_parts(network const& net, training_options o) {
  for (i64 samples : {60, 84}) {
    host_batch const data = random_batch(net(samples), 1, 1);
    o.micro_batches = 1;
    auto const whole = trained<prime_field>(net, data, samples, o);
    auto const real = trained<double>(net, data, samples, o);
    for (int micro : {2, 3, 4, 5, 6, 7, 10, 12, 14, 15, 20}) {
      if (samples % micro) continue;
      CAPTURE(micro);
      o.micro_batches = micro;
      bool const same = trained<prime_field>(net, data, samples, o) == whole;
      CHECK(same);
      CHECK(distance(trained<double>(net, data, samples, o), real) < 1e-11);
    }
  }
}

}  // namespace

TEST_CASE("means over elements, in any number of micro-batches") {
  equal_in_parts(
      [](i64 samples) {
        computation_graph g;
        int const x = g.add_input("x", {samples, 3}), y = g.add_input("y", {samples, 3});
        int h = out(g, g.add_with_weights(linear{3}, {x}, "a"));
        h = out(g, g.add_with_weights(layernorm{}, {h}, "norm"));
        h = out(g, g.add_with_weights(rmsnorm{}, {h}, "rms"));
        h = out(g, g.add(scale{1.0 / 3}, {h}));
        g.add_output("loss", out(g, g.add(mean_squared_error{}, {h, y})));
        return g;
      },
      {.optimizer = {.kind = optimizer_kind::momentum, .weight_decay = 0.01}});
}

TEST_CASE("pools, averages and dropout, in any number of micro-batches") {
  equal_in_parts(
      [](i64 samples) {
        computation_graph g;
        int const x = g.add_input("x", {samples, 1, 5, 5}), labels = g.add_input("labels", shape({samples}, dtype::i32));
        int h = out(g, g.add_with_weights(conv2d{.out = 3}, {x}, "conv"));
        h = out(g, g.add(avg_pool(3, 1), {h}));
        h = out(g, g.add(dropout{0.3, 4}, {h}));
        h = out(g, g.add(global_average{}, {h}));
        h = out(g, g.add_with_weights(linear{12}, {h}, "head"));
        g.add_output("loss", out(g, g.add(cross_entropy{}, {h, labels})));
        return g;
      },
      {.optimizer = {.clip_norm = 0.3}});
}

TEST_CASE("a written ratio is the ratio of what was written") {
  using field = prime_field;
  for (i64 n = 1; n < 300; ++n) {
    CHECK(constant_of<field>(1.0 / static_cast<double>(n)) * field(n) == field(1));
    CHECK(constant_of<field>(-7.0 / static_cast<double>(n)) * field(n) == field(-7));
  }
  CHECK(constant_of<field>(0.1) * field(10) == field(1));
  CHECK(constant_of<field>(0.375) == field::from_double(0.375));
  CHECK(constant_of<field>(1 / std::sqrt(2.0)) == field::from_double(1 / std::sqrt(2.0)));
  CHECK(rest_to_one<field>(0.9) * field(10) == field(1));
  CHECK(over_rest_to_one<field>(0.9) == field(10));
  CHECK(over_rest_to_one<field>(0.5, 3) * field(7) == field(8));
  CHECK(constant_of<float>(0.1) == 0.1f);
  CHECK(rest_to_one<double>(0.9) == 1 - 0.9);
  CHECK(over_rest_to_one<double>(0.9, 2) == 1 / (1 - std::pow(0.9, 2.0)));
}
