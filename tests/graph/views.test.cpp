// tests/graph/views.test.cpp
#include <doctest/doctest.h>
#include "support/graph_oracles.hpp"
#include <algorithm>
#include <tensorpar/graph/convexity.hpp>
#include <tensorpar/graph/digraph.hpp>
#include <tensorpar/graph/order.hpp>
#include <tensorpar/graph/views.hpp>

using namespace tensorpar;

TEST_CASE("reversed twice is the graph") {
  tests::random_source r{5};
  for (int i = 0; i < 50; ++i) {
    graph::digraph const g(tests::random_dag(r, r.below(10), 40));
    auto const once = graph::reversed(g);
    CHECK(graph::edges(graph::reversed(once)) == graph::edges(g));
    CHECK(graph::digraph(once).node_count() == g.node_count());
    for (graph::edge e : graph::edges(once)) CHECK(g.has_edge(e.to, e.from));
    CHECK(graph::edges(once).size() == graph::edges(g).size());
  }
  tests::lists const only_backwards{{}, {0}, {1}};
  CHECK(graph::edges(graph::reversed(only_backwards)) == std::vector<graph::edge>{{1, 0}, {2, 1}});
}

TEST_CASE("induced keeps all edges among the nodes, under new names") {
  graph::digraph const g(5, {{0, 1}, {1, 2}, {0, 3}, {3, 4}, {1, 4}});
  graph::subgraph const s = graph::induced(g, {4, 1, 0});
  CHECK(s.origin == std::vector<int>{4, 1, 0});
  CHECK(graph::edges(s) == std::vector<graph::edge>{{1, 0}, {2, 1}});
  CHECK(graph::induced(g, {}).node_count() == 0);
  CHECK_THROWS_AS((void)graph::induced(g, {1, 1}), error);
  CHECK_THROWS_AS((void)graph::induced(g, {7}), error);
}

TEST_CASE("contracted joins groups") {
  graph::digraph const g(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  CHECK(graph::digraph(graph::contracted(g, {0, 1, 1, 2}, 3)) == graph::digraph(3, {{0, 1}, {1, 2}}));
  CHECK(graph::digraph(graph::contracted(g, {0, 0, 0, 0}, 1)) == graph::digraph(1));
  CHECK_THROWS_AS((void)graph::contracted(g, {0, 1}, 2), error);
  CHECK_THROWS_AS((void)graph::contracted(g, {0, 1, 2, 3}, 3), error);
}

TEST_CASE("contracting one group gives a cycle exactly if the group is not convex") {
  tests::random_source r{17};
  int cyclic = 0;
  for (int i = 0; i < 300; ++i) {
    int const n = 2 + r.below(8);
    tests::lists const g = tests::random_dag(r, n, 30);
    std::vector<int> group, inside;
    int groups = 1;
    for (int v = 0; v < n; ++v) {
      bool const in = r.chance(40);
      group.push_back(in ? 0 : groups++);
      if (in) inside.push_back(v);
    }
    bool const acyclic = graph::is_acyclic(graph::contracted(g, group, groups));
    CHECK(acyclic == graph::is_convex(g, inside));
    cyclic += !acyclic;
  }
  CHECK(cyclic > 20);
}
