// tests/program/passes/memory_pass.test.cpp - what a plan's savings do to the graph of its step
#include <tensorpar/program/passes/memory_pass.hpp>

#include <doctest/doctest.h>

#include <tensorpar/check/check.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/unroll.hpp>
#include <tensorpar/program/unrollable.hpp>

#include "support/small_graphs.hpp"

using namespace tests;

namespace {

struct on_four {
  computation_graph g = residual_mlp();
  training_graph t;
  plan p = serial_plan(g);

  explicit on_four(optimizer_kind k = optimizer_kind::adamw) {
    training_options o;
    o.optimizer.kind = k;
    t = differentiate(g, o);
    p.optimizer = o.optimizer;
    p.cluster = devices(4);
    for (int v = 0; v < g.node_count(); ++v)
      p.nodes[static_cast<std::size_t>(v)].sharding = {0, {{tensorpar::ir::space_of(g, v).find('0') ? '0' : '\0', 4, 1}}};
  }
  void set(tensorpar::ir::zero_stage s, bool recompute = false) { for (op_strategy& c : p.nodes) c = {c.sharding, s, recompute}; }
  planned_step step() const { return tensorpar::passes::memory_pass(t, p); }
};

/// The largest parameter's buffers: bytes of its home, and of its first state's.
std::pair<i64, i64> homes(planned_step const& s) {
  program const q = unroll(s.graph, s.plan);
  CHECK(check(s.graph, s.plan, q).empty());
  i64 weight = 0, state = 0;
  for (buffer const& b : q.buffers) {
    if (!b.persistent) continue;
    i64& most = s.graph.graph.value(b.value).role == value_role::parameter ? weight : state;
    most = std::max(most, b.bytes);
  }
  return {weight, state};
}

}  // namespace

TEST_CASE("without savings the step is the graph's own") {
  on_four c;
  planned_step const s = c.step();
  CHECK(s.graph.graph.hash() == c.t.graph.hash());
  CHECK(s.plan == c.p);
}

TEST_CASE("states and weights take a quarter on four devices from one step to the next") {
  on_four c;
  auto const [weight, state] = homes(c.step());
  for (auto const zero : {tensorpar::ir::zero_stage::updates, tensorpar::ir::zero_stage::gradients, tensorpar::ir::zero_stage::weights}) {
    c.set(zero);
    CHECK(homes(c.step()) == std::pair(weight / 4, state / 4));
  }
}

TEST_CASE("a weight in parts is gathered for each pass or once a step, its gradient scattered for each micro-batch or once") {
  on_four c(optimizer_kind::sgd);
  c.t = differentiate(c.g, {.optimizer = {optimizer_kind::sgd}, .micro_batches = 3});
  c.p.micro_batches = 3;
  int const weight = c.g.node(2).in[1];           // of fc2, whose operand needs a gradient
  for (auto const zero : {tensorpar::ir::zero_stage::updates, tensorpar::ir::zero_stage::gradients, tensorpar::ir::zero_stage::weights}) {
    c.set(zero);
    planned_step const s = c.step();
    program const q = unroll(s.graph, s.plan);
    CHECK(check(s.graph, s.plan, q).empty());
    int gathers = 0, scatters = 0, first = -1, computes = -1;
    for (int t = 0; t < static_cast<int>(q.tasks.size()); ++t) {
      task const& k = q.tasks[static_cast<std::size_t>(t)];
      if (k.node == 2 && k.kind == task_kind::compute && computes < 0) computes = t;
      if (k.kind != task_kind::reshard) continue;
      int const x = q.buffers[static_cast<std::size_t>(k.in[0])].value;
      bool const gather = x == weight && k.step.kind == tensorpar::ir::reshard_kind::all_gather;
      if (gather && first < 0) first = t;
      gathers += gather;
      scatters += x == s.graph.gradient[static_cast<std::size_t>(weight)] && k.step.kind == tensorpar::ir::reshard_kind::reduce_scatter;
    }
    CHECK(gathers == (zero == tensorpar::ir::zero_stage::weights ? 6 : 1));
    CHECK(scatters == (zero == tensorpar::ir::zero_stage::updates ? 1 : 3));
    CHECK(first < computes);                      // by the step that reads it, not by the one that updates it
  }
}

TEST_CASE("what is recomputed runs twice, right before it is read, and nothing else does") {
  on_four c;
  c.p.nodes[1].recompute = c.p.nodes[3].recompute = true;
  planned_step const s = c.step();
  std::vector<int> again;
  for (int v = c.t.forward_nodes; v < s.graph.graph.node_count(); ++v)
    if (s.graph.graph.node(v).recomputed) again.push_back(s.graph.graph.node(v).origin);
  CHECK(again == std::vector<int>{1, 3});
  CHECK(s.graph.graph.node_count() == c.t.graph.node_count() + 2);
  // nothing in the backward pass reads what the forward pass made of them
  for (int v = c.t.forward_nodes; v < s.graph.graph.node_count(); ++v)
    for (int x : s.graph.graph.node(v).in) {
      int const p = s.graph.graph.value(x).producer;
      bool const stale = p == 1 || p == 3;
      CHECK_FALSE(stale);
    }
}

TEST_CASE("a chain of many diamonds is computed again once") {
  computation_graph g;
  int x = out(g, g.add_with_weights(linear{4}, {g.add_input("x", {4, 4})}, "first"));
  for (int k = 0; k < 60; ++k) {
    int const a = out(g, g.add_with_weights(relu{}, {x}, "a")), b = out(g, g.add_with_weights(gelu{}, {x}, "b"));
    x = out(g, g.add_with_weights(mul{}, {a, b}, "c"));
  }
  g.add_output("loss", out(g, g.add_with_weights(mean_squared_error{}, {x, g.add_input("y", {4, 4})}, "loss")));
  training_graph const t = differentiate(g);
  plan p = serial_plan(g);
  for (op_strategy& c : p.nodes) c.recompute = true;
  p.nodes.back().recompute = false;
  computation_graph const& again = tensorpar::passes::memory_pass(t, p).graph.graph;
  CHECK(again.node_count() <= t.graph.node_count() + g.node_count() - 1);
}

TEST_CASE("recomputing what stands between two kept results takes memory off the arena") {
  computation_graph g;
  int x = g.add_input("x", {512, 16});
  std::vector<bool> inner;
  for (int k = 0; k < 4; ++k) {
    int v = g.add_with_weights(linear{64}, {x}, "up" + std::to_string(k));
    v = g.add_with_weights(gelu{}, {out(g, v)}, "gelu");
    v = g.add_with_weights(linear{16}, {out(g, v)}, "down" + std::to_string(k));
    x = out(g, v);
    inner.insert(inner.end(), {true, true, false});
  }
  int const labels = g.add_input("labels", shape({512}, dtype::i32));
  g.add_output("loss", out(g, g.add_with_weights(cross_entropy{}, {x, labels}, "loss")));
  training_graph const t = differentiate(g);
  plan p = serial_plan(g);
  auto const arena = [&] {
    planned_step const s = tensorpar::passes::memory_pass(t, p);
    program const q = unroll(s.graph, s.plan);
    CHECK(check(s.graph, s.plan, q).empty());
    return q.arena[0];
  };
  i64 const kept = arena(), wide = 512 * 64 * 4;
  for (std::size_t v = 0; v < inner.size(); ++v) p.nodes[v].recompute = inner[v];
  CHECK(arena() <= kept - 6 * wide);               // three of the four blocks' two wide results do not stay
}

TEST_CASE("a plan that saves memory is not run as one that does not") {
  on_four c;
  c.p.nodes[0].recompute = true;
  CHECK_THROWS_WITH_AS(unroll(c.t, c.p), doctest::Contains("memory_pass(graph, plan)"), error);
  CHECK_THROWS_WITH_AS(tensorpar::passes::detail::require_unrollable(c.t, c.p), doctest::Contains("memory_pass(graph, plan)"), error);
  planned_step const step = c.step();
  CHECK_NOTHROW(tensorpar::passes::detail::require_unrollable(step.graph, step.plan));
  REQUIRE(check(c.t, c.p).size() == 1);
  CHECK(check(c.t, c.p).front().text.find("the plan saves memory") == 0);
  CHECK(c.p.hash() != c.step().plan.hash());
  c.p.nodes.pop_back();
  CHECK_THROWS_WITH_AS(c.step(), doctest::Contains("a plan made for this graph"), error);
}
