// tests/graph/order.test.cpp
#include <doctest/doctest.h>
#include "support/graph_oracles.hpp"
#include "support/shrink.hpp"
#include <tensorpar/graph/digraph.hpp>
#include <tensorpar/graph/order.hpp>

using namespace tensorpar;
using tests::lists;

TEST_CASE("topological order is the smallest in ids") {
  CHECK(graph::topological_order(graph::digraph(4, {{3, 1}, {3, 0}, {1, 0}, {0, 2}})) == std::vector<int>{3, 1, 0, 2});
  CHECK(graph::topological_order(graph::digraph(4, {{3, 0}})) == std::vector<int>{1, 2, 3, 0});
  CHECK(graph::topological_order(graph::digraph()).empty());
}

TEST_CASE("topological order: every edge forward, and lexicographically least") {
  auto const property = [](lists const& g) {
    tests::matrix const m = tests::closure(g);
    std::vector<int> expected;
    std::vector<char> done(g.size(), 0);
    while (expected.size() < g.size())  // the definition: the least node whose predecessors are all there
      for (std::size_t v = 0; v < g.size(); ++v) {
        bool ready = !done[v];
        for (int u : g[v]) ready = ready && done[tests::at(u)];
        if (!ready) continue;
        done[v] = 1;
        expected.push_back(static_cast<int>(v));
        break;
      }
    return graph::topological_order(g) == expected;
  };
  CHECK(tests::counterexample(1, 300, [](auto& r) { return tests::random_dag(r, r.below(12), r.below(70)); }, property) == "");
}

TEST_CASE("a cycle is found and named") {
  graph::digraph const g(6, {{0, 1}, {1, 2}, {2, 3}, {3, 1}, {3, 4}, {5, 0}});
  CHECK_FALSE(graph::is_acyclic(g));
  std::vector<int> const c = graph::find_cycle(g);
  CHECK(c.size() == 3);
  CHECK_THROWS_AS((void)graph::topological_order(g), error);
  try {
    (void)graph::topological_order(g);
  } catch (error const& e) {
    CHECK(e.problem() == "the graph has a cycle: 2 -> 3 -> 1 -> 2");
  }
  CHECK(graph::find_cycle(graph::digraph(1, {{0, 0}})) == std::vector<int>{0});
  CHECK(graph::find_cycle(graph::digraph(3, {{0, 1}, {1, 2}})).empty());
}

TEST_CASE("a cycle found is one, in graphs of any kind") {
  auto const property = [](lists const& g) {
    std::vector<int> const c = graph::find_cycle(g);
    tests::matrix const m = tests::closure(g);
    bool cyclic = false;
    for (std::size_t v = 0; v < g.size(); ++v) cyclic = cyclic || m[v][v];
    if (c.empty() || !cyclic) return c.empty() == !cyclic && graph::is_acyclic(g) == !cyclic;
    for (std::size_t i = 0; i < c.size(); ++i) {
      auto const& p = g[tests::at(c[(i + 1) % c.size()])];
      if (std::find(p.begin(), p.end(), c[i]) == p.end()) return false;
    }
    return !graph::is_acyclic(g);
  };
  auto const make = [](auto& r) {
    lists g(tests::at(1 + r.below(8)));
    for (auto& p : g)
      for (int u = 0; u < static_cast<int>(g.size()); ++u)
        if (r.chance(18)) p.push_back(u);
    return g;
  };
  CHECK(tests::counterexample(2, 500, make, property) == "");
}

TEST_CASE("longest path") {
  graph::digraph const g(6, {{0, 1}, {0, 2}, {1, 3}, {2, 5}, {3, 4}, {4, 5}});
  auto const p = graph::longest_path(g, std::vector<int>{1, 1, 10, 1, 1, 1});
  CHECK(p.length == 12);
  CHECK(p.nodes == std::vector<int>{0, 2, 5});
  CHECK(graph::longest_path(g).length == 5);
  CHECK(graph::longest_path(g, [](int v) { return 0.5 * v; }).length == 6.5);
  CHECK(graph::longest_path(graph::digraph()).length == 0);
  CHECK(graph::longest_path(graph::digraph()).nodes.empty());
  CHECK_THROWS_AS((void)graph::longest_path(graph::digraph(2, {{0, 1}, {1, 0}})), error);
}

TEST_CASE("longest path is as long as the longest and is a path") {
  tests::random_source r{21};
  for (int i = 0; i < 300; ++i) {
    lists const g = tests::random_dag(r, 1 + r.below(10), 35);
    std::vector<int> const w = tests::random_weights(r, static_cast<int>(g.size()));
    auto const p = graph::longest_path(g, w);
    CHECK(p.length == tests::longest(g, w));
    int sum = 0;
    for (std::size_t k = 0; k < p.nodes.size(); ++k) {
      sum += w[tests::at(p.nodes[k])];
      if (k == 0) continue;
      auto const& before = g[tests::at(p.nodes[k])];
      CHECK(std::find(before.begin(), before.end(), p.nodes[k - 1]) != before.end());
    }
    CHECK(sum == p.length);
  }
}

TEST_CASE("weakly connected components") {
  auto const c = graph::weakly_connected_components(graph::digraph(6, {{0, 2}, {1, 2}, {3, 4}, {4, 3}}));
  CHECK(c.count == 3);
  CHECK(c.of == std::vector<int>{0, 0, 0, 1, 1, 2});
  auto const property = [](lists const& g) {
    lists both = g;
    for (std::size_t v = 0; v < g.size(); ++v)
      for (int u : g[v]) both[tests::at(u)].push_back(static_cast<int>(v));
    tests::matrix const m = tests::closure(both);
    auto const comp = graph::weakly_connected_components(g);
    int highest = -1;
    for (std::size_t u = 0; u < g.size(); ++u) {
      if (comp.of[u] > highest + 1) return false;  // numbered in the order of the smallest nodes
      highest = std::max(highest, comp.of[u]);
      for (std::size_t v = 0; v < g.size(); ++v)
        if (u != v && (comp.of[u] == comp.of[v]) != static_cast<bool>(m[u][v])) return false;
    }
    return comp.count == highest + 1;
  };
  CHECK(tests::counterexample(4, 300, [](auto& r) { return tests::random_dag(r, r.below(12), 12); }, property) == "");
}
