// tests/exec/pipeline.test.cpp - pipelines of any stages, micro-batch sizes and schedules train as one device does
#include <tensorpar/check/check.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/exec/files/checkpoint.hpp>
#include <support/peaks.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <memory>

#include "support/effort.hpp"
#include "support/random_pipeline.hpp"
#include "support/scratch_folder.hpp"
#include "support/spine.hpp"

using namespace tests;

namespace {

training_options options_of(plan const& p) {
  training_options o;
  o.optimizer = p.optimizer;
  o.micro_batches = static_cast<int>(p.pipeline.mini_batch / p.pipeline.unit);
  return o;
}
template <class S> auto serially(computation_graph const& g, plan const& p, int steps) {
  plan s = serial_plan(g);
  s.micro_batches = options_of(p).micro_batches;
  s.optimizer = p.optimizer;
  executor_of<S> e(differentiate(g, options_of(p)), s);
  e.initialise(7);
  double loss = 0;
  for (int k = 0; k < steps; ++k) loss = e.step(random_batch(g, s.micro_batches, static_cast<u64>(k)), 0.125).loss;
  return std::pair{parameters_of(e), loss};
}
template <class S> auto pipelined(computation_graph const& g, plan const& p, int steps) {
  executor_of<S> e(tensorpar::passes::pipeline_pass(g, p));
  e.initialise(7);
  double loss = 0;
  for (int k = 0; k < steps; ++k) loss = e.step(random_batch(g, options_of(p).micro_batches, static_cast<u64>(k)), 0.125).loss;
  CHECK(e.copies_agree());
  CHECK(e.allocated_bytes() == e.program().arena);
  return std::pair{parameters_of(e), loss};
}

void equal_to_serial(computation_graph const& g, pipeline_kind kind, int trials, unsigned seed) {
  std::mt19937 draw(seed);
  for (int trial = 0; trial < test_effort::cases(trials); ++trial) {
    kind.devices = 2 + trial % 5;
    plan p = random_pipeline(g, kind, 1, i64{1} << (trial % 4), draw);
    p.optimizer.kind = static_cast<optimizer_kind>(trial % 3);
    if (trial % 4 == 0) p.optimizer.clip_norm = 0.5;
    if (trial % 5 == 1) p.optimizer.on_non_finite = non_finite::skip;
    if (trial % 2)
      for (op_strategy& n : p.nodes) n = {n.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 2 == 0};
    CAPTURE(trial);
    planned_step const s = tensorpar::passes::pipeline_pass(g, p);
    CHECK(tensorpar::ir::training_hash(s.graph) == tensorpar::ir::training_hash(differentiate(g)));
    program const q = unroll(s);
    auto const found = check(s.graph, s.plan, q);
    for (finding const& f : found) MESSAGE(f.text);
    REQUIRE(found.empty());
    std::vector<i64> const peaks = peak_memory(q, kind.devices);
    for (std::size_t d = 0; d < peaks.size(); ++d) CHECK(peaks[d] <= q.arena[d]);
    CHECK(pipelined<prime_field>(g, p, 2).first == serially<prime_field>(g, p, 2).first);
    if (p.optimizer.kind == optimizer_kind::adamw) continue;          // divides by what may be rounding noise
    auto const a = pipelined<double>(g, p, 3), b = serially<double>(g, p, 3);
    CHECK(distance(a.first, b.first) < 1e-11);
    CHECK(a.second == doctest::Approx(b.second).epsilon(1e-12));
  }
}

}  // namespace

TEST_CASE("a residual MLP in random pipelines equals serial training") { equal_to_serial(residual_mlp(), {}, 60, 1); }
TEST_CASE("what is dropped does not depend on how a batch is cut") {
  computation_graph g;
  int const x = g.add_input("x", {6, 16}), labels = g.add_input("labels", shape({6}, dtype::i32));
  int v = g.add_with_weights(linear{16}, {x}, "fc1");
  v = g.add_with_weights(dropout{0.5, 3}, {out(g, v)}, "drop1");
  v = g.add_with_weights(linear{16}, {out(g, v)}, "fc2");
  v = g.add_with_weights(dropout{0.25, 4}, {out(g, v)}, "drop2");
  v = g.add_with_weights(linear{12}, {out(g, v)}, "head");
  g.add_output("loss", out(g, g.add_with_weights(cross_entropy{}, {out(g, v), labels}, "loss")));
  equal_to_serial(g, {}, 20, 5);
}
TEST_CASE("several stages per group, as in interleaved schedules, equal serial training") {
  equal_to_serial(residual_mlp(), {.sizes = false, .shared_groups = true}, 30, 2);
}
TEST_CASE("a transformer with a table shared between stages equals serial training") {
  equal_to_serial(small_transformer(), {}, 30, 3);
}

TEST_CASE("a sharded optimizer keeps a part of its state on each copy, and trains the same") {
  computation_graph const g = residual_mlp();
  plan p;
  p.graph = g.hash();
  p.cluster = devices(4);
  p.optimizer.kind = optimizer_kind::momentum;
  for (int v = 0; v < g.node_count(); ++v) p.nodes.push_back({{0, {{'0', 4, 1}}}});
  pipeline_stage s;
  for (int v = 0; v < g.node_count(); ++v) s.nodes.push_back(v);
  p.pipeline = {.mini_batch = 2, .groups = {{0, 4}}, .stages = {s}, .schedule = {}};
  random_order(p.pipeline, {{}}, *std::make_unique<std::mt19937>(1));
  i64 bytes[2];
  for (bool sharded : {false, true}) {
    p.pipeline.stages[0].shard_optimizer = sharded;
    program const q = unroll(tensorpar::passes::pipeline_pass(g, p));
    bytes[sharded] = 0;
    for (buffer const& b : q.buffers)
      if (b.persistent && tensorpar::passes::pipeline_pass(g, p).graph.graph.value(b.value).role == value_role::state)
        bytes[sharded] += b.bytes;
    CHECK(pipelined<prime_field>(g, p, 2).first == serially<prime_field>(g, p, 2).first);
  }
  CHECK(bytes[1] * 4 == bytes[0]);
}

TEST_CASE("a pipeline's checkpoint goes on without a pipeline, and the other way") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(4);
  plan p = random_pipeline(g, {.devices = 4}, 1, 4, draw), s = serial_plan(g);
  p.optimizer.kind = s.optimizer.kind = optimizer_kind::momentum;
  s.micro_batches = 4;
  executor_of<prime_field> whole(differentiate(g, options_of(p)), s), first(tensorpar::passes::pipeline_pass(g, p)),
      second(differentiate(g, options_of(p)), s), third(tensorpar::passes::pipeline_pass(g, p));
  for (auto* e : {&whole, &first, &second, &third}) e->initialise(7);
  auto step = [&](auto& e, u64 k) { e.step(random_batch(g, 4, k), 0.125); };
  for (u64 k = 0; k < 3; ++k) step(whole, k);
  scratch_folder const folder;
  step(first, 0);
  save_checkpoint(first, folder.path());
  load_checkpoint(second, folder.path());
  step(second, 1);
  save_checkpoint(second, folder.path());
  load_checkpoint(third, folder.path());
  step(third, 2);
  CHECK(parameters_of(third) == parameters_of(whole));
}

TEST_CASE("who waits for what never comes is named with its task, and nobody hangs") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(8);
  plan const p = random_pipeline(g, {.devices = 4}, 1, 2, draw);
  planned_step s = tensorpar::passes::pipeline_pass(g, p);
  s.plan.scalar_bytes = sizeof(prime_field);
  program q = unroll(s, {&compute::eigen<prime_field>::workspace});
  std::size_t lost = 0;
  while (q.tasks[lost].kind != task_kind::send) ++lost;
  int const waits = q.tasks[lost].other_half;
  int const rank = q.tasks[static_cast<std::size_t>(waits)].devices.front();
  q.tasks[lost].devices.clear();                                    // nobody sends
  executor_of<prime_field> e(tensorpar::exec::already_checked{planned_step{s.graph, s.plan, q}},
                             [](int n) { return comm::threads_world(n, std::chrono::milliseconds(300)); });
  e.initialise(1);
  try {
    e.step(random_batch(g, 2, 1), 0.1);
    FAIL("a step without one of its messages");
  } catch (error const& x) {
    std::string const text = x.what();
    CAPTURE(text);
    CHECK(text.find("rank " + std::to_string(rank) + " waits in receive") != std::string::npos);
    CHECK(text.find("device " + std::to_string(rank) + " in task " + std::to_string(waits) + " (receive for ") != std::string::npos);
  }
}
