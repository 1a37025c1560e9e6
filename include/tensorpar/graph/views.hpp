// tensorpar/graph/views.hpp - a graph seen reversed, cut down to some nodes, or with groups of nodes as one
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/adjacency.hpp>
#include <utility>
#include <vector>

namespace tensorpar::graph {

/// The same nodes, every edge turned round; holds a pointer, copies nothing. The graph must outlive the view.
template <bidirectional_topology G> class reversed_view {
  G const* g_;

 public:
  constexpr explicit reversed_view(G const& g) : g_(&g) {}
  constexpr int node_count() const { return graph::node_count(*g_); }
  constexpr decltype(auto) predecessors(int v) const { return graph::successors(*g_, v); }
  constexpr decltype(auto) successors(int v) const { return graph::predecessors(*g_, v); }
};

/// Law: reversed(reversed(g)) has the edges of g. O(1) for a graph that walks forward, else one packed copy,
/// O(V + E).
template <topology G> constexpr auto reversed(G const& g) {
  if constexpr (bidirectional_topology<G>) return reversed_view<G>(g);
  else return adjacency(g).reversed();
}

/// Some nodes of a graph under new ids, and where each came from.
struct subgraph {
  adjacency structure;
  std::vector<int> origin;  ///< new id -> node of the graph it was cut from, in the order asked for
  constexpr int node_count() const { return structure.node_count(); }
  constexpr core::slice<int> predecessors(int v) const { return structure.predecessors(v); }
  constexpr core::slice<int> successors(int v) const { return structure.successors(v); }
};

/// The sub-graph induced by `nodes` (each once): all edges between them. Complexity O(V + edges into
/// `nodes`).
/// Throws `error` if a node does not exist or is named twice.
template <topology G> constexpr subgraph induced(G const& g, std::vector<int> nodes) {
  int const n = graph::node_count(g);
  core::pool<int> fresh(n, -1);
  int k = 0;
  for (int v : nodes) {
    if (v < 0 || v >= n) detail::bad_node_id(v, v, n);
    if (fresh[v] >= 0)
      throw error("a node is named twice: " + std::to_string(v), "nodes of an induced sub-graph",
                  "each node once");
    fresh[v] = k++;
  }
  std::vector<std::vector<int>> pred(nodes.size(), std::vector<int>{});
  for (int v : nodes) {
    auto&& range = graph::predecessors(g, v);
    for (auto const& u : range)
      if (fresh[static_cast<int>(u)] >= 0)
        pred[idx(fresh[v])].push_back(fresh[static_cast<int>(u)]);
  }
  return {adjacency(pred), std::move(nodes)};
}

/// The quotient: node v becomes group[v]; edges inside a group vanish, others are kept once. A group that is
/// not convex makes a cycle (`is_convex` in convexity.hpp, `find_cycle` in order.hpp). Complexity O(V + E).
/// Precondition: group.size() == node_count(g), 0 <= group[v] < groups; checked.
template <topology G> constexpr adjacency contracted(G const& g, std::vector<int> const& group, int groups) {
  int const n = graph::node_count(g);
  if (static_cast<int>(group.size()) != n)
    throw error(
        "the grouping has " + std::to_string(group.size()) + " entries for " + std::to_string(n) + " nodes",
        "contracted graph", "one group number for each node");
  for (int v = 0; v < n; ++v)
    if (int const b = group[idx(v)]; b < 0 || b >= groups)
      detail::bad_node_id(b, v, groups);
  std::vector<std::vector<int>> pred(idx(groups), std::vector<int>{});
  for (int v = 0; v < n; ++v) {
    int const b = group[idx(v)];
    auto&& range = graph::predecessors(g, v);
    for (auto const& u : range) {
      int const a = group[idx(u)];
      if (a != b) pred[idx(b)].push_back(a);
    }
  }
  return adjacency(pred);
}

}  // namespace tensorpar::graph
