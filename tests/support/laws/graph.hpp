// tests/support/laws/graph.hpp - the laws of `topology` and `bidirectional_topology`, for any model
#pragma once
#include <doctest/doctest.h>
#include <set>
#include <tensorpar/graph/concepts.hpp>
#include <utility>

namespace tests {

/// Every law of the concept, on one value of the model.
template <tensorpar::graph::topology G> void check_topology_laws(G const& g) {
  int const n = tensorpar::graph::node_count(g);
  CHECK(n >= 0);
  CHECK(tensorpar::graph::node_count(g) == n);
  std::set<std::pair<int, int>> forward, backward;
  for (int v = 0; v < n; ++v) {
    std::vector<int> first, second;
    auto&& one = tensorpar::graph::predecessors(g, v);
    for (auto const& u : one) first.push_back(static_cast<int>(u));
    auto&& two = tensorpar::graph::predecessors(g, v);
    for (auto const& u : two) second.push_back(static_cast<int>(u));
    CHECK(first == second);
    for (int u : first) {
      CHECK(0 <= u);
      CHECK(u < n);
      backward.emplace(u, v);
    }
  }
  if constexpr (tensorpar::graph::bidirectional_topology<G>) {
    for (int u = 0; u < n; ++u) {
      auto&& after = tensorpar::graph::successors(g, u);
      for (auto const& v : after) forward.emplace(u, static_cast<int>(v));
    }
    CHECK(forward == backward);
  }
}

}  // namespace tests
