// tensorpar/graph/sp/series_parallel.hpp - the tree of a series-parallel graph, weights and inputs considered
#pragma once
#include <concepts>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/adjacency.hpp>
#include <tensorpar/graph/sp/reduction.hpp>
#include <tensorpar/graph/sp/tree.hpp>
#include <vector>

namespace tensorpar::graph {

/// The tree of the order that the graph puts on its nodes, nothing if `is_series_parallel(g)` is false. Laws:
/// leaves are the nodes, each once; `keeps_dependencies(g, *t)`; `cover_edges(*t)` are the edges of the
/// transitive reduction.
/// O(V log V + E), the logarithm for sorting parallel parts. Throws `error` if the graph names a node that
/// does not exist. Source: Valdes, Tarjan, Lawler, "The recognition of series parallel digraphs" (1982), see
/// sp_reduction.hpp for what differs.
template <topology G> std::optional<sp_tree> sp_decomposition(G const& g) {
  auto const r = detail::reduce_series_parallel(g);
  if (!r.ok) return std::nullopt;
  sp_expr e;
  for (int v = 0; v < r.leaves; ++v) e.leaf(v);
  for (int i = 0; i < r.pairs; ++i)
    e.compose(r.series.p[i] ? sp_kind::series : sp_kind::parallel, {r.left.p[i], r.right.p[i]});
  return normalise(e, r.root);
}

namespace detail {

/// The graph with one more node, the last, that stands between the leading nodes that feed others and those
/// others.
/// A node leads if the predicate says so and all its predecessors lead.
template <topology G, class Leading> adjacency with_barrier(G const& g, Leading const& leading) {
  adjacency const& a = detail::as_adjacency(g);
  int const n = a.node_count();
  core::pool<int> lead(n, 0), feeds(n, 0);
  std::vector<edge> e = edges(a);
  for (int v : topological_order(a)) {
    bool all = static_cast<bool>(leading(v)), fed = false;
    for (int u : a.predecessors(v)) {
      all = all && lead[u];
      fed = fed || lead[u];
    }
    lead[v] = all;
    if (all || !fed) continue;
    e.push_back({n, v});
    for (int u : a.predecessors(v)) feeds[u] = feeds[u] || lead[u];
  }
  for (int u = 0; u < n; ++u)
    if (feeds[u]) e.push_back({u, n});
  return adjacency::from_edges(n + 1, {e.data(), static_cast<int>(e.size())});
}

}  // namespace detail

/// The tree of a computation graph in which weights and inputs are nodes. They hang loosely at the side of
/// the graph, and taken literally hardly any network is series-parallel. So: first the graph as it is; if
/// that has no tree, every leading node that feeds a node which does not lead is made to precede all of
/// those. A node leads if `leading(v)` and all its predecessors lead (so a weight and the partition or
/// replicate operators that follow it, where the predicate covers those). Nothing if that has no tree either.
/// Complexity as sp_decomposition: the all-to-all join is one imagined node, not m n edges. Throws `error` on
/// a cycle.
template <topology G, class Leading>
  requires std::predicate<Leading const&, int>
std::optional<sp_tree> sp_decomposition(G const& g, Leading const& leading) {
  if (auto t = sp_decomposition(g)) return t;
  auto const t = sp_decomposition(detail::with_barrier(g, leading));
  if (!t) return std::nullopt;
  sp_expr e;
  std::vector<int> handle, parts;
  int const barrier = graph::node_count(g);
  for (int i = 0; i < t->size(); ++i) {
    parts.clear();
    for (int k : t->parts(i)) parts.push_back(handle[idx(k)]);
    bool const leaf = t->kind(i) == sp_kind::leaf;
    handle.push_back(!leaf                   ? e.compose(t->kind(i), parts)
                     : t->node(i) == barrier ? e.series({})
                                             : e.leaf(t->node(i)));
  }
  if (barrier == 0) return std::nullopt;
  return normalise(e, handle.back());
}

}  // namespace tensorpar::graph
