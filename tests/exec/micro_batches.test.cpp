// tests/exec/micro_batches.test.cpp - a step does the same however its batch is cut into micro-batches
#include <tensorpar/exec/executor.hpp>

#include <doctest/doctest.h>

#include "support/effort.hpp"
#include "support/random_pipeline.hpp"
#include "support/spine.hpp"
#include "support/teams_once.hpp"
#include <array>
#include <functional>
#include <tensorpar/check/check.hpp>
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

/// Dropout behind a way that moves samples, and what undoes it.
computation_graph dropping(i64 samples, int way, double rate = 0.5) {
  computation_graph g;
  int const x = g.add_input("x", {samples, 3, 4}), y = g.add_input("y", {samples, 3, 4});
  auto const made = [&](tensorpar::op::any_op const& o, std::vector<value_id> in) { return out(g, g.add(o, in)); };
  tensorpar::op::any_op const drop = dropout{rate, 3};
  int h = out(g, g.add_with_weights(linear{4}, {x}, "l"));
  if (way == 0) h = made(drop, {h});
  if (way == 1) h = made(transpose{0, 1}, {made(drop, {made(transpose{0, 1}, {h})})});                       // [s, b, e]
  if (way == 2) h = made(transpose{0, 2}, {made(drop, {made(transpose{0, 2}, {h})})});                       // [e, s, b]
  if (way == 3) h = made(split_axis{0, 3}, {made(drop, {made(merge_axes{0}, {h})})});                        // [b s, e]
  if (way == 4)                                                                                              // [s b, e]
    h = made(transpose{0, 1}, {made(split_axis{0, samples}, {made(drop, {made(merge_axes{0}, {made(transpose{0, 1}, {h})})})})});
  if (way == 5) {                                                                                            // [e, s b], as of a product
    int const rows = made(merge_axes{0}, {made(transpose{0, 1}, {h})});
    int const back = made(transpose{0, 1}, {made(drop, {made(contraction("me->em"), {rows})})});
    h = made(transpose{0, 1}, {made(reshape{0, 3, {3, samples, 4}}, {back})});
  }
  if (way == 6) {                                                                                            // heads first: [h, b, s, e]
    int const heads = made(transpose{0, 2}, {made(transpose{1, 2}, {made(split_axis{2, 2}, {h})})});
    h = made(merge_axes{2}, {made(transpose{1, 2}, {made(transpose{0, 2}, {made(drop, {heads})})})});
  }
  if (way == 7) {                                                                                            // of a weight: without samples
    int const w = g.add_parameter("w", {4, 4}, tensorpar::op::init::fan_in);
    h = made(contraction("bse,oe->bso"), {h, made(drop, {w})});
  }
  if (way == 8) h = made(dropout{0.25, 3}, {made(transpose{0, 1}, {made(drop, {made(transpose{0, 1}, {h})})})});   // two of one seed
  g.add_output("loss", made(mean_squared_error{}, {h, y}));
  return g;
}
constexpr int ways = 9;

TEST_CASE("what is dropped is told by the whole batch, whichever axis holds samples") {
  for (int way = 0; way < ways; ++way) {
    CAPTURE(way);
    equal_in_parts([way](i64 samples) { return dropping(samples, way); }, {.optimizer = {.kind = static_cast<optimizer_kind>(way % 3)}});
    CHECK(trained<prime_field>([way](i64 n) { return dropping(n, way); }, random_batch(dropping(4, way), 1, 2), 4, {}) !=
          trained<prime_field>([](i64 n) { return dropping(n, 0, 0.25); }, random_batch(dropping(4, 0), 1, 2), 4, {}));
  }
}

TEST_CASE("the same under shardings over devices, recomputed, and on machines of many lanes") {
  std::mt19937 draw(3);
  for (int trial = 0; trial < test_effort::cases(40); ++trial) {
    int const way = trial % ways, micro = 1 + trial % 4;
    CAPTURE(way);
    CAPTURE(micro);
    computation_graph const g = dropping(12 / micro, way);
    host_batch const data = random_batch(dropping(12, way), 1, 5);
    training_options const o{"loss", {}, micro};
    auto const whole = trained<prime_field>([way](i64 n) { return dropping(n, way); }, data, 12, {});
    plan p = random_plan(g, 1 + trial % 5, draw);
    p.micro_batches = micro;
    for (op_strategy& c : p.nodes) c.recompute = trial % 2 == 1;
    executor_of<prime_field> run(g, p);
    executor<compute::teams<prime_field, tensorpar::exec::host_teams<>>, comm::threads> lanes(g, p);
    run.initialise(1);
    lanes.initialise(1);
    for (int k = 0; k < 3; ++k) run.step(data, 0.1), lanes.step(data, 0.1);
    bool const same = parameters_of(run) == whole, same_in_lanes = parameters_of(lanes) == whole;
    CHECK(same);
    CHECK(same_in_lanes);
  }
}

TEST_CASE("the same in pipelines whose stages have other micro-batches") {
  std::mt19937 draw(4);
  for (int trial = 0; trial < test_effort::cases(60); ++trial) {
    int const way = std::array{0, 1, 2, 6, 8}[static_cast<std::size_t>(trial % 5)];      // `rebatch` refuses to merge samples
    CAPTURE(way);
    i64 const unit = 1 + trial % 3, mini_batch = unit * 12;
    computation_graph const g = dropping(unit, way);
    host_batch const data = random_batch(dropping(mini_batch, way), 1, 6);
    plan p = random_pipeline(g, {.devices = 2 + trial % 3}, unit, mini_batch, draw);
    executor_of<prime_field> run(tensorpar::passes::pipeline_pass(g, p));
    run.initialise(1);
    for (int k = 0; k < 3; ++k) run.step(data, 0.1);
    bool const same = parameters_of(run) == trained<prime_field>([way](i64 n) { return dropping(n, way); }, data, mini_batch, {});
    CHECK(same);
  }
}

TEST_CASE("where samples cannot be told, several micro-batches are refused, and one is not") {
  computation_graph g;
  int const x = g.add_input("x", {4, 3});
  int const h = out(g, g.add_with_weights(linear{3}, {x}, "l"));
  int const all = out(g, g.add(dropout{0.5, 1}, {out(g, g.add(contraction("ae,be->ab"), {h, h}))}, "pairs"));
  g.add_output("loss", out(g, g.add(mean_squared_error{}, {all, all})));
  CHECK_NOTHROW(differentiate(g));
  CHECK_THROWS_WITH_AS(differentiate(g, {"loss", {}, 2}),
                       doctest::Contains("dropout 'pairs' on [4,4] cannot tell along which axis samples lie"), error);
}

/// A network whose loss is the sum of its samples' terms in one of several ways; 3: their mean plus what no sample changes.
computation_graph summing(i64 samples, int way) {
  computation_graph g;
  int const x = g.add_input("x", {samples, 3, 4}), y = g.add_input("y", {samples, 3, 4});
  auto const made = [&](tensorpar::op::any_op const& o, std::vector<value_id> in) { return out(g, g.add(o, in)); };
  int const h = out(g, g.add_with_weights(linear{4}, {x}, "l"));
  int loss = -1;
  if (way == 0) loss = made(contraction("bse,bse->"), {h, y});
  if (way == 1)
    loss = made(tensorpar::op::sum_axis{0},
                {made(tensorpar::op::sum_axis{1}, {made(transpose{0, 1}, {made(contraction("bse,bse->bs"), {h, y})})})});
  if (way == 2) loss = made(scale{2.5}, {made(add{}, {made(contraction("bse,bse->"), {h, h}), made(contraction("bse,bse->"), {h, y})})});
  if (way == 3) {
    int const w = g.add_parameter("w", {4}, tensorpar::op::init::ones);
    loss = made(add{}, {made(mean_squared_error{}, {h, y}), made(contraction("e,e->"), {w, w})});
  }
  g.add_output("loss", loss);
  return g;
}

TEST_CASE("a loss is the sum or the mean that it is in any number of micro-batches, and so are its gradients") {
  for (int way = 0; way < 4; ++way) {
    CAPTURE(way);
    network const net = [way](i64 samples) { return summing(samples, way); };
    equal_in_parts(net, {.optimizer = {.kind = static_cast<optimizer_kind>(way % 2)}});
    host_batch const data = random_batch(net(12), 1, 8);
    double whole = 0;
    for (int micro : {1, 2, 3, 4, 6, 12}) {
      executor_of<double> run(net(12 / micro), one_device_plan(net(12 / micro), training_options{"loss", {}, micro}));
      run.initialise(1);
      double const loss = run.step(data, 0.1).loss;
      if (micro == 1) whole = loss;
      CHECK(loss == doctest::Approx(whole).epsilon(1e-12));
      CHECK(run.plan_value().reduction == (way < 3 ? loss_reduction::sum : loss_reduction::mean));
    }
  }
}

TEST_CASE("the same in pipelines; a plan that says otherwise is refused") {
  std::mt19937 draw(9);
  for (int trial = 0; trial < test_effort::cases(30); ++trial) {
    int const way = trial % 3;
    CAPTURE(way);
    i64 const unit = 1 + trial % 2, mini_batch = unit * (trial % 3 == 0 ? 12 : 6);
    network const net = [way](i64 samples) { return summing(samples, way); };
    host_batch const data = random_batch(net(mini_batch), 1, 10);
    plan p = random_pipeline(net(unit), {.devices = 2 + trial % 3, .sizes = way == 0}, unit, mini_batch, draw);
    CHECK_THROWS_WITH_AS(tensorpar::passes::pipeline_pass(net(unit), p), doctest::Contains("is a sum over samples, not a mean"), error);
    p.reduction = loss_reduction::sum;
    planned_step const s = tensorpar::passes::pipeline_pass(net(unit), p);
    CHECK(check(s.graph, s.plan, unroll(s)).empty());
    plan wrong = s.plan;
    wrong.reduction = loss_reduction::mean;
    CHECK_THROWS_WITH_AS(executor_of<double>(s.graph, wrong), doctest::Contains("a sum over samples, the plan says mean"), error);
    executor_of<prime_field> run(s);
    run.initialise(1);
    for (int k = 0; k < 3; ++k) run.step(data, 0.1);
    bool const same = parameters_of(run) == trained<prime_field>(net, data, mini_batch, {});
    CHECK(same);
    executor_of<double> real(s), alone(net(mini_batch), one_device_plan(net(mini_batch)));
    real.initialise(1);
    alone.initialise(1);
    CHECK(real.step(data, 0.1).loss == doctest::Approx(alone.step(data, 0.1).loss).epsilon(1e-12));
  }
}

TEST_CASE("a written ratio is the ratio of what was written") {
  using field = prime_field;
  for (i64 n = 1; n < 300; ++n) {
    CHECK(tensorpar::exec::constant_of<field>(1.0 / static_cast<double>(n)) * field(n) == field(1));
    CHECK(tensorpar::exec::constant_of<field>(-7.0 / static_cast<double>(n)) * field(n) == field(-7));
  }
  CHECK(tensorpar::exec::constant_of<field>(0.1) * field(10) == field(1));
  CHECK(tensorpar::exec::constant_of<field>(0.375) == field::from_double(0.375));
  CHECK(tensorpar::exec::constant_of<field>(1 / std::sqrt(2.0)) == field::from_double(1 / std::sqrt(2.0)));
  CHECK(tensorpar::exec::rest_to_one<field>(0.9) * field(10) == field(1));
  CHECK(tensorpar::exec::over_rest_to_one<field>(0.9) == field(10));
  CHECK(tensorpar::exec::over_rest_to_one<field>(0.5, 3) * field(7) == field(8));
  CHECK(tensorpar::exec::constant_of<float>(0.1) == 0.1f);
  CHECK(tensorpar::exec::rest_to_one<double>(0.9) == 1 - 0.9);
  CHECK(tensorpar::exec::over_rest_to_one<double>(0.9, 2) == 1 / (1 - std::pow(0.9, 2.0)));
}
