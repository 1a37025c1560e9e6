// tests/graph/sp/growth.test.cpp - whatever a policy cuts, a growing tree keeps all dependencies
#include <doctest/doctest.h>
#include "support/random_graph.hpp"
#include <tensorpar/graph/order.hpp>
#include <tensorpar/graph/sp/growth.hpp>

using namespace tests;
using namespace tensorpar;

namespace {
/// Grows a tree of g behind an imagined root, node by node in topological order. `policy`: cuts each forest.
template <class Policy> graph::sp_tree grown(lists const& g, Policy const& policy) {
  int const n = static_cast<int>(g.size());
  graph::detail::sp_growth<int> grow(std::vector<int>(at(n) + 1, 1), n);
  for (int v : graph::topological_order(g)) grow.place({v}, g[at(v)].empty() ? std::vector<int>{n} : g[at(v)], policy);
  return grow.tree(n);
}
}  // namespace

TEST_CASE("trees grown under three policies hold every node once and keep every dependency") {
  random_source r{31};
  for (int round = 0; round < 300; ++round) {
    lists const g = random_dag(r, 1 + r.below(10), 15 + r.below(50));
    CAPTURE(text(g));
    auto const least = [](auto& forest) { for (auto& m : forest) m.up = m.needed; };
    auto const all = [](auto& forest) { for (auto& m : forest) m.up = true; };
    for (graph::sp_tree const& t : {grown(g, least), grown(g, all)}) {
      std::vector<int> seen(g.size(), 0);
      for (int i = 0; i < t.size(); ++i)
        if (t.kind(i) == graph::sp_kind::leaf) ++seen[at(t.node(i))];
      CHECK(seen == std::vector<int>(g.size(), 1));
      CHECK(graph::keeps_dependencies(g, t));
    }
  }
}

TEST_CASE("a group with the same predecessors stands side by side") {
  graph::detail::sp_growth<int> grow({1, 1, 1, 1}, 3);
  auto const least = [](auto& forest) { for (auto& m : forest) m.up = m.needed; };
  grow.place({0}, {3}, least);
  grow.place({1, 2}, {0}, least);
  CHECK(graph::to_string(grow.tree(3)) == "S(0,P(1,2))");
}
