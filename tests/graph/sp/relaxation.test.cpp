// tests/graph/sp/relaxation.test.cpp - the nearest series-parallel tree: exact where small, never worse than any single way
#include <doctest/doctest.h>
#include "support/graph_oracles.hpp"
#include "support/networks.hpp"
#include "support/shrink.hpp"
#include <tensorpar/graph/digraph.hpp>
#include <tensorpar/graph/sp/relaxation.hpp>

using namespace tensorpar;
using tests::lists;
using weights = std::vector<int>;

TEST_CASE("the N: tree, added dependency, critical path before and after") {
  graph::digraph const n(4, {{0, 2}, {0, 3}, {1, 3}});
  auto const one = graph::relax(n, weights{1, 1, 1, 1});
  CHECK(graph::to_string(one.tree) == "S(P(0,1),P(2,3))");
  CHECK(one.added == std::vector<graph::edge>{{1, 2}});
  CHECK(one.before == 2);
  CHECK(one.after == 2);
  auto const two = graph::relax(n, weights{1, 3, 2, 1});
  CHECK(graph::to_string(two.tree) == "S(P(S(0,2),1),3)");
  CHECK(two.added == std::vector<graph::edge>{{2, 3}});
  CHECK(two.after == 4);
  auto const three = graph::relax(n, weights{1, 2, 3, 1});
  CHECK(graph::to_string(three.tree) == "S(0,P(S(1,3),2))");
  CHECK(three.added == std::vector<graph::edge>{{0, 1}});
  CHECK(three.after == 4);
}

TEST_CASE("a series-parallel graph is left alone") {
  tests::random_source r{501};
  for (int i = 0; i < 200; ++i) {
    int const n = 1 + r.below(20);
    graph::sp_tree const t = tests::random_sp_tree(r, n);
    auto const x = graph::relax(tests::graph_of(t, n, &r, 20), tests::random_weights(r, n));
    CHECK(x.tree == t);
    CHECK(x.added.empty());
    CHECK(x.before == x.after);
  }
}

TEST_CASE("laws on random graphs") {
  auto const property = [](lists const& g) {
    tests::random_source r{g.size() * 131 + g[0].size()};
    int const n = static_cast<int>(g.size());
    weights const w = tests::random_weights(r, n);
    auto const x = graph::relax(g, w);
    int sum = 0;
    for (int y : w) sum += y;
    if (!graph::keeps_dependencies(g, x.tree) || x.before != tests::longest(g, w) || x.after != graph::critical_path(x.tree, w))
      return false;
    if (x.after < x.before || x.after > sum || x.added.empty() != graph::is_series_parallel(g)) return false;
    lists more = g;  // the graph with the added dependencies has exactly the order of the tree
    for (graph::edge e : x.added) more[tests::at(e.to)].push_back(e.from);
    if (graph::sp_decomposition(more) != x.tree) return false;
    for (graph::sp_tree const& t : {graph::relax_by_strata(g), graph::relax_escribano(g), graph::relax_flexible(g, w)})
      if (graph::critical_path(t, w) < x.after) return false;
    return n > 10 || graph::critical_path(graph::relax_exactly(g, w), w) == x.after;
  };
  CHECK(tests::counterexample(503, 400, [](auto& r) { return tests::random_dag(r, 1 + r.below(10), 5 + r.below(45)); }, property) == "");
  CHECK(tests::counterexample(509, 150, [](auto& r) { return tests::random_dag(r, 11 + r.below(14), 5 + r.below(30)); }, property) == "");
}

TEST_CASE("what is series-parallel around a piece that is not stays as it is") {
  // 0, then an N over 1..4 beside a chain 5, 6, then 7
  graph::digraph const g(8, {{0, 1}, {0, 2}, {1, 3}, {1, 4}, {2, 4}, {0, 5}, {5, 6}, {3, 7}, {4, 7}, {6, 7}});
  auto const x = graph::relax(g, weights{1, 1, 1, 1, 1, 1, 1, 1});
  CHECK(graph::to_string(x.tree) == "S(0,P(S(P(1,2),P(3,4)),S(5,6)),7)");
  CHECK(x.added == std::vector<graph::edge>{{2, 3}});
}

TEST_CASE("stacked NASNet cells") {
  // every cell takes the outputs of the two before it: 5 pairs and a concatenation
  lists g{{}, {0}};
  std::vector<int> outputs{0, 1};
  auto const add = [&](std::vector<int> const& in) {
    g.push_back(in);
    return static_cast<int>(g.size()) - 1;
  };
  for (int cell = 0; cell < 8; ++cell) {
    int const h = outputs.back(), p = outputs[outputs.size() - 2];
    std::vector<int> pairs;
    for (auto [a, b] : {std::pair{h, h}, {p, h}, {h, p}, {p, p}, {h, h}}) pairs.push_back(add({add({a}), add({b})}));
    outputs.push_back(add(pairs));
  }
  CHECK_FALSE(graph::is_series_parallel(g));
  auto const x = graph::relax(g);
  CHECK(graph::keeps_dependencies(g, x.tree));
  CHECK_FALSE(x.added.empty());
  CHECK(x.before == 2 + 8 * 3);
  CHECK(x.after <= x.before + 8);  // at most one step a cell is lost
}

TEST_CASE("bad input") {
  CHECK_THROWS_AS(graph::relax(graph::digraph()), error);
  CHECK_THROWS_AS(graph::relax(graph::digraph(2, {{0, 1}, {1, 0}})), error);
}
