// tests/program/step_of.test.cpp - the step of any plan is that of the function for its kind
#include <tensorpar/program/step_of.hpp>

#include <doctest/doctest.h>

#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/core/planned_step.hpp>
#include <tensorpar/program/evidence/certificate.hpp>
#include <tensorpar/program/unroller.hpp>

#include "support/random_pipeline.hpp"

using namespace tests;

TEST_CASE("a plan's step: shardings, savings, micro-batches and pipelines, accepted by the checker") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(5);
  for (int trial = 0; trial < 24; ++trial) {
    CAPTURE(trial);
    plan p = random_plan_of_a_kind(g, trial, draw);
    p.optimizer.kind = static_cast<optimizer_kind>(trial % 2);
    planned_step const s = step_of(g, p);
    CHECK(s.unrolled());
    CHECK(check(s.graph, s.plan, s.program).empty());
    if (p.pipeline.empty()) {
      planned_step const same = tensorpar::passes::memory_pass(differentiate(g, training_of(p)), p);
      CHECK_FALSE(same.unrolled());
      CHECK(tensorpar::passes::task_hash(s.program) == tensorpar::passes::task_hash(unroll(same.graph, same.plan)));
      CHECK(s.graph.graph.hash() == same.graph.graph.hash());
      CHECK(s.plan == same.plan);
    } else {
      planned_step const same = tensorpar::passes::pipeline_pass(g, p);
      CHECK(tensorpar::passes::task_hash(s.program) == tensorpar::passes::task_hash(unroll(same)));
      CHECK(s.plan == same.plan);
    }
    seal(g, p);
    CHECK(tensorpar::passes::task_hash(step_of(g, p).program) == p.tasks);
    CHECK(step_of(g, p).program.arena == p.peak_bytes);
  }
}

TEST_CASE("scratch space is asked for once the graph has been shown") {
  computation_graph const g = residual_mlp();
  plan p = serial_plan(g);
  p.graph = g.hash();
  static int shown;
  shown = 0;
  auto const some = [](tensorpar::op::any_op const&, shapes, shapes) -> i64 { return shown ? 8 : throw error("too early", "test", ""); };
  planned_step const s = step_of(g, p, "loss", some, [](training_graph const&) { ++shown; });
  CHECK(shown == 1);
  int with = 0;
  for (task const& t : s.program.tasks) with += t.workspace >= 0;
  CHECK(with >= g.node_count());
}

TEST_CASE("the graph of a plan for a batch: of a micro-batch's samples, or as it is for a pipeline; another batch or graph is refused") {
  computation_graph const g = residual_mlp();                    // 24 rows
  plan p = serial_plan(g);
  p.micro_batches = 2;
  p.graph = tensorpar::ir::rebatch(g, 4).hash();
  CHECK(graph_of(g, p, 192).hash() == p.graph);
  CHECK_THROWS_WITH_AS(graph_of(g, p, 96), doctest::Contains("another batch size"), error);
  CHECK_THROWS_WITH_AS(graph_of(g, p, 120), doctest::Contains("a multiple of 48"), error);
  CHECK_THROWS_WITH_AS(graph_of(g, p, 0), doctest::Contains("a batch of 0"), error);
  CHECK_THROWS_WITH_AS(graph_of(towers(2), p, 192), doctest::Contains("another graph"), error);
  std::mt19937 draw(3);
  plan q = random_pipeline(g, {.devices = 3}, 24, 96, draw);
  q.graph = g.hash();
  CHECK(graph_of(g, q, 96).hash() == g.hash());
  CHECK_THROWS_WITH_AS(graph_of(g, q, 48), doctest::Contains("96, the pipeline's"), error);
}

TEST_CASE("a plan in bf16 or fp8 runs the declared graph in bf16; a graph that is in bf16 stays so") {
  computation_graph const g = residual_mlp(), half = mixed_precision(tensorpar::ir::rebatch(g, 2));
  for (precision f : {precision::bf16, precision::fp8}) {
    plan p = serial_plan(half);
    p.precision = f;
    CHECK(graph_of(g, p, 48).hash() == half.hash());
    CHECK(graph_of(mixed_precision(g), p, 48).hash() == half.hash());
    p.precision = precision::tf32;
    CHECK_THROWS_WITH_AS(graph_of(g, p, 48), doctest::Contains("another graph"), error);
    CHECK_THROWS_WITH_AS(graph_of(mixed_precision(g), p, 48), doctest::Contains("a graph in bf16 for training in tf32"), error);
  }
}

TEST_CASE("a plan of another graph is refused") {
  computation_graph const g = residual_mlp();
  plan p = serial_plan(g);
  p.graph = g.hash() + 1;
  CHECK_THROWS_WITH_AS(step_of(g, p), doctest::Contains("another graph"), error);
}
