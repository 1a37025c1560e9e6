// tests/program/operator_order.test.cpp - orders of operators: what they make of a step, and which are refused
#include <tensorpar/plan/order_fault.hpp>
#include <tensorpar/program/operator_order.hpp>

#include <doctest/doctest.h>
#include <numeric>

#include <tensorpar/plan/codec.hpp>
#include <tensorpar/program/evidence/certificate.hpp>

#include "support/effort.hpp"
#include "support/small_graphs.hpp"

using namespace tests;

namespace {

/// Is every node there once, behind what it reads, and every update behind all who read what it changes?
bool valid_order(computation_graph const& g, std::vector<int> const& order) {
  std::vector<int> place(g.nodes.size(), -1);
  for (std::size_t i = 0; i < order.size(); ++i) place[static_cast<std::size_t>(order[i])] = static_cast<int>(i);
  auto at = [&](int v) { return place[static_cast<std::size_t>(v)]; };
  if (order.size() != g.nodes.size() || std::count(place.begin(), place.end(), -1)) return false;
  for (int v = 0; v < g.node_count(); ++v) {
    for (int x : g.node(v).in) if (int const p = g.value(x).producer; p >= 0 && at(p) > at(v)) return false;
    for (int y : g.node(v).out)
      for (int u = 0; u < g.node_count() && g.value(y).stored_in >= 0; ++u)
        for (int x : g.node(u).in) if (x == g.value(y).stored_in && u != v && at(u) > at(v)) return false;
  }
  return true;
}
std::vector<int> numbers(int n) {
  std::vector<int> r(static_cast<std::size_t>(n));
  std::iota(r.begin(), r.end(), 0);
  return r;
}
std::vector<computation_graph> graphs() { return {towers(4), residual_mlp(), small_cnn(), small_transformer()}; }
plan on(computation_graph const& g, int devices, std::mt19937& draw, bool saves) {
  plan p = random_plan(g, devices, draw);
  for (op_strategy& c : p.nodes) {
    if (!saves) continue;
    c.recompute = draw() % 2;
    c.zero = static_cast<tensorpar::ir::zero_stage>(draw() % 4);
  }
  return p;
}

}  // namespace

TEST_CASE("orders of operators: steps follow them, and the numbers' order is the step's own") {
  std::mt19937 draw(1);
  for (computation_graph const& g : graphs())
    for (int trial = 0; trial < test_effort::cases(40); ++trial) {
      training_options o;
      o.optimizer.clip_norm = trial % 4 == 1 ? 0.5 : 0;
      planned_step const s = tensorpar::passes::memory_pass(differentiate(g, o), on(g, 4, draw, trial % 2));
      if (o.optimizer.clip_norm == 0)
        CHECK(tensorpar::passes::step_order(s.graph, numbers(g.node_count())) == numbers(s.graph.graph.node_count()));
      CHECK(tensorpar::passes::step_order(s.graph, {}).empty());
      std::vector<int> const order = random_order(g, draw), all = tensorpar::passes::step_order(s.graph, order);
      CHECK(valid_order(s.graph.graph, all));
      CHECK(std::equal(order.begin(), order.end(), all.begin()));           // the forward pass is what was asked for
    }
}

TEST_CASE("orders of operators: gradients come the other way round") {
  computation_graph const g = towers(3);
  training_graph const t = differentiate(g);
  std::mt19937 draw(2);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<int> const order = random_order(g, draw);
    std::vector<int> back;                                                  // towers' last layers, as their gradients come
    for (int v : tensorpar::passes::step_order(t, order)) {
      graph_node const& n = t.graph.node(v);
      bool const last = n.origin >= 0 && g.node(n.origin).name.rfind("out", 0) == 0;
      if (n.phase == step_phase::backward && last && (back.empty() || back.back() != n.origin)) back.push_back(n.origin);
    }
    std::vector<int> forth;
    for (int v : order) if (g.node(v).name.rfind("out", 0) == 0) forth.push_back(v);
    CHECK(std::equal(forth.rbegin(), forth.rend(), back.begin(), back.end()));
  }
}

TEST_CASE("orders of operators: programs are those that the checker accepts, and all devices see the same") {
  std::mt19937 draw(3);
  int other = 0;
  for (computation_graph const& g : graphs())
    for (int trial = 0; trial < test_effort::cases(20); ++trial) {
      plan p = on(g, 1 + trial % 6, draw, trial % 2);
      p.micro_batches = 1 + trial % 3;
      plan const by_number = p;
      p.node_order = random_order(g, draw);
      seal(g, p);
      auto const wrong = check_certificate(g, p);
      CHECK_MESSAGE(wrong.empty(), (wrong.empty() ? "" : wrong.front().text));
      plan q = by_number;
      seal(g, q);
      other += q.tasks != p.tasks;
      CHECK((p.node_order == numbers(g.node_count())) <= (q.tasks == p.tasks));
      CHECK(p.hash() != by_number.hash());
      planned_step const s = tensorpar::passes::memory_pass(differentiate(g, training_of(p)), p);
      program const whole = unroll(s.graph, s.plan);
      for (int d = 0; d < p.cluster.size(); ++d) CHECK(arena_on(d, s.graph, s.plan) == whole.arena[static_cast<std::size_t>(d)]);
      plan evaluates = s.plan;
      evaluates.peak_bytes.clear();
      CHECK(check_forward(s.graph, evaluates, unroll(s.graph, evaluates, {.forward_only = true})).empty());
      int at = 0;                                                           // forward operators, as the plan says
      for (task const& x : whole.tasks)
        if (x.kind == task_kind::compute && x.node < g.node_count() && x.micro_batch == 0)
          CHECK(x.node == p.node_order[static_cast<std::size_t>(at++)]);
      p.node_order.clear();
      CHECK((q.tasks == p.tasks || !check_certificate(g, p).empty()));      // a sealed plan's order is no matter of taste
    }
  CHECK(other > test_effort::cases(24));
}

TEST_CASE("orders of operators: those that cannot be are refused with where and what would be valid") {
  computation_graph const g = towers(2);
  training_graph const t = differentiate(g);
  int const n = g.node_count();
  auto const refused = [&](std::vector<int> order, char const* what, char const* where, bool in_files = true) {
    plan p = serial_plan(g);
    p.node_order = std::move(order);
    auto const f = fault_of_order(t.graph, p.node_order, n);
    REQUIRE(f);
    CHECK(f->what.find(what) != std::string::npos);
    CHECK(f->where() == where);
    CHECK_THROWS_WITH_AS(unroll(t, p), doctest::Contains(what), error);
    CHECK_THROWS_WITH_AS(unroll(t, p), doctest::Contains((std::string("plan: ") + where).c_str()), error);
    auto const found = check(t, p);
    REQUIRE(found.size() == 1);
    CHECK(found.front().code == fault::malformed);
    CHECK(found.front().text.find(what) != std::string::npos);
    if (in_files) CHECK_THROWS_WITH_AS(decode(encode(p), "p.json"), doctest::Contains((std::string("p.json: ") + where).c_str()), error);
    else CHECK(decode(encode(p), "p.json") == p);                           // for that the graph is needed
  };
  std::vector<int> order = numbers(n);
  order.pop_back();
  refused(order, "an order of 7 operators where the plan decides about 8", "node_order");
  order.push_back(3);
  refused(order, "operator 3 comes twice", "node_order[7]");
  order.back() = n;
  refused(order, "operator 8", "node_order[7]");
  order.back() = -1;
  refused(order, "operator -1", "node_order[7]");
  order = numbers(n);
  std::swap(order[1], order[2]);
  refused(order, "operator 2 comes before operator 1, whose result it reads", "node_order[1]", false);
}

TEST_CASE("orders of operators: pipelines have their own") {
  computation_graph const g = towers(2);
  plan p = serial_plan(g);
  p.node_order = numbers(g.node_count());
  p.pipeline.unit = p.pipeline.mini_batch = 24;
  p.pipeline.groups = {{0, 1}};
  p.pipeline.stages = {{}};
  p.pipeline.stages[0].micro_batch = 24;
  p.pipeline.stages[0].nodes = numbers(g.node_count());
  p.pipeline.schedule = {{{0, pass::forward, 0}, {0, pass::backward, 0}}};
  CHECK_THROWS_WITH_AS(tensorpar::passes::pipeline_pass(g, p), doctest::Contains("an order of operators beside a pipeline"), error);
  CHECK_THROWS_WITH_AS(decode(encode(p), "p.json"), doctest::Contains("p.json: node_order"), error);
  p.node_order.clear();
  CHECK(tensorpar::passes::pipeline_pass(g, p).graph.forward_nodes == g.node_count());
  CHECK(decode(encode(p), "p.json") == p);
}
