// tests/program/training.test.cpp - the training that a plan was made for, and the same on one device
#include <tensorpar/program/training.hpp>

#include <doctest/doctest.h>

#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/evidence/certificate.hpp>

#include "support/small_graphs.hpp"

using namespace tests;

namespace {
plan on_four(computation_graph const& g) {
  plan p = one_device_plan(g, {"loss", {optimizer_kind::adamw}, 3});
  p.model = "mlp";
  p.cluster = devices(4);
  p.nodes.front().sharding = {0, {{'\0', 4, 1}}};
  p.nodes.front().recompute = true;
  return p;
}
}  // namespace

TEST_CASE("the options of a plan's training are those that its step is made with") {
  computation_graph const g = residual_mlp();
  training_options const o = training_of(on_four(g));
  CHECK(o.loss == "loss");
  CHECK(o.optimizer.kind == optimizer_kind::adamw);
  CHECK(o.micro_batches == 3);
  CHECK(training_of(on_four(g), "other").loss == "other");
}

TEST_CASE("on one device a sealed plan is whole, saves nothing and is not sealed") {
  computation_graph const g = residual_mlp();
  plan p = on_four(g);
  for (op_strategy& c : p.nodes) c = {};
  seal(g, p);
  REQUIRE(p.tasks != 0);
  plan one = one_device_plan(g, p);
  CHECK(one.cluster.size() == 1);
  CHECK(one.model == "mlp");
  CHECK(one.optimizer == p.optimizer);
  CHECK(one.micro_batches == 3);
  CHECK(one.tasks == 0);
  CHECK(one.peak_bytes.empty());
  CHECK(!one_device_plan(g, on_four(g)).saves_memory());
  training_graph const t = differentiate(g, training_of(p));
  CHECK(check(t, one, unroll(t, one)).empty());
  seal(g, one);
  CHECK(check_certificate(g, one).empty());
}

TEST_CASE("another graph's plan and a pipeline are refused") {
  computation_graph const g = residual_mlp();
  plan p = on_four(g);
  p.pipeline.stages.resize(1);
  CHECK_THROWS_WITH_AS(one_device_plan(g, p), doctest::Contains("rebatch"), error);
  p = on_four(g);
  ++p.graph;
  CHECK_THROWS_WITH_AS(one_device_plan(g, p), doctest::Contains("another graph"), error);
}
