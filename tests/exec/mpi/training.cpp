// tests/exec/mpi/training.cpp - a plan's program run by one process per device: the same parameters as serial training, or as threads
#include "session.hpp"
#include "support/effort.hpp"
#include "support/random_pipeline.hpp"
#include "support/spine.hpp"
#include <doctest/doctest.h>
#include <tensorpar/exec/comm/mpi.hpp>

using namespace tests;

namespace {

void equal_to_serial(computation_graph g, u64 seed) {
  g.add_output("logits", g.node(g.value(g.output("loss")).producer).in[0]);
  std::mt19937 draw(static_cast<unsigned>(seed));                             // the same plans on every process
  for (int trial = 0; trial < test_effort::cases(6); ++trial) {
    training_options o;
    o.optimizer.kind = static_cast<optimizer_kind>(trial % 3);
    if (trial % 2) o.optimizer.clip_norm = 0.5;
    if (trial % 3 == 2) o.optimizer.on_non_finite = non_finite::skip;
    o.micro_batches = trial % 3 == 1 ? 2 : 1;
    plan p = random_plan(g, mpi().size(), draw), s = serial_plan(g);
    p.micro_batches = s.micro_batches = o.micro_batches;
    p.optimizer = s.optimizer = o.optimizer;
    CAPTURE(trial);
    {
      executor_of<prime_field, comm::mpi> a(differentiate(g, o), p);
      executor_of<prime_field> b(differentiate(g, o), s);
      bool const exact = train(a, 2) == train(b, 2);
      CHECK(exact);
      CHECK(a.copies_agree());
      auto const me = static_cast<std::size_t>(mpi().rank());
      CHECK(a.allocated_bytes()[me] == a.program().arena[me]);
    }
    {
      executor_of<double, comm::mpi> a(differentiate(g, o), p);
      executor_of<double> b(differentiate(g, o), p);                          // sums have one order in both: equal to the bit
      bool const same = train(a, 2) == train(b, 2);
      CHECK(same);
      host_batch const batch = random_batch(g, o.micro_batches, 9);
      bool const found = a.evaluate(batch, {"logits", "loss"}) == b.evaluate(batch, {"logits", "loss"});   // every process has the whole
      CHECK(found);
      CHECK(a.step(batch, 0.1).loss == b.step(batch, 0.1).loss);
    }
  }
}

}  // namespace

TEST_CASE("a residual MLP under random shardings equals serial training, and threads to the bit") { equal_to_serial(residual_mlp(), 1); }
TEST_CASE("a convolutional net under random shardings equals serial training, and threads to the bit") { equal_to_serial(small_cnn(), 2); }
TEST_CASE("a transformer under random shardings equals serial training, and threads to the bit") {
  equal_to_serial(small_transformer(), 3);
}

TEST_CASE("a step that is not finite ends alike on every process: with an error, or without having changed anything") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(6);
  for (non_finite wanted : {non_finite::error, non_finite::skip}) {
    plan p = random_plan(g, mpi().size(), draw);
    p.optimizer.on_non_finite = wanted;
    executor_of<float, comm::mpi> e(g, p);
    e.initialise(7);
    auto const before = parameters_of(e);
    host_batch bad = random_batch(g, 1, 3);
    bad.at("x").real.front() = std::numeric_limits<float>::quiet_NaN();
    if (wanted == non_finite::error) CHECK_THROWS_WITH_AS(e.step(bad, 0.125), doctest::Contains("step 0: the loss is nan"), error);
    else CHECK(e.step(bad, 0.125).skipped);
    CHECK((parameters_of(e) == before) == (wanted == non_finite::skip));
  }
}

TEST_CASE("pipelines, whose passes send and receive, equal threads to the bit") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(4);
  if (mpi().size() < 2) return;
  for (int trial = 0; trial < test_effort::cases(8); ++trial) {
    plan p = random_pipeline(g, {.devices = mpi().size()}, 1, i64{1} << (trial % 4), draw);
    if (trial % 2)
      for (op_strategy& n : p.nodes) n = {n.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 2 == 0};
    CAPTURE(trial);
    auto const run = [&](auto& e) {
      e.initialise(7);
      double loss = 0;
      for (int k = 0; k < 2; ++k)
        loss = e.step(random_batch(g, static_cast<int>(p.pipeline.mini_batch / p.pipeline.unit), static_cast<u64>(k)), 0.125).loss;
      return std::pair{parameters_of(e), loss};
    };
    executor_of<double, comm::mpi> a(tensorpar::passes::pipeline_pass(g, p));
    executor_of<double> b(tensorpar::passes::pipeline_pass(g, p));
    bool const same = run(a) == run(b);
    CHECK(same);
    CHECK(a.copies_agree());
  }
}
