// tests/simulate/throughput.test.cpp - samples, tokens and FLOPs of a step, against counts by hand
#include <tensorpar/simulate/throughput.hpp>

#include <doctest/doctest.h>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <random>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/zoo/registry.hpp>

#include "support/random_pipeline.hpp"
#include "support/small_graphs.hpp"

using namespace tensorpar;
using namespace tests;

TEST_CASE("a GPT's FLOPs are 6 for every weight that multiplies and every token, and attention's") {
  i64 const layers = 3, hidden = 64, wide = 256, seq = 32, vocab = 512, samples = 4;
  computation_graph const g = zoo::make("gpt3_1b3:layers=3,hidden=64,heads=4,wide=256,seq=32,vocab=512", samples);
  plan p = serial_plan(g);
  p.cluster = logical(2);
  p.micro_batches = 5;
  p.batch = samples * 5;
  double const weights = static_cast<double>(layers * (4 * hidden * hidden + 2 * hidden * wide) + hidden * vocab),
               tokens = static_cast<double>(samples * seq);
  double const attention = 3.5 * 2 * static_cast<double>(layers * samples * seq * seq * hidden);     // causal; the gradient is 2.5 times that
  training_graph const t = differentiate(g, {"loss", p.optimizer, p.micro_batches});
  CHECK(simulation::model_flops(t, 5) == doctest::Approx(5 * (6 * weights * tokens + attention)));
  simulation::throughput const r = simulation::throughput_of(t, p, 0.5);
  CHECK(r.samples == doctest::Approx(40));
  CHECK(r.tokens == doctest::Approx(40 * 32));
  CHECK(r.model_flops == simulation::model_flops(t, 5));
  CHECK(r.mfu == doctest::Approx(r.model_flops / (0.5 * 2 * kinds::logical().flops)));
}

TEST_CASE("recomputation, pipelines and shared weights do not change what a step amounts to") {
  computation_graph const g = zoo::make("gpt3_1b3:layers=2,hidden=32,heads=2,wide=64,seq=16,vocab=64", 12);
  training_graph const plain = differentiate(g);
  double const once = simulation::model_flops(plain, 1);
  plan p = serial_plan(g);
  for (op_strategy& n : p.nodes) n.recompute = true;
  planned_step const again = passes::memory_pass(plain, p);
  CHECK(again.graph.graph.node_count() > plain.graph.node_count());
  CHECK(simulation::model_flops(again.graph, 1) == once);
  std::mt19937 draw(4);
  for (int turn = 0; turn < 6; ++turn) {
    plan const q = random_pipeline(g, {.devices = 3}, 12, 48, draw);
    planned_step const s = step_of(g, q);
    simulation::throughput const r = simulation::throughput_of(s.graph, s.plan, 1);
    CHECK(r.model_flops == doctest::Approx(4 * once));
    CHECK(r.samples == doctest::Approx(48));
  }
}

TEST_CASE("samples without tokens") {
  computation_graph const g = residual_mlp();                    // 24 rows
  plan const p = serial_plan(g);
  simulation::throughput const r = simulation::throughput_of(differentiate(g), p, 2);
  CHECK(r.samples == doctest::Approx(12));
  CHECK(r.tokens == 0);
  CHECK(r.mfu > 0);
}
