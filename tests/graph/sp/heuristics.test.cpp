// tests/graph/sp/heuristics.test.cpp - stratum synchronisation, Escribano, flexible: expected trees and laws
#include <doctest/doctest.h>
#include "support/graph_oracles.hpp"
#include "support/networks.hpp"
#include "support/shrink.hpp"
#include <tensorpar/graph/digraph.hpp>
#include <tensorpar/graph/order.hpp>
#include <tensorpar/graph/sp/heuristics.hpp>
#include <tensorpar/graph/sp/measure.hpp>
#include <tensorpar/graph/sp/series_parallel.hpp>

using namespace tensorpar;
using tests::lists;
using weights = std::vector<int>;

namespace {
graph::sp_tree tree(char const* s) { return graph::sp_tree::parse(s); }
graph::digraph crossing() { return graph::digraph(6, {{0, 1}, {0, 2}, {1, 3}, {1, 4}, {2, 4}, {3, 5}, {4, 5}}); }
graph::digraph uneven() { return graph::digraph(6, {{0, 1}, {0, 2}, {1, 3}, {2, 5}, {3, 4}, {4, 5}}); }
}  // namespace

TEST_CASE("strata") {
  weights const w{1, 1, 10, 1, 1, 1};
  graph::sp_tree const t = graph::relax_by_strata(uneven());
  CHECK(graph::longest_path(uneven(), w).length == 12);
  CHECK(graph::critical_path(t, w) == 14);
  CHECK(graph::work(t, w) == 15);
  CHECK(graph::relax_by_strata(graph::digraph(6, {{0, 1}, {0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 5}})) == tree("S(0,P(1,2),P(3,4),5)"));
  CHECK(graph::relax_by_strata(graph::digraph(4)) == tree("P(0,1,2,3)"));
  CHECK(graph::relax_by_strata(graph::digraph(5, {{0, 2}, {0, 3}, {0, 4}, {1, 2}, {1, 3}, {1, 4}})) == tree("S(P(0,1),P(2,3,4))"));
}

TEST_CASE("Escribano") {
  CHECK(graph::relax_escribano(graph::digraph(1)) == tree("0"));
  CHECK(graph::relax_escribano(graph::digraph(6, {{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 4}, {3, 4}, {3, 5}, {4, 5}}))
        == tree("S(0,1,P(2,3),4,5)"));
  CHECK(graph::relax_escribano(uneven()) == tree("S(0,P(S(1,3,4),2),5)"));
  CHECK(graph::relax_escribano(crossing()) == tree("S(0,P(1,2),P(3,4),5)"));
  graph::digraph const ten(10, {{0, 1}, {0, 3}, {1, 2}, {1, 5}, {1, 4}, {2, 6}, {3, 4}, {3, 5}, {3, 8}, {4, 8}, {5, 7}, {7, 8}, {6, 9},
                                {8, 9}});
  CHECK(graph::relax_escribano(ten) == tree("S(0,P(1,3),P(S(2,6),S(P(S(5,7),4),8)),9)"));
  CHECK(graph::relax_escribano(graph::digraph(8, {{0, 1}, {0, 2}, {0, 3}, {1, 4}, {1, 5}, {2, 5}, {3, 6}, {4, 7}, {5, 7}, {6, 7}})) ==
        tree("S(0,P(S(P(1,2),P(4,5)),S(3,6)),7)"));
}

TEST_CASE("flexible: the cut follows the costs") {
  CHECK(graph::relax_flexible(crossing()) == tree("S(0,P(1,2),P(3,4),5)"));
  CHECK(graph::relax_flexible(crossing(), weights{1, 1, 10, 1000, 1, 1}) == tree("S(0,1,P(S(2,4),3),5)"));
  CHECK(graph::relax_flexible(crossing(), weights{1, 1, 1000, 1000, 1, 1}) == tree("S(0,P(S(1,3),2),4,5)"));
  graph::digraph const implied_edge(7, {{0, 1}, {0, 2}, {1, 3}, {1, 4}, {2, 5}, {3, 6}, {4, 5}, {5, 6}});
  CHECK(graph::relax_flexible(implied_edge, weights{1, 1, 1, 10, 1, 10, 1}) == tree("S(0,P(S(1,4),2),P(3,5),6)"));
  graph::digraph const strand(7, {{0, 1}, {0, 2}, {1, 3}, {1, 4}, {2, 4}, {3, 6}, {4, 6}, {0, 5}, {5, 6}});
  CHECK(graph::relax_flexible(strand, weights{1, 1, 100, 100, 1, 1, 1}) == tree("S(0,P(S(P(S(1,3),2),4),5),6)"));
  graph::digraph const appendage(8, {{0, 1}, {0, 2}, {1, 3}, {1, 4}, {2, 4}, {3, 5}, {4, 5}, {0, 6}, {6, 5}, {2, 7}, {7, 5}});
  CHECK(graph::relax_flexible(appendage) == tree("S(0,P(6,S(P(1,2),P(3,4,7))),5)"));
  CHECK(graph::relax_flexible(appendage, weights{1, 100, 1, 1, 1, 1, 1, 100}) == tree("S(0,P(6,S(2,P(7,S(1,P(3,4))))),5)"));
}

TEST_CASE("flexible: a graph of eighteen nodes") {
  std::vector<graph::edge> e{{0, 1}, {0, 2}, {1, 3}, {1, 4}, {2, 10}, {2, 11}, {2, 12}, {3, 5}, {3, 6}, {4, 6}, {4, 7}, {4, 10}, {5, 8},
                      {6, 8}, {6, 9}, {7, 8}, {8, 17}, {9, 17}, {10, 16}, {11, 16}, {12, 13}, {12, 14}, {13, 15}, {14, 15},
                      {15, 16}, {16, 17}};
  graph::digraph const without(18, e);
  e.push_back({10, 9});
  graph::digraph const g(18, e);
  CHECK(graph::relax_flexible(g) == tree("S(0,P(S(1,P(3,4)),S(2,P(11,12))),P(S(P(10,5,6,7),P(8,9)),S(P(13,14),15)),16,17)"));
  CHECK(graph::keeps_dependencies(without, graph::relax_flexible(without)));
  CHECK(graph::keeps_dependencies(without, graph::relax_flexible(without, weights{1, 3, 5, 3, 5, 3, 5, 1, 5, 5, 3, 3, 1, 3, 3, 1, 1, 1})));
}

TEST_CASE("flexible: the N, three weightings, three best trees") {
  graph::digraph const n(4, {{0, 2}, {0, 3}, {1, 3}});
  CHECK(graph::relax_flexible(n, weights{1, 1, 1, 1}) == tree("S(P(0,1),P(2,3))"));
  CHECK(graph::relax_flexible(n, weights{1, 3, 2, 1}) == tree("S(P(S(0,2),1),3)"));
  CHECK(graph::relax_flexible(n, weights{1, 2, 3, 1}) == tree("S(0,P(2,S(1,3)))"));
}

TEST_CASE("all three keep all dependencies, do the work once and are never faster than the graph") {
  auto const property = [](lists const& g) {
    tests::random_source r{g.size() * 77 + g[0].size()};
    int const n = static_cast<int>(g.size());
    weights const w = tests::random_weights(r, n);
    int sum = 0;
    for (int x : w) sum += x;
    for (graph::sp_tree const& t : {graph::relax_by_strata(g), graph::relax_escribano(g), graph::relax_flexible(g, w)})
      if (!graph::keeps_dependencies(g, t) || graph::work(t, w) != sum || graph::critical_path(t, w) < tests::longest(g, w)) return false;
    return graph::relax_flexible(g, w) == graph::relax_flexible(g, w);
  };
  CHECK(tests::counterexample(301, 1500, [](auto& r) { return tests::random_dag(r, 1 + r.below(16), 5 + r.below(45)); }, property) == "");
}

TEST_CASE("a two-terminal series-parallel graph of equal costs loses nothing under Escribano and flexible") {
  tests::random_source r{307};
  int kept = 0, kept_flexible = 0, all = 0;
  for (int i = 0; i < 300; ++i) {
    int const n = 3 + r.below(12);
    graph::sp_tree const inner = tests::random_sp_tree(r, n - 2);
    graph::sp_expr e;
    int const body = graph::append(e, inner), first = e.leaf(n - 2), last = e.leaf(n - 1);
    lists const g = tests::graph_of(graph::normalise(e, e.series({first, body, last})), n);
    int const before = graph::longest_path(g).length;
    ++all;
    kept += graph::critical_path(graph::relax_escribano(g)) == before;
    kept_flexible += graph::critical_path(graph::relax_flexible(g)) == before;
  }
  CHECK(kept == all);
  CHECK(kept_flexible == all);
}

TEST_CASE("bad input") {
  lists const cycle{{1}, {0}}, none;
  CHECK_THROWS_AS(graph::relax_by_strata(cycle), error);
  CHECK_THROWS_AS(graph::relax_escribano(cycle), error);
  CHECK_THROWS_AS(graph::relax_flexible(cycle), error);
  CHECK_THROWS_AS(graph::relax_by_strata(none), error);
  CHECK_THROWS_AS(graph::relax_escribano(none), error);
  CHECK_THROWS_AS(graph::relax_flexible(none), error);
}
