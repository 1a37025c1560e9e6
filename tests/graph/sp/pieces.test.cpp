// tests/graph/sp/pieces.test.cpp
#include <doctest/doctest.h>
#include "support/graph_oracles.hpp"
#include "support/shrink.hpp"
#include <tensorpar/graph/digraph.hpp>
#include <tensorpar/graph/sp/pieces.hpp>

using namespace tensorpar;
using tests::lists;

TEST_CASE("cuts into a series") {
  CHECK(graph::series_pieces(graph::digraph(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}})).of == std::vector<int>{0, 1, 1, 2});
  CHECK(graph::series_pieces(graph::digraph(4, {{0, 2}, {0, 3}, {1, 2}, {1, 3}})).of == std::vector<int>{0, 0, 1, 1});
  CHECK(graph::series_pieces(graph::digraph(4, {{0, 2}, {1, 2}, {1, 3}})).count == 1);
  CHECK(graph::series_pieces(graph::digraph(4, {{3, 2}, {2, 1}, {1, 0}, {3, 0}})).of == std::vector<int>{3, 2, 1, 0});
  CHECK(graph::series_pieces(graph::digraph(2)).count == 1);
  CHECK(graph::series_pieces(graph::digraph()).count == 0);
  CHECK_THROWS_AS((void)graph::series_pieces(graph::digraph(2, {{0, 1}, {1, 0}})), error);
}

TEST_CASE("two nodes are in one piece exactly if incomparable nodes link them") {
  auto const property = [](lists const& g) {
    tests::matrix const m = tests::closure(g);
    lists apart(g.size());  // pieces are the components of "not comparable"
    for (std::size_t u = 0; u < g.size(); ++u)
      for (std::size_t v = 0; v < g.size(); ++v)
        if (u != v && !m[u][v] && !m[v][u]) apart[u].push_back(static_cast<int>(v));
    tests::matrix const linked = tests::closure(apart);
    auto const p = graph::series_pieces(g);
    for (std::size_t u = 0; u < g.size(); ++u)
      for (std::size_t v = 0; v < g.size(); ++v) {
        if (u != v && (p.of[u] == p.of[v]) != static_cast<bool>(linked[u][v])) return false;
        if (p.of[u] < p.of[v] && !m[u][v]) return false;
      }
    return true;
  };
  CHECK(tests::counterexample(201, 1500, [](auto& r) { return tests::random_dag(r, r.below(10), 20 + r.below(70)); }, property) == "");
}
