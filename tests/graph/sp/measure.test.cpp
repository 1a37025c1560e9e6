// tests/graph/sp/measure.test.cpp
#include <doctest/doctest.h>
#include "support/graph_oracles.hpp"
#include <tensorpar/graph/digraph.hpp>
#include <tensorpar/graph/reachability.hpp>
#include <tensorpar/graph/sp/measure.hpp>

using namespace tensorpar;

TEST_CASE("leaves, work and critical path") {
  graph::sp_tree const t = graph::sp_tree::parse("S(0,P(S(1,3),2),4)");
  std::vector<double> const w{1, 2, 10, 3, 0.5};
  CHECK(graph::leaves(t) == std::vector<int>{0, 1, 3, 2, 4});
  CHECK(graph::work(t, w) == 16.5);
  CHECK(graph::critical_path(t, w) == 11.5);
  CHECK(graph::work(t) == 5);
  CHECK(graph::critical_path(t) == 4);
  CHECK(graph::work(graph::sp_tree::parse("S(1,P(1,2))"), w) == 14);  // a node twice is done twice
}

TEST_CASE("dependencies kept or not") {
  graph::digraph const chain(3, {{0, 1}, {1, 2}});
  CHECK(graph::keeps_dependencies(chain, graph::sp_tree::parse("S(0,1,2)")));
  CHECK_FALSE(graph::keeps_dependencies(chain, graph::sp_tree::parse("S(1,0,2)")));
  CHECK_FALSE(graph::keeps_dependencies(chain, graph::sp_tree::parse("S(0,1)")));
  CHECK_FALSE(graph::keeps_dependencies(chain, graph::sp_tree::parse("S(0,1,2,3)")));
  CHECK_FALSE(graph::keeps_dependencies(chain, graph::sp_tree::parse("S(0,1,1,2)")));
  graph::digraph const apart(3);
  CHECK(graph::keeps_dependencies(apart, graph::sp_tree::parse("P(0,1,2)")));
  CHECK_FALSE(graph::keeps_dependencies(apart, graph::sp_tree::parse("P(0,2)")));
  graph::digraph const rhombus(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  CHECK(graph::keeps_dependencies(rhombus, graph::sp_tree::parse("S(0,P(1,2),3)")));
  CHECK(graph::keeps_dependencies(rhombus, graph::sp_tree::parse("S(0,1,2,3)")));
  CHECK_FALSE(graph::keeps_dependencies(rhombus, graph::sp_tree::parse("P(0,S(1,3),2)")));
  graph::digraph const diamond(6, {{0, 1}, {0, 2}, {1, 3}, {1, 4}, {2, 4}, {3, 5}, {4, 5}});
  for (char const* s : {"S(0,P(1,2),P(3,4),5)", "S(0,1,2,P(3,4),5)", "S(0,P(1,2),3,4,5)"})
    CHECK(graph::keeps_dependencies(diamond, graph::sp_tree::parse(s)));
  CHECK_FALSE(graph::keeps_dependencies(diamond, graph::sp_tree::parse("S(0,P(1,2,4),3,5)")));
}

TEST_CASE("the order of a tree, its cover edges, its paths") {
  tests::random_source r{61};
  for (int i = 0; i < 300; ++i) {
    int const n = 1 + r.below(14);
    graph::sp_tree const t = tests::random_sp_tree(r, n);
    tests::lists const g = tests::graph_of(t, n);
    tests::matrix const m = tests::closure(g);
    graph::sp_order const order(t, n);
    for (int u = 0; u < n; ++u)
      for (int v = 0; v < n; ++v) CHECK(order.precedes(u, v) == static_cast<bool>(m[tests::at(u)][tests::at(v)]));
    CHECK(graph::digraph(graph::transitive_reduction(g)) == graph::digraph(g));  // cover edges are not implied by others
    CHECK(graph::keeps_dependencies(g, t));
    auto const w = tests::random_weights(r, n);
    CHECK(graph::critical_path(t, w) == tests::longest(g, w));
    int sum = 0;
    for (int x : w) sum += x;
    CHECK(graph::work(t, w) == sum);
  }
}
