// tensorpar/graph/order.hpp - topological order, cycles, longest paths, components
#pragma once
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/adjacency.hpp>
#include <vector>

namespace tensorpar::graph {

namespace detail {

/// A binary heap of ints, smallest first: <queue> and <algorithm> cost more header than these lines.
class int_heap {
  core::pool<int> h_;

 public:
  constexpr bool empty() const { return h_.empty(); }
  constexpr void push(int x) {
    int i = h_.push(x);
    for (; i > 0 && h_[(i - 1) / 2] > x; i = (i - 1) / 2) h_[i] = h_[(i - 1) / 2];
    h_[i] = x;
  }
  constexpr int take() {
    int const least = h_[0], x = h_.back();
    h_.pop();
    int const n = h_.size();
    if (n == 0) return least;
    int i = 0;
    for (int c = 1; c < n; c = 2 * i + 1) {
      if (c + 1 < n && h_[c + 1] < h_[c]) ++c;
      if (h_[c] >= x) break;
      h_[i] = h_[c];
      i = c;
    }
    h_[i] = x;
    return least;
  }
};

/// Kahn, smallest id first. Shorter than V nodes exactly if there is a cycle.
constexpr core::pool<int> kahn(adjacency const& a) {
  int const n = a.node_count();
  core::pool<int> missing(n, 0), order;
  int_heap ready;
  for (int v = 0; v < n; ++v)
    if ((missing[v] = a.predecessors(v).size()) == 0) ready.push(v);
  while (!ready.empty()) {
    int const v = ready.take();
    order.push(v);
    for (int w : a.successors(v))
      if (--missing[w] == 0) ready.push(w);
  }
  return order;
}

[[noreturn]] inline void graph_has_cycle(std::vector<int> const& cycle) {
  std::string path;
  for (int v : cycle) path += std::to_string(v) + " -> ";
  throw error("the graph has a cycle: " + path + std::to_string(cycle.front()), "topological order",
              "a directed acyclic graph");
}

constexpr std::vector<int> cycle_among_rest(adjacency const& a, core::pool<int> const& order) {
  int const n = a.node_count();
  core::pool<int> done(n, 0), when(n, -1);
  for (int v : order) done[v] = 1;
  int v = 0;
  while (v < n && done[v]) ++v;
  if (v == n) return {};
  core::pool<int> walk;  // every node left over has a predecessor left over: walking back must meet itself
  while (when[v] < 0) {
    when[v] = walk.push(v);
    int next = -1;
    for (int u : a.predecessors(v))
      if (!done[u] && (next < 0 || u < next)) next = u;
    v = next;
  }
  std::vector<int> cycle;
  for (int i = walk.size() - 1; i >= when[v]; --i) cycle.push_back(walk[i]);
  return cycle;
}

constexpr core::pool<int> topological_order(adjacency const& a) {
  core::pool<int> order = kahn(a);
  if (order.size() != a.node_count()) graph_has_cycle(cycle_among_rest(a, order));
  return order;
}

}  // namespace detail

/// A cycle v0 -> v1 -> ... -> v0 as its nodes, or nothing. Post: each node is a predecessor of the next, the
/// last of the first. Complexity O(V log V + E).
template <topology G> constexpr std::vector<int> find_cycle(G const& g) {
  adjacency const& a = detail::as_adjacency(g);
  return detail::cycle_among_rest(a, detail::kahn(a));
}

template <topology G> constexpr bool is_acyclic(G const& g) {
  adjacency const& a = detail::as_adjacency(g);
  return detail::kahn(a).size() == a.node_count();
}

/// The order in which every edge points forward that is smallest in ids (Kahn 1962 with a heap).
/// Deterministic.
/// Complexity O(V log V + E). Throws `error` naming a cycle if there is one.
template <topology G> constexpr std::vector<int> topological_order(G const& g) {
  adjacency const& a = detail::as_adjacency(g);
  auto const order = detail::topological_order(a);
  return std::vector<int>(order.begin(), order.end());
}

/// A path and the sum of the weights of its nodes.
template <class T> struct weighted_path {
  T length;
  std::vector<int> nodes;  ///< in the order of the edges; empty for the empty graph
};

/// The heaviest path when nodes weigh (the critical path): of several, one that ends in the smallest node and
/// takes the smallest predecessor at every step. Pre: weights not negative. Complexity O(V log V + E). Throws
/// `error` on a cycle.
template <topology G, node_weights W = detail::unit_weight>
constexpr auto longest_path(G const& g, W const& weight = {}) -> weighted_path<detail::weight_type<W>> {
  using T = detail::weight_type<W>;
  adjacency const& a = detail::as_adjacency(g);
  int const n = a.node_count();
  core::pool<T> upto(n, T{});
  core::pool<int> before(n, -1);
  int last = -1;
  for (int v : detail::topological_order(a)) {
    for (int u : a.predecessors(v))
      if (before[v] < 0 || upto[u] > upto[before[v]] || (upto[u] == upto[before[v]] && u < before[v]))
        before[v] = u;
    upto[v] = detail::weight_at(weight, v) + (before[v] < 0 ? T{} : upto[before[v]]);
    if (last < 0 || upto[v] > upto[last] || (upto[v] == upto[last] && v < last)) last = v;
  }
  weighted_path<T> r{last < 0 ? T{} : upto[last], {}};
  for (int v = last; v >= 0; v = before[v]) r.nodes.push_back(v);
  for (std::size_t i = 0, j = r.nodes.size(); i + 1 < j; ++i, --j) std::swap(r.nodes[i], r.nodes[j - 1]);
  return r;
}

/// The number of each node's weakly connected component, components numbered in the order of their smallest
/// nodes.
struct components {
  std::vector<int> of;
  int count = 0;
};

/// Complexity O(V + E).
template <topology G> constexpr components weakly_connected_components(G const& g) {
  adjacency const& a = detail::as_adjacency(g);
  int const n = a.node_count();
  components r{std::vector<int>(idx(n), -1), 0};
  core::pool<int> work;
  for (int v = 0; v < n; ++v) {
    if (r.of[idx(v)] >= 0) continue;
    r.of[idx(v)] = r.count;
    work.push(v);
    while (!work.empty()) {
      int const x = work.back();
      work.pop();
      for (core::slice<int> side : {a.predecessors(x), a.successors(x)})
        for (int y : side)
          if (int& c = r.of[idx(y)]; c < 0) {
            c = r.count;
            work.push(y);
          }
    }
    ++r.count;
  }
  return r;
}

}  // namespace tensorpar::graph
