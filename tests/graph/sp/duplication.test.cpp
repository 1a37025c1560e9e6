// tests/graph/sp/duplication.test.cpp
#include <doctest/doctest.h>
#include "support/graph_oracles.hpp"
#include "support/shrink.hpp"
#include <algorithm>
#include <tensorpar/graph/digraph.hpp>
#include <tensorpar/graph/sp/duplication.hpp>
#include <tensorpar/graph/sp/measure.hpp>

using namespace tensorpar;
using tests::lists;

namespace {
graph::sp_tree tree(char const* s) { return graph::sp_tree::parse(s); }
}  // namespace

TEST_CASE("naive duplication") {
  auto const naive = [](graph::digraph const& g) { return graph::relax_by_duplication(g, graph::duplication::naive); };
  CHECK(naive(graph::digraph(3, {{0, 1}, {1, 2}})) == tree("S(0,1,2)"));
  CHECK(naive(graph::digraph(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}})) == tree("S(P(S(0,1),S(0,2)),3)"));
  CHECK(naive(graph::digraph(6, {{0, 1}, {0, 2}, {1, 3}, {2, 5}, {3, 4}, {4, 5}})) == tree("S(P(S(0,1,3,4),S(0,2)),5)"));
}

TEST_CASE("coalesced duplication") {
  auto const coalesced = [](graph::digraph const& g) { return graph::relax_by_duplication(g); };
  CHECK(coalesced(graph::digraph(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}})) == tree("S(0,P(1,2),3)"));
  CHECK(coalesced(graph::digraph(6, {{0, 1}, {0, 2}, {1, 3}, {2, 5}, {3, 4}, {4, 5}})) == tree("S(0,P(S(1,3,4),2),5)"));
  CHECK(coalesced(graph::digraph(6, {{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 4}, {3, 4}, {3, 5}, {4, 5}}))
        == tree("S(0,1,P(S(P(2,3),4),3),5)"));
  CHECK(coalesced(graph::digraph(5, {{0, 1}, {0, 2}, {0, 4}, {1, 2}, {1, 3}, {1, 4}, {2, 4}, {3, 4}})) == tree("S(0,1,P(2,3),4)"));
  CHECK(coalesced(graph::digraph(4, {{0, 2}, {0, 3}, {1, 3}})) == tree("P(S(0,2),S(P(0,1),3))"));
}

TEST_CASE("the critical path is that of the graph, every node is there, coalescing never makes more copies") {
  auto const property = [](lists const& g) {
    tests::random_source r{g.size() * 17 + 3};
    auto const w = tests::random_weights(r, static_cast<int>(g.size()));
    graph::sp_tree const a = graph::relax_by_duplication(g, graph::duplication::naive),
        b = graph::relax_by_duplication(g, graph::duplication::coalesced);
    for (graph::sp_tree const& t : {a, b}) {
      if (graph::critical_path(t, w) != tests::longest(g, w)) return false;
      std::vector<int> l = graph::leaves(t);
      std::sort(l.begin(), l.end());
      l.erase(std::unique(l.begin(), l.end()), l.end());
      if (l.size() != g.size()) return false;
    }
    return graph::leaves(b).size() <= graph::leaves(a).size();
  };
  CHECK(tests::counterexample(601, 500, [](auto& r) { return tests::random_dag(r, 1 + r.below(9), 5 + r.below(50)); }, property) == "");
}

TEST_CASE("too many copies are refused") {
  graph::digraph g(40);  // diamonds in a row: naive duplication doubles with each
  for (int v = 0; v + 3 < 40; v += 3)
    for (graph::edge e : {graph::edge{v, v + 1}, {v, v + 2}, {v + 1, v + 3}, {v + 2, v + 3}}) g.add_edge(e.from, e.to);
  CHECK_THROWS_AS(graph::relax_by_duplication(g, graph::duplication::naive, 1000), error);
  CHECK(graph::leaves(graph::relax_by_duplication(g, graph::duplication::coalesced, 1000)).size() == 40);
  CHECK_THROWS_AS(graph::relax_by_duplication(graph::digraph(2, {{0, 1}, {1, 0}})), error);
  CHECK_THROWS_AS(graph::relax_by_duplication(graph::digraph()), error);
}
