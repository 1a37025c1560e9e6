// tests/rewrite/open_graph.test.cpp - graphs that are opened, changed and closed
#include <tensorpar/rewrite/open_graph.hpp>
#include <doctest/doctest.h>

#include <random>
#include <set>
#include <support/effort.hpp>
#include <support/small_graphs.hpp>
#include <tensorpar/op/operators.hpp>

using namespace tests;

namespace {
/// Users, producers and the index say the same.
void consistent(tensorpar::rewrite::open_graph const& g) {
  int alive = 0;
  for (int v = 0; v < g.node_count(); ++v) {
    auto const& n = g.node(v);
    auto const& list = g.nodes_of(n.op.op->id);
    CHECK(std::binary_search(list.begin(), list.end(), v) == n.alive);
    if (!n.alive) continue;
    ++alive;
    for (int x : n.in) {
      CHECK(g.value(x).alive);
      CHECK(std::count(g.value(x).users.begin(), g.value(x).users.end(), v) == std::count(n.in.begin(), n.in.end(), x));
    }
    for (int x : n.out) CHECK(g.value(x).producer == v);
  }
  CHECK(alive == g.alive());
}
}  // namespace

TEST_CASE("opening and closing changes nothing") {
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()}) {
    tensorpar::rewrite::sharding_graph const s = tensorpar::rewrite::unsharded(g);
    tensorpar::rewrite::open_graph const o(s);
    consistent(o);
    tensorpar::rewrite::sharding_graph const again = o.close();
    CHECK(tensorpar::rewrite::problems(again).empty());
    REQUIRE(again.graph.node_count() == g.node_count());
    for (int v = 0; v < g.node_count(); ++v) {
      graph_node const &a = again.graph.node(v), &b = g.node(v);
      CHECK(a.op == b.op);
      CHECK(a.name == b.name);
      for (std::size_t k = 0; k < b.in.size(); ++k) {
        graph_value const &x = again.graph.value(a.in[k]), &y = g.value(b.in[k]);
        CHECK((x.producer == y.producer && x.slot == y.slot && x.name == y.name && x.role == y.role && x.type == y.type));
      }
    }
    for (std::size_t k = 0; k < g.outputs.size(); ++k) CHECK(again.graph.outputs[k].name == g.outputs[k].name);
  }
}

TEST_CASE("every node is replaced by one like it, in any order") {
  std::mt19937 draw(1);
  for (int turn = 0; turn < test_effort::cases(12); ++turn) {
    computation_graph const c = turn % 2 ? residual_mlp() : small_transformer();
    tensorpar::rewrite::open_graph g(tensorpar::rewrite::unsharded(c));
    std::vector<int> order;
    for (int v = 0; v < c.node_count(); ++v) order.push_back(v);
    std::shuffle(order.begin(), order.end(), draw);
    for (int v : order) {
      std::vector<tensorpar::ir::parallel_shape> results;
      for (int x : g.node(v).out) results.push_back(g.value(x).where);
      int const w = g.add(g.node(v).op, g.node(v).in, results, g.node(v).name);
      for (std::size_t k = 0; k < results.size(); ++k) g.redirect(g.node(v).out[k], g.node(w).out[k]);
      REQUIRE(g.unused(v));
      g.remove(v);
      consistent(g);
    }
    tensorpar::rewrite::sharding_graph const s = g.close();
    CHECK(tensorpar::rewrite::problems(s).empty());
    CHECK(s.graph.node_count() == c.node_count());
    std::multiset<std::string> before, after;
    for (graph_node const& n : c.nodes) before.insert(n.name + tensorpar::op::spell(n.op));
    for (graph_node const& n : s.graph.nodes) after.insert(n.name + tensorpar::op::spell(n.op));
    CHECK(before == after);
  }
}

TEST_CASE("a redirected value takes its users and outputs along; what nobody uses can be removed") {
  computation_graph c;
  int const x = c.add_input("x", {4, 4});
  int const a = c.node(c.add(relu{}, {x})).out[0];
  int const b = c.node(c.add(add{}, {a, a})).out[0];
  c.add_output("a", a);
  c.add_output("b", b);
  tensorpar::rewrite::open_graph g(tensorpar::rewrite::unsharded(c));
  int const v = g.add(gelu{}, {x}, {g.value(x).where});
  int const y = g.node(v).out[0];
  CHECK(!g.unused(0));
  g.redirect(a, y);
  CHECK(g.unused(0));
  CHECK(g.node(1).in == std::vector<value_id>{y, y});
  CHECK(g.value(y).users == std::vector<int>{1, 1});
  g.remove(0);
  consistent(g);
  tensorpar::rewrite::sharding_graph const s = g.close();
  CHECK(tensorpar::rewrite::problems(s).empty());
  REQUIRE(s.graph.node_count() == 2);
  CHECK(s.graph.node(0).op == tensorpar::op::any_op(gelu{}));
  CHECK(s.graph.output("a") == s.graph.node(0).out[0]);
}

TEST_CASE("shardings that do not follow are problems") {
  computation_graph c;
  int const x = c.add_input("x", {4, 4});
  c.add_output("y", c.node(c.add(relu{}, {x})).out[0]);
  tensorpar::rewrite::sharding_graph s = tensorpar::rewrite::unsharded(c);
  s.shapes[1].degree[0] = 2;
  CHECK(tensorpar::rewrite::problems(s).size() == 1);
  s.shapes[0].degree[0] = 2;
  CHECK(tensorpar::rewrite::problems(s).empty());
  s.shapes[0].sum = 2;
  CHECK(tensorpar::rewrite::problems(s)[0].find("partial sums cannot pass") != std::string::npos);
}
