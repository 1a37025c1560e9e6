// tensorpar/graph/adjacency.hpp - both directions of any topology, packed: what algorithms walk on
#pragma once
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/slice.hpp>
#include <tensorpar/graph/concepts.hpp>
#include <tensorpar/graph/edge.hpp>
#include <utility>
#include <vector>

namespace tensorpar::graph {

namespace detail {

[[noreturn]] inline void bad_node_id(int u, int v, int n) {
  throw error("the graph names a node that does not exist: " + std::to_string(u),
              "predecessors of node " + std::to_string(v), "node ids 0 to " + std::to_string(n - 1));
}

/// Predecessor lists without repetition, in the order in which the graph gives them: node v owns
/// item[start[v] .. start[v+1]).
struct packed_lists {
  core::pool<int> start, item;
  constexpr core::slice<int> operator[](int v) const {
    return {item.begin() + start[v], start[v + 1] - start[v]};
  }
  constexpr int edges() const { return item.size(); }
};

template <topology G> constexpr packed_lists pack_predecessors(G const& g) {
  int const n = graph::node_count(g);
  packed_lists r{core::pool<int>(n + 1, 0), {}};
  core::pool<int> seen(n, -1);
  for (int v = 0; v < n; ++v) {
    auto&& range = graph::predecessors(g, v);
    for (auto const& x : range) {
      int const u = static_cast<int>(x);
      if (u < 0 || u >= n) bad_node_id(u, v, n);
      if (seen[u] == v) continue;
      seen[u] = v;
      r.item.push(u);
    }
    r.start[v + 1] = r.item.size();
  }
  return r;
}

/// The same edges read the other way; every list ascends.
constexpr packed_lists transpose(packed_lists const& a, int n) {
  packed_lists r{core::pool<int>(n + 1, 0), core::pool<int>(a.edges(), 0)};
  for (int u : a.item) ++r.start[u + 1];
  for (int v = 0; v < n; ++v) r.start[v + 1] += r.start[v];
  core::pool<int> at(n, 0);
  for (int v = 0; v < n; ++v)
    for (int u : a[v]) r.item[r.start[u] + at[u]++] = v;
  return r;
}

}  // namespace detail

/// A packed copy of the structure of a graph: predecessors and successors of every node, each edge once.
/// Move-only, O(V + E) memory. Models `bidirectional_topology`; predecessors come in the order in which the
/// graph gives them, successors ascend.
/// Throws `error` if the graph names a node outside [0, V).
class adjacency {
  int n_ = 0;
  detail::packed_lists pred_, succ_;
  constexpr adjacency(int n, detail::packed_lists p, detail::packed_lists s)
      : n_(n), pred_(std::move(p)), succ_(std::move(s)) {}

 public:
  template <topology G>
    requires(!std::same_as<G, adjacency>)
  constexpr explicit adjacency(G const& g)
      : n_(graph::node_count(g)), pred_(detail::pack_predecessors(g)),
        succ_(detail::transpose(pred_, n_)) {}

  /// From edges, repeated ones kept once. Precondition: node ids in [0, n), checked.
  constexpr static adjacency from_edges(int n, core::slice<edge> edges) {
    std::vector<std::vector<int>> pred(idx(n), std::vector<int>{});
    for (edge e : edges) {
      if (e.to < 0 || e.to >= n) detail::bad_node_id(e.to, e.from, n);
      pred[idx(e.to)].push_back(e.from);
    }
    return adjacency(pred);
  }

  constexpr int node_count() const { return n_; }
  constexpr int edge_count() const { return pred_.edges(); }
  constexpr core::slice<int> predecessors(int v) const { return pred_[v]; }
  constexpr core::slice<int> successors(int v) const { return succ_[v]; }

  /// The same graph with every edge turned round. Consumes this one.
  constexpr adjacency reversed() && {
    auto after = detail::transpose(succ_, n_);
    return adjacency(n_, std::move(succ_), std::move(after));
  }
};

namespace detail {
/// What algorithms start with: the graph itself if it is packed already, else a packed copy.
template <topology G> constexpr adjacency as_adjacency(G const& g) { return adjacency(g); }
constexpr adjacency const& as_adjacency(adjacency const& a) { return a; }
}  // namespace detail

/// All edges, each once, ascending. O(V + E).
template <topology G> constexpr std::vector<edge> edges(G const& g) {
  adjacency const& a = detail::as_adjacency(g);
  std::vector<edge> r;
  r.reserve(idx(a.edge_count()));
  for (int u = 0; u < a.node_count(); ++u)
    for (int v : a.successors(u)) r.push_back({u, v});
  return r;
}

/// Nodes without predecessors (sources), ascending.
template <topology G> constexpr std::vector<int> sources(G const& g) {
  std::vector<int> r;
  for (int v = 0, n = graph::node_count(g); v < n; ++v) {
    auto&& p = graph::predecessors(g, v);
    if (!(p.begin() != p.end())) r.push_back(v);
  }
  return r;
}

/// Nodes without successors (sinks), ascending.
template <topology G> constexpr std::vector<int> sinks(G const& g) {
  int const n = graph::node_count(g);
  core::pool<int> used(n, 0);
  for (int v = 0; v < n; ++v) {
    auto&& p = graph::predecessors(g, v);
    for (auto const& u : p) used[static_cast<int>(u)] = 1;
  }
  std::vector<int> r;
  for (int v = 0; v < n; ++v)
    if (!used[v]) r.push_back(v);
  return r;
}

}  // namespace tensorpar::graph
