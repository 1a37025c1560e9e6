// tests/graph/digraph.test.cpp
#include <doctest/doctest.h>
#include "support/random_graph.hpp"
#include <tensorpar/graph/digraph.hpp>

using namespace tensorpar;

TEST_CASE("a digraph is a value, however it was built") {
  graph::digraph g;
  int const a = g.add_node(), b = g.add_node(), c = g.add_node();
  CHECK(g.add_edge(a, c));
  CHECK(g.add_edge(a, b));
  CHECK_FALSE(g.add_edge(a, c));
  CHECK(g == graph::digraph(3, {{0, 1}, {0, 2}}));
  CHECK(g != graph::digraph(3, {{0, 1}, {2, 0}}));
  CHECK(g != graph::digraph(4, {{0, 1}, {0, 2}}));
  graph::digraph h = g;
  h.add_edge(b, c);
  CHECK(h != g);
  CHECK(h.has_edge(b, c));
  CHECK_FALSE(g.has_edge(b, c));
  CHECK(graph::edges(h) == std::vector<graph::edge>{{0, 1}, {0, 2}, {1, 2}});
}

TEST_CASE("predecessors and successors, both ways") {
  graph::digraph const g(5, {{0, 2}, {1, 2}, {2, 3}, {2, 4}});
  auto const list = [](core::slice<int> s) { return std::vector<int>(s.begin(), s.end()); };
  CHECK(list(g.predecessors(2)) == std::vector<int>{0, 1});
  CHECK(list(g.successors(2)) == std::vector<int>{3, 4});
  CHECK(list(g.successors(0)) == std::vector<int>{2});
  CHECK(g.predecessors(0).empty());
  CHECK(graph::sources(g) == std::vector<int>{0, 1});
  CHECK(graph::sinks(g) == std::vector<int>{3, 4});
}

TEST_CASE("an edge needs both ends") {
  graph::digraph g(2);
  CHECK_THROWS_AS(g.add_edge(0, 2), error);
  CHECK_THROWS_AS(g.add_edge(-1, 0), error);
  CHECK(g == graph::digraph(2));
}

TEST_CASE("edges of a digraph make the same digraph") {
  tests::random_source r{11};
  for (int i = 0; i < 50; ++i) {
    tests::lists const l = tests::random_dag(r, r.below(10), 40);
    graph::digraph const g(l);
    CHECK(graph::digraph(g.node_count(), graph::edges(g)) == g);
    CHECK(graph::edges(g) == graph::edges(l));
  }
}
