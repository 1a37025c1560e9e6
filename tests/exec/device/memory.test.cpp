// tests/exec/device/memory.test.cpp - the laws of memory; plans run alike in memory that the host cannot read
#include <tensorpar/exec/device/memory.hpp>

#include <doctest/doctest.h>
#include <tensorpar/exec/files/checkpoint.hpp>
#include <tensorpar/exec/forward_pass.hpp>
#include <tensorpar/exec/profile.hpp>

#include "../../examples/far_device.hpp"
#include "support/laws/memory.hpp"
#include "support/scratch_folder.hpp"
#include "support/spine.hpp"

using namespace tests;
using far::far_compute, far::far_memory, far::far_threads;

namespace {
struct first_far : far_memory {
  first_far() : far_memory(0) {}
};
template <class S> using far_executor = executor<far_compute<S>, far_threads>;
}

TEST_CASE_TEMPLATE("memory keeps bytes and moves boxes", M, tensorpar::exec::host_memory, first_far) {
  check_bytes(M{}, 1);
  check_boxes<float>(M{}, 2);
  check_boxes<double>(M{}, 3);
  check_boxes<std::int32_t>(M{}, 4);
}

TEST_CASE("training in memory that the host cannot read gives the same bits") {
  std::mt19937 draw(11);
  int moves = 0;
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (int trial = 0; trial < 6; ++trial) {
      training_options o;
      o.optimizer.kind = static_cast<optimizer_kind>(trial % 3);
      o.micro_batches = 1 + trial % 2;
      plan p = random_plan(g, 1 + trial, draw);
      p.micro_batches = o.micro_batches;
      p.optimizer = o.optimizer;
      far_executor<prime_field> far(differentiate(g, o), p);
      executor_of<prime_field> near(differentiate(g, o), p);
      CHECK(train(far, 2) == train(near, 2));
      CHECK(far.copies_agree());
      CHECK(far.allocated_bytes() == near.allocated_bytes());
      for (task const& t : far.program().tasks) moves += t.kind != task_kind::compute;
      far_executor<double> a(differentiate(g, o), p);
      executor_of<double> b(differentiate(g, o), p);
      CHECK(train(a, 2) == train(b, 2));
      timeline seen;
      host_batch const batch = random_batch(g, o.micro_batches, 3);
      CHECK(a.step(batch, 0.1, &seen).loss == b.step(batch, 0.1).loss);
      CHECK(!seen.spans.empty());
    }
  CHECK(moves > 100);
}

TEST_CASE("checkpoints, forward passes and profiles read and write such memory") {
  computation_graph const g = small_transformer();
  std::mt19937 draw(5);
  plan const p = random_plan(g, 4, draw);
  far_executor<double> far(differentiate(g), p);
  train(far, 2);
  scratch_folder const folder;
  save_checkpoint(far, folder.path());
  executor_of<double> near(differentiate(g), serial_plan(g));
  load_checkpoint(near, folder.path());
  CHECK(parameters_of(near) == parameters_of(far));
  forward_pass<far_compute<double>> f(g);
  forward_pass<compute::eigen<double>> h(g);
  f.take_parameters(far);
  h.take_parameters(near);
  host_batch const b = random_batch(g, 1, 9);
  f.run(b);
  h.run(b);
  CHECK(f.output("loss") == h.output("loss"));
  plan one = serial_plan(g);
  one.scalar_bytes = sizeof(double);
  program const q = unroll(differentiate(g), one, {&far_compute<double>::workspace});
  CHECK(measure_operators<far_compute<double>>(q, one.cluster, {.warm_ups = 0, .samples = 1, .min_seconds = 0}).size() > 5);
}
