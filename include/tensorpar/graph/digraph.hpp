// tensorpar/graph/digraph.hpp - a small directed graph as a value
#pragma once
#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/adjacency.hpp>
#include <vector>

namespace tensorpar::graph {

/// A simple directed graph that grows. Regular: equal if it has the same nodes and edges, however it was
/// built.
/// Lists are kept ascending. add_node O(1) amortised, add_edge and has_edge O(degree).
class digraph {
  std::vector<std::vector<int>> pred_, succ_;

  static constexpr bool insert(std::vector<int>& list, int x) {
    auto at = list.begin();
    while (at != list.end() && *at < x) ++at;
    if (at != list.end() && *at == x) return false;
    list.insert(at, x);
    return true;
  }

 public:
  constexpr digraph() = default;
  constexpr explicit digraph(int nodes)
      : pred_(idx(nodes), std::vector<int>{}), succ_(idx(nodes), std::vector<int>{}) {}
  constexpr digraph(int nodes, std::initializer_list<edge> edges) : digraph(nodes) {
    for (edge e : edges) add_edge(e.from, e.to);
  }
  constexpr digraph(int nodes, std::vector<edge> const& edges) : digraph(nodes) {
    for (edge e : edges) add_edge(e.from, e.to);
  }
  /// A copy of any topology.
  template <topology G>
    requires(!std::same_as<G, digraph>)
  constexpr explicit digraph(G const& g) : digraph(graph::node_count(g),
                                                   graph::edges(g)) {}

  constexpr int add_node() {
    pred_.emplace_back();
    succ_.emplace_back();
    return node_count() - 1;
  }
  /// False if the edge was there already. Throws `error` if an end does not exist.
  constexpr bool add_edge(int from, int to) {
    int const n = node_count();
    if (from < 0 || from >= n) detail::bad_node_id(from, to, n);
    if (to < 0 || to >= n) detail::bad_node_id(to, from, n);
    return insert(succ_[idx(from)], to) && insert(pred_[idx(to)], from);
  }
  constexpr bool has_edge(int from, int to) const {
    for (int v : successors(from))
      if (v == to) return true;
    return false;
  }
  constexpr int node_count() const { return static_cast<int>(pred_.size()); }
  constexpr core::slice<int> predecessors(int v) const {
    return {pred_[idx(v)].data(), static_cast<int>(pred_[idx(v)].size())};
  }
  constexpr core::slice<int> successors(int v) const {
    return {succ_[idx(v)].data(), static_cast<int>(succ_[idx(v)].size())};
  }

  friend constexpr bool operator==(digraph const& a, digraph const& b) { return a.succ_ == b.succ_; }
};

}  // namespace tensorpar::graph
