// tensorpar/graph/convexity.hpp - sets of nodes that no path leaves and enters again
#pragma once
#include <tensorpar/graph/adjacency.hpp>
#include <vector>

namespace tensorpar::graph {

namespace detail {

/// Marks what is reached from `from` through `next(v)`, start nodes not included unless reached.
template <class Next> constexpr core::pool<int> reached(int n, std::vector<int> const& from, Next next) {
  core::pool<int> mark(n, 0), work;
  for (int v : from) work.push(v);
  while (!work.empty()) {
    int const v = work.back();
    work.pop();
    for (int w : next(v))
      if (!mark[w]) {
        mark[w] = 1;
        work.push(w);
      }
  }
  return mark;
}

struct forward {
  adjacency const* a;
  constexpr core::slice<int> operator()(int v) const { return a->successors(v); }
};
struct backward {
  adjacency const* a;
  constexpr core::slice<int> operator()(int v) const { return a->predecessors(v); }
};

constexpr void check_nodes(std::vector<int> const& nodes, int n) {
  for (int v : nodes)
    if (v < 0 || v >= n) bad_node_id(v, v, n);
}

}  // namespace detail

/// The smallest convex set that holds `nodes`: they, and every node on a path between two of them. Ascending.
/// Laws: idempotent, monotone, contains its argument. O(V + E). Throws `error` if a node does not exist.
template <topology G> constexpr std::vector<int> convex_closure(G const& g, std::vector<int> const& nodes) {
  adjacency const& a = detail::as_adjacency(g);
  int const n = a.node_count();
  detail::check_nodes(nodes, n);
  auto const below = detail::reached(n, nodes, detail::forward{&a}),
             above = detail::reached(n, nodes, detail::backward{&a});
  core::pool<int> in(n, 0);
  for (int v : nodes) in[v] = 1;
  std::vector<int> r;
  for (int v = 0; v < n; ++v)
    if (in[v] || (below[v] && above[v])) r.push_back(v);
  return r;
}

/// Does every path between two of the nodes stay among them? A pipeline stage must be convex, else two stages
/// wait for each other. O(V + E). Throws `error` if a node does not exist.
template <topology G> constexpr bool is_convex(G const& g, std::vector<int> const& nodes) {
  adjacency const& a = detail::as_adjacency(g);
  int const n = a.node_count();
  detail::check_nodes(nodes, n);
  core::pool<int> in(n, 0);
  for (int v : nodes) in[v] = 1;
  std::vector<int> left;  // nodes just outside: whoever is reached from here and lies inside has come back
  for (int v : nodes)
    for (int w : a.successors(v))
      if (!in[w]) left.push_back(w);
  auto const mark = detail::reached(n, left, detail::forward{&a});
  for (int v : nodes)
    if (mark[v]) return false;
  return true;
}

}  // namespace tensorpar::graph
