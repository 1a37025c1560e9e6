// tensorpar/graph/sp/reduction.hpp - is a graph series-parallel: one linear-time reduction for compile time
// and run time
#pragma once
#include <tensorpar/graph/order.hpp>
#include <tensorpar/graph/sp/ordered.hpp>

namespace tensorpar::graph {

namespace detail {

/// Not `ok` for the empty graph and for one with a cycle. Throws `error` if the graph names a node that does
/// not exist.
template <topology G> constexpr sp_reduction reduce_series_parallel(G const& g) {
  int const n = graph::node_count(g);
  if (n == 0) return sp_reduction(0);
  bool ascending = true;
  for (int v = 0; v < n; ++v) {
    auto&& before = graph::predecessors(g, v);
    for (auto const& x : before) {
      int const u = static_cast<int>(x);
      if (u < 0 || u >= n) bad_node_id(u, v, n);
      if (u >= v) ascending = false;
    }
  }
  if (ascending) return reduce_ordered(g, n, nullptr);
  core::pool<int> const order = kahn(as_adjacency(g));
  if (order.size() != n) return sp_reduction(n);
  // no ?: here: g++ 12 then frees the result twice in constant evaluation
  return reduce_ordered(g, n, order.begin());
}

}  // namespace detail

/// Is the order that the graph puts on its nodes series-parallel? (Nodes are the things composed; a complete
/// join of m nodes with n nodes is a series, edges implied by longer paths do not count.) False for a graph
/// with a cycle and for the empty graph. Usable in constant expressions: about 180 constant-evaluation steps
/// a node on clang, so 5,000 nodes within its default limit. Law: is_series_parallel(g) ==
/// sp_decomposition(g).has_value(). O(V + E) if every edge goes to a larger id, else O(V log V + E).
template <topology G> constexpr bool is_series_parallel(G const& g) {
  return detail::reduce_series_parallel(g).ok;
}

}  // namespace tensorpar::graph
