// tests/exec/step/step_result.test.cpp - steps that are not finite: told, refused, or skipped without a trace under every plan
#include <tensorpar/exec/step/step_result.hpp>

#include <cstring>
#include <doctest/doctest.h>
#include <limits>

#include <tensorpar/exec/files/checkpoint.hpp>
#include <tensorpar/program/training.hpp>

#include "support/effort.hpp"
#include "support/random_pipeline.hpp"
#include "support/spine.hpp"

using namespace tests;

namespace {

constexpr float no_number = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();

/// Two layers and a relu between them.
computation_graph two_layers() {
  computation_graph g;
  int const x = g.add_input("x", {8, 6}), y = g.add_input("y", {8, 4});
  int h = out(g, g.add_with_weights(linear{8}, {x}, "a"));
  h = out(g, g.add(relu{}, {h}));
  h = out(g, g.add_with_weights(linear{4}, {h}, "b"));
  g.add_output("loss", out(g, g.add(mean_squared_error{}, {h, y})));
  return g;
}
host_batch batch_of_eight() {
  return {{"x", {{8, 6}, std::vector<float>(48, 0.5f), {}}}, {"y", {{8, 4}, std::vector<float>(32, 0.25f), {}}}};
}

/// Every parameter and state, bit by bit.
template <class Run> std::vector<std::vector<unsigned char>> all_bits(Run const& run) {
  std::vector<std::vector<unsigned char>> r;
  for (int kind : {0, 1})
    for (int x : detail::saved_values(run, kind)) {
      auto const all = run.fetch(x);
      r.emplace_back(all.size() * sizeof(all[0]));
      std::memcpy(r.back().data(), all.data(), r.back().size());
    }
  return r;
}

/// Under the plan: good steps, one that is not finite, good ones. Nothing is left of it, also in what comes after.
template <class Make> void skips_without_a_trace(computation_graph const& g, int parts, Make const& make, std::mt19937& draw) {
  auto run = make(), undisturbed = make();
  run.initialise(7);
  undisturbed.initialise(7);
  auto const good = [&](u64 k) { return random_batch(g, parts, k); };
  for (u64 k = 0; k < 2; ++k) {
    run.step(good(k), 0.125);
    undisturbed.step(good(k), 0.125);
  }
  host_batch bad = good(9);
  bool fed = false;
  for (auto& [name, t] : bad)
    if (!fed && !t.real.empty()) {
      t.real[draw() % t.real.size()] = std::vector<float>{no_number, inf, -inf}[draw() % 3];
      fed = true;
    }
  int const poisoned = detail::saved_values(run, 0).front();
  auto const kept = run.fetch(poisoned);
  if (!fed) run.store(poisoned, std::vector<float>(kept.size(), no_number));        // of indices alone
  auto const before = all_bits(run);
  step_result const r = run.step(bad, 0.125);
  CHECK(r.skipped);
  CHECK_FALSE(r.finite());
  CHECK(run.steps() == 2);
  CHECK(all_bits(run) == before);
  CHECK(run.copies_agree());
  if (!fed) run.store(poisoned, kept);
  step_result const after = run.step(good(2), 0.125), other = undisturbed.step(good(2), 0.125);
  CHECK(after.loss == other.loss);
  CHECK_FALSE(after.skipped);
  CHECK(all_bits(run) == all_bits(undisturbed));
}

}  // namespace

TEST_CASE("a NaN in a batch is in the loss, and in the norm where there is one, whatever becomes of it") {
  computation_graph const g = two_layers();
  for (double clip : {0.0, 0.5})
    for (float odd : {no_number, inf, -inf})
      for (non_finite wanted : {non_finite::error, non_finite::skip, non_finite::go_on}) {
        plan p = one_device_plan(g);
        p.optimizer.clip_norm = clip;
        p.optimizer.on_non_finite = wanted;
        executor_of<float> run(g, p);
        run.initialise(1);
        auto const before = parameters_of(run);
        host_batch data = batch_of_eight();
        data["x"].real[7] = odd;
        if (wanted == non_finite::error) {
          CHECK_THROWS_WITH_AS(run.step(data, 0.1), doctest::Contains("step 0: the loss is "), error);
          CHECK_THROWS_WITH_AS(run.step(data, 0.1), doctest::Contains("on_non_finite = skip"), error);
          CHECK(run.steps() == 0);
        } else {
          step_result const bad = run.step(data, 0.1);
          CHECK_FALSE(std::isfinite(bad.loss));
          CHECK(bad.gradient_norm.has_value() == (clip != 0 || wanted == non_finite::skip));
          CHECK_FALSE(std::isfinite(bad.gradient_norm.value_or(static_cast<double>(inf))));
          CHECK(bad.skipped == (wanted == non_finite::skip));
          CHECK(run.steps() == (wanted == non_finite::skip ? 0 : 1));
        }
        CHECK_FALSE(run.failed());
        CHECK((parameters_of(run) == before) == (wanted == non_finite::skip));
        run.initialise(1);                                           // whoever has other parameters goes on
        CHECK(run.step(batch_of_eight(), 0.1).finite());
      }
}

TEST_CASE("a norm that is NaN makes every clipped weight NaN: none is updated as if it were not clipped") {
  computation_graph const g = two_layers();
  plan p = one_device_plan(g);
  p.optimizer.clip_norm = 0.5;
  p.optimizer.on_non_finite = non_finite::go_on;
  executor_of<float> run(g, p);
  run.initialise(1);
  host_batch data = batch_of_eight();
  data["x"].real[7] = no_number;
  run.step(data, 0.1);
  for (auto const& w : parameters_of(run)) for (float v : w) CHECK(std::isnan(v));
}

TEST_CASE("a loss that is infinite where gradients are finite is an error, or skipped") {
  computation_graph g;
  int const x = g.add_input("x", {64, 6}), y = g.add_input("y", {64, 4});
  int const h = out(g, g.add(scale{1e-30}, {out(g, g.add_with_weights(linear{4}, {x}, "a"))}));
  g.add_output("loss", out(g, g.add(mean_squared_error{}, {h, y})));
  host_batch const data{{"x", {{64, 6}, std::vector<float>(384, 0.5f), {}}}, {"y", {{64, 4}, std::vector<float>(256, 3e19f), {}}}};
  for (non_finite wanted : {non_finite::error, non_finite::skip, non_finite::go_on}) {
    plan p = one_device_plan(g);
    p.optimizer.on_non_finite = wanted;
    executor_of<float> run(g, p);
    run.initialise(1);
    auto const before = parameters_of(run);
    if (wanted == non_finite::error) CHECK_THROWS_WITH_AS(run.step(data, 0.1), doctest::Contains("the loss is inf"), error);
    else CHECK(run.step(data, 0.1).skipped == (wanted == non_finite::skip));
    for (auto const& w : parameters_of(run)) for (float v : w) CHECK(std::isfinite(v));
    CHECK((parameters_of(run) == before) == (wanted == non_finite::skip));
  }
}

TEST_CASE("a skipped update leaves no trace: random shardings, savings, orders, micro-batches") {
  std::mt19937 draw(3);
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (int trial = 0; trial < test_effort::cases(9); ++trial) {
      plan p = random_plan(g, 1 + trial % 6, draw);
      p.optimizer.kind = static_cast<optimizer_kind>(trial % 3);
      p.optimizer.clip_norm = trial % 2 ? 0.5 : 0;
      p.optimizer.on_non_finite = non_finite::skip;
      p.optimizer.weight_decay = 0.01;
      p.micro_batches = 1 + trial % 4;
      if (trial % 4 == 1) p.node_order = random_order(g, draw);
      for (op_strategy& c : p.nodes)
        if (trial % 2) c = {c.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 2 == 0};
      CAPTURE(trial);
      skips_without_a_trace(g, p.micro_batches, [&] { return executor_of<float>(g, p); }, draw);
    }
}

TEST_CASE("a skipped update leaves no trace in pipelines either") {
  std::mt19937 draw(4);
  for (computation_graph const& g : {residual_mlp(), small_transformer()})
    for (int trial = 0; trial < test_effort::cases(9); ++trial) {
      plan p = random_pipeline(g, {.devices = 2 + trial % 4}, 1, i64{1} << (trial % 4), draw);
      p.optimizer.kind = static_cast<optimizer_kind>(trial % 3);
      p.optimizer.clip_norm = trial % 2 ? 0.5 : 0;
      p.optimizer.on_non_finite = non_finite::skip;
      if (trial % 2)
        for (op_strategy& n : p.nodes) n = {n.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 2 == 0};
      CAPTURE(trial);
      int const parts = static_cast<int>(p.pipeline.mini_batch / p.pipeline.unit);
      skips_without_a_trace(g, parts, [&] { return executor_of<float>(g, p); }, draw);
    }
}
