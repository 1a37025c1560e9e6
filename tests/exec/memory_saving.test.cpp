// tests/exec/memory_saving.test.cpp - sharded and recomputed training equals serial training, in less memory
#include <tensorpar/program/passes/memory_pass.hpp>

#include <doctest/doctest.h>

#include <tensorpar/check/check.hpp>
#include <tensorpar/program/unroll.hpp>

#include "support/effort.hpp"
#include "support/spine.hpp"

using namespace tests;

namespace {

void save_at_random(plan& p, std::mt19937& draw) {
  for (op_strategy& c : p.nodes) {
    c.zero = static_cast<tensorpar::ir::zero_stage>(draw() % 4);
    c.recompute = draw() % 2;
  }
}

/// The step of a plan: accepted by the checker, equal to serial training in the field, its copies too.
planned_step exactly_as_serial(training_graph const& t, plan const& p, plan const& serial) {
  planned_step step = tensorpar::passes::memory_pass(t, p);
  auto const found = check(step.graph, step.plan, unroll(step.graph, step.plan));
  CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found.front().text));
  executor_of<prime_field> a(step.graph, step.plan), b(t, serial);
  bool const exact = train(a, 2) == train(b, 2);
  CHECK(exact);
  CHECK(a.copies_agree());
  CHECK(a.allocated_bytes() == a.program().arena);
  return step;
}

void equal_to_serial(computation_graph const& g, int trials, unsigned seed, bool noise) {
  std::mt19937 draw(seed);
  for (int trial = 0; trial < test_effort::cases(trials); ++trial) {
    training_options o;
    o.optimizer.kind = static_cast<optimizer_kind>(trial % 3);
    if (trial % 4 == 0) o.optimizer.clip_norm = 0.5;
    if (trial % 5 == 1) o.optimizer.on_non_finite = non_finite::skip;
    o.micro_batches = trial % 3 == 1 ? 2 : 1;
    plan p = random_plan(g, 1 + trial % 8, draw), s = serial_plan(g);
    p.micro_batches = s.micro_batches = o.micro_batches;
    p.optimizer = s.optimizer = o.optimizer;
    save_at_random(p, draw);
    p.prefetch = trial % 5;
    if (trial % 2) p.node_order = random_order(g, draw);
    CAPTURE(trial);
    training_graph const t = differentiate(g, o);
    planned_step const step = exactly_as_serial(t, p, s);
    if (o.optimizer.kind != optimizer_kind::adamw || !noise) {
      executor_of<double> a(step.graph, step.plan), b(t, s);
      CHECK(distance(train(a, 3), train(b, 3)) < 1e-11);
    }
  }
}

i64 peak(training_graph const& t, plan const& p) {
  planned_step const s = tensorpar::passes::memory_pass(t, p);
  program const q = unroll(s.graph, s.plan);
  return *std::max_element(q.arena.begin(), q.arena.end());
}

}  // namespace

TEST_CASE("random savings under random shardings equal serial training") {
  equal_to_serial(residual_mlp(), 80, 1, false);
  equal_to_serial(small_cnn(), 60, 2, true);
  equal_to_serial(small_transformer(), 60, 3, true);
}

TEST_CASE("every saving takes memory off the largest arena") {
  computation_graph const g = residual_mlp();
  training_options o;
  o.optimizer.kind = optimizer_kind::adamw;
  training_graph const t = differentiate(g, o);
  plan p = serial_plan(g);
  p.cluster = devices(4);
  for (op_strategy& c : p.nodes) c.sharding = {0, {{'0', 4, 1}}};
  auto with = [&](tensorpar::ir::zero_stage s, bool recompute) {
    plan q = p;
    for (op_strategy& c : q.nodes) c = {c.sharding, s, recompute};
    return peak(t, q);
  };
  i64 const whole = with(tensorpar::ir::zero_stage::none, false), update = with(tensorpar::ir::zero_stage::updates, false);
  CHECK(update < whole);
  CHECK(with(tensorpar::ir::zero_stage::weights, false) < update);
}

TEST_CASE("of several micro-batches, sums of gradients in parts take memory off what updates in parts leave") {
  computation_graph const g = residual_mlp();
  training_options o;
  o.optimizer.kind = optimizer_kind::adamw;
  o.micro_batches = 2;
  training_graph const t = differentiate(g, o);
  plan p = serial_plan(g);
  p.cluster = devices(4);
  p.micro_batches = 2;
  auto with = [&](tensorpar::ir::zero_stage s) {
    for (op_strategy& c : p.nodes) c = {{0, {{'0', 4, 1}}}, s, false};
    return peak(t, p);
  };
  i64 const updates = with(tensorpar::ir::zero_stage::updates), gradients = with(tensorpar::ir::zero_stage::gradients);
  CHECK(gradients < updates);
  CHECK(with(tensorpar::ir::zero_stage::weights) < gradients);
}

TEST_CASE("replicas whose number divides no extent share updates and weights as far as one divides") {
  computation_graph g;
  value_id x = g.add_input("x", {dim(12), dim(8)});
  for (i64 width : {4, 16, 8}) x = g.node(g.add_with_weights(linear{width}, {x}, "w" + std::to_string(width))).out[0];
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {x, g.add_input("y", {dim(12), dim(8)})})).out[0]);
  for (tensorpar::ir::zero_stage zero : {tensorpar::ir::zero_stage::updates, tensorpar::ir::zero_stage::gradients, tensorpar::ir::zero_stage::weights})
    for (double clip : {0.0, 0.5})
      for (int micro : {1, 2}) {
        CAPTURE(micro);
        training_options o;
        o.optimizer = {.kind = optimizer_kind::adamw, .clip_norm = clip};
        o.micro_batches = micro;
        plan p, s = serial_plan(g);
        p.graph = g.hash();
        p.cluster = devices(6);
        p.micro_batches = s.micro_batches = micro;
        p.optimizer = s.optimizer = o.optimizer;
        p.prefetch = micro;
        for (int v = 0; v < g.node_count(); ++v) p.nodes.push_back({{0, {{g.node(v).op.is<linear>() ? '0' : '\0', 6, 1}}}, zero, false});
        planned_step const step = exactly_as_serial(differentiate(g, o), p, s);
        int shared = 0;
        for (graph_node const& n : step.graph.graph.nodes) shared += is_update(n.op) && n.share.degree == 2;
        CHECK(shared > 3);
      }
}

TEST_CASE("a step whose results lie over their operands is to the bit that of the same step where they lie elsewhere") {
  std::mt19937 draw(12);
  int over = 0;
  for (int i = 0; i < test_effort::cases(24); ++i) {
    CAPTURE(i);
    computation_graph const g = i % 2 ? small_transformer() : residual_mlp();
    plan p = random_plan(g, 1 + i % 4, draw);
    p.scalar_bytes = 8;
    p.micro_batches = 1 + i % 3;
    training_options o;
    o.micro_batches = p.micro_batches;
    training_graph const t = differentiate(g, o);
    planned_step const there = tensorpar::passes::memory_pass(t, p);
    program const q = unroll(there.graph, there.plan, {&compute::eigen<double>::workspace});
    program elsewhere = q;
    for (buffer& b : elsewhere.buffers) {
      over += b.in_place_of >= 0;
      b.in_place_of = -1;
    }
    tensorpar::passes::assign_offsets(elsewhere, p.cluster.size());
    executor_of<double> a(planned_step{there.graph, there.plan, q}), b(planned_step{there.graph, there.plan, elsewhere});
    CHECK(train(a, 2) == train(b, 2));
  }
  CHECK(over >= test_effort::cases(12));
}
