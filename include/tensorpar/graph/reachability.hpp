// tensorpar/graph/reachability.hpp - who reaches whom: transitive closure as bits, and transitive reduction
#pragma once
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/order.hpp>
#include <vector>

namespace tensorpar::graph {

/// The transitive closure of an acyclic graph: one bit for each ordered pair. Memory V^2 / 8 bytes; built in
/// O(V E / 64).
class reachability {
  int n_ = 0, words_ = 0;
  core::pool<u64> up_;  // row v: the nodes from which v is reached

  constexpr u64* row(int v) { return up_.begin() + static_cast<std::ptrdiff_t>(v) * words_; }
  constexpr u64 const* row(int v) const { return up_.begin() + static_cast<std::ptrdiff_t>(v) * words_; }

 public:
  /// Throws `error` on a cycle. `redundant`, if given, gets the edges implied by longer paths.
  template <topology G>
    requires(!std::same_as<G, reachability>)
  constexpr explicit reachability(G const& g, std::vector<edge>* redundant = nullptr)
      : n_(graph::node_count(g)), words_((n_ + 63) / 64), up_(n_ * words_, 0) {
    adjacency const& a = detail::as_adjacency(g);
    auto const order = detail::topological_order(a);
    core::pool<int> place(n_, 0);
    for (int i = 0; i < n_; ++i) place[order[i]] = i;
    core::pool<int> before;
    for (int v : order) {
      before.clear();
      // latest first, so that an implied one is implied when its turn comes
      for (int u : a.predecessors(v)) {
        int i = before.push(u);
        for (; i > 0 && place[before[i - 1]] < place[u]; --i) before[i] = before[i - 1];
        before[i] = u;
      }
      for (int u : before) {
        if (reaches(u, v)) {
          if (redundant) redundant->push_back({u, v});
          continue;
        }
        u64 *to = row(v), *from = row(u);
        for (int k = 0; k < words_; ++k) to[k] |= from[k];
        to[u >> 6] |= u64{1} << (u & 63);
      }
    }
  }

  constexpr int node_count() const { return n_; }
  /// Is there a path of at least one edge from u to v?
  constexpr bool reaches(int u, int v) const { return (row(v)[u >> 6] >> (u & 63)) & 1; }
  constexpr bool comparable(int u, int v) const { return reaches(u, v) || reaches(v, u); }

  /// All nodes that reach v / that v reaches, ascending.
  constexpr std::vector<int> ancestors(int v) const {
    std::vector<int> r;
    for (int u = 0; u < n_; ++u)
      if (reaches(u, v)) r.push_back(u);
    return r;
  }
  constexpr std::vector<int> descendants(int u) const {
    std::vector<int> r;
    for (int v = 0; v < n_; ++v)
      if (reaches(u, v)) r.push_back(v);
    return r;
  }
};

/// The graph whose edges are all pairs (u, v) with a path from u to v. O(V E / 64 + V^2). Throws `error` on a
/// cycle.
template <topology G> constexpr adjacency transitive_closure(G const& g) {
  reachability const r(g);
  std::vector<std::vector<int>> pred;
  for (int v = 0; v < r.node_count(); ++v) pred.push_back(r.ancestors(v));
  return adjacency(pred);
}

/// The fewest edges with the same paths (unique for an acyclic graph; Aho, Garey, Ullman 1972).
/// Law: transitive_closure(transitive_reduction(g)) == transitive_closure(g). O(V E / 64), V^2 / 8 bytes.
/// Throws `error` on a cycle.
template <topology G> constexpr adjacency transitive_reduction(G const& g) {
  std::vector<edge> redundant;
  reachability const r(g, &redundant);
  adjacency const& a = detail::as_adjacency(g);
  std::vector<std::vector<int>> drop(idx(a.node_count()), std::vector<int>{});
  for (edge e : redundant) drop[idx(e.to)].push_back(e.from);
  std::vector<edge> keep;
  for (int v = 0; v < a.node_count(); ++v)
    for (int u : a.predecessors(v)) {
      bool dropped = false;
      for (int d : drop[idx(v)]) dropped |= d == u;
      if (!dropped) keep.push_back({u, v});
    }
  return adjacency::from_edges(a.node_count(), {keep.data(), static_cast<int>(keep.size())});
}

}  // namespace tensorpar::graph
