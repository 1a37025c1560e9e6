// tests/graph/adjacency.test.cpp
#include <doctest/doctest.h>
#include "support/random_graph.hpp"
#include <tensorpar/graph/adjacency.hpp>

using namespace tensorpar;

TEST_CASE("adjacency keeps each edge once, both ways") {
  tests::lists const g{{}, {0, 0}, {1, 0, 1}};
  graph::adjacency const a(g);
  CHECK(a.node_count() == 3);
  CHECK(a.edge_count() == 3);
  CHECK(graph::edges(a) == std::vector<graph::edge>{{0, 1}, {0, 2}, {1, 2}});
  CHECK(std::vector<int>(a.successors(0).begin(), a.successors(0).end()) == std::vector<int>{1, 2});
  CHECK(std::vector<int>(a.predecessors(2).begin(), a.predecessors(2).end()) == std::vector<int>{1, 0});
  CHECK(graph::edges(graph::adjacency(g).reversed()) == std::vector<graph::edge>{{1, 0}, {2, 0}, {2, 1}});
}

TEST_CASE("adjacency from edges") {
  graph::edge const e[] = {{2, 0}, {1, 0}, {2, 0}};
  graph::adjacency const a = graph::adjacency::from_edges(3, {e, 3});
  CHECK(graph::edges(a) == std::vector<graph::edge>{{1, 0}, {2, 0}});
  CHECK(graph::sources(a) == std::vector<int>{1, 2});
  CHECK(graph::sinks(a) == std::vector<int>{0});
  graph::edge const wrong[] = {{0, 3}};
  CHECK_THROWS_AS((void)graph::adjacency::from_edges(3, {wrong, 1}), error);
  CHECK(graph::adjacency::from_edges(0, {nullptr, 0}).edge_count() == 0);
}

TEST_CASE("edges of a graph are those of its packed copy") {
  tests::random_source r{3};
  for (int i = 0; i < 50; ++i) {
    tests::lists const g = tests::random_dag(r, r.below(12), 30);
    std::size_t count = 0;
    for (auto const& p : g) count += p.size();
    std::vector<graph::edge> const e = graph::edges(g);
    CHECK(e.size() == count);
    CHECK(graph::edges(graph::adjacency(g)) == e);
    for (std::size_t k = 1; k < e.size(); ++k) CHECK(e[k - 1] < e[k]);
  }
}
