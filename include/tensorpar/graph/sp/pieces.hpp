// tensorpar/graph/sp/pieces.hpp - the pieces of a graph that stand side by side or one after another, and
// what cannot be cut so
#pragma once
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/order.hpp>
#include <vector>

namespace tensorpar::graph {

/// The numbers of pieces 0, 1, ... of the nodes, where all of a piece precedes all of the next: the finest
/// cut into a series. At a place of any topological order there is a cut exactly if every last node before it
/// has an edge to every first node after it. So edges implied by longer paths do no harm and need not be
/// removed. O(V log V + E). Throws `error` on a cycle.
template <topology G> constexpr components series_pieces(G const& g) {
  adjacency const& a = detail::as_adjacency(g);
  int const n = a.node_count();
  core::pool<int> const order = detail::topological_order(a);
  components r{std::vector<int>(idx(n), 0), n > 0 ? 1 : 0};
  core::pool<int> missing(n, 0), last(n, 0), first(n, 0);
  // joined: edges from the last nodes before the place to the first nodes after it
  i64 lasts = 0, firsts = 0, joined = 0;
  for (int v = 0; v < n; ++v)
    if ((missing[v] = a.predecessors(v).size()) == 0) {
      first[v] = 1;
      ++firsts;
    }
  for (int i = 0; i < n; ++i) {
    int const v = order[i];
    if (i > 0 && joined == lasts * firsts) ++r.count;
    r.of[idx(v)] = r.count - 1;
    first[v] = 0;
    --firsts;
    for (int u : a.predecessors(v)) {
      if (!last[u]) continue;
      --joined;  // the edge to v
      last[u] = 0;
      --lasts;
      for (int w : a.successors(u)) joined -= first[w];
    }
    last[v] = 1;
    ++lasts;
    for (int w : a.successors(v))
      if (--missing[w] == 0) {
        first[w] = 1;
        ++firsts;
        for (int u : a.predecessors(w)) joined += last[u];
      }
  }
  return r;
}

}  // namespace tensorpar::graph
