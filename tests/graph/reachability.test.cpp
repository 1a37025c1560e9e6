// tests/graph/reachability.test.cpp
#include <doctest/doctest.h>
#include "support/graph_oracles.hpp"
#include "support/shrink.hpp"
#include <tensorpar/graph/digraph.hpp>
#include <tensorpar/graph/reachability.hpp>

using namespace tensorpar;
using tests::lists;

TEST_CASE("transitive reduction drops what longer paths imply") {
  auto const reduced = [](int n,
                          std::vector<graph::edge> const& e) { return graph::digraph(graph::transitive_reduction(graph::digraph(n, e))); };
  CHECK(reduced(4, {{0, 1}, {1, 2}, {2, 3}, {0, 3}}) == graph::digraph(4, {{0, 1}, {1, 2}, {2, 3}}));
  CHECK(reduced(5, {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {0, 3}, {1, 4}}) == graph::digraph(5, {{0, 1}, {1, 2}, {2, 3}, {3, 4}}));
  CHECK(reduced(5, {{0, 1}, {0, 2}, {0, 3}, {0, 4}, {1, 3}, {2, 3}, {2, 4}, {3, 4}}) ==
        graph::digraph(5, {{0, 1}, {0, 2}, {1, 3}, {2, 3}, {3, 4}}));
  CHECK(reduced(3, {{0, 1}, {1, 2}, {0, 2}}) == graph::digraph(3, {{0, 1}, {1, 2}}));
  CHECK(reduced(7, {{0, 3}, {0, 4}, {1, 2}, {1, 3}, {1, 5}, {2, 3}, {3, 4}, {3, 5}, {4, 5}}) ==
        graph::digraph(7, {{0, 3}, {1, 2}, {2, 3}, {3, 4}, {4, 5}}));
}

TEST_CASE("descendants and ancestors") {
  graph::reachability const r(graph::digraph(6, {{0, 1}, {1, 2}, {1, 3}, {2, 4}, {3, 4}}));
  CHECK(r.descendants(1) == std::vector<int>{2, 3, 4});
  CHECK(r.ancestors(4) == std::vector<int>{0, 1, 2, 3});
  CHECK_FALSE(r.reaches(1, 1));
  CHECK_FALSE(r.comparable(2, 3));
  CHECK(r.comparable(4, 0));
  CHECK_THROWS_AS(graph::reachability(graph::digraph(2, {{0, 1}, {1, 0}})), error);
}

TEST_CASE("reachability, closure and reduction agree with Warshall, beyond one word too") {
  auto const property = [](lists const& g) {
    tests::matrix const m = tests::closure(g);
    int const n = static_cast<int>(g.size());
    graph::reachability const r(g);
    graph::digraph const closed(graph::transitive_closure(g)), reduced(graph::transitive_reduction(g));
    for (int u = 0; u < n; ++u)
      for (int v = 0; v < n; ++v) {
        bool const path = m[tests::at(u)][tests::at(v)];
        bool longer = false;
        for (int k = 0; k < n; ++k) longer = longer || (m[tests::at(u)][tests::at(k)] && m[tests::at(k)][tests::at(v)]);
        if (r.reaches(u, v) != path || closed.has_edge(u, v) != path || reduced.has_edge(u, v) != (path && !longer)) return false;
      }
    return graph::digraph(graph::transitive_closure(reduced)) == closed && graph::digraph(graph::transitive_reduction(closed)) == reduced;
  };
  CHECK(tests::counterexample(6, 200, [](auto& r) { return tests::random_dag(r, r.below(14), r.below(60)); }, property) == "");
  CHECK(tests::counterexample(8, 4, [](auto& r) { return tests::random_dag(r, 130, 4); }, property) == "");
}
