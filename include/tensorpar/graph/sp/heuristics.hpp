// tensorpar/graph/sp/heuristics.hpp - ways from any acyclic graph to a series-parallel tree that keeps its
// dependencies
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/reachability.hpp>
#include <tensorpar/graph/sp/growth.hpp>
#include <vector>

namespace tensorpar::graph {

namespace detail {

/// Number of nodes before each on the longest path to it.
inline std::vector<int> depths(adjacency const& a) {
  std::vector<int> d(idx(a.node_count()), 0);
  for (int v : topological_order(a)) {
    int& mine = d[idx(v)];
    for (int u : a.predecessors(v)) mine = std::max(mine, d[idx(u)] + 1);
  }
  return d;
}

inline void check_not_empty(int n) {
  if (n == 0) throw error("the empty graph has no series-parallel tree", "relaxation", "at least one node");
}

}  // namespace detail

/// Nodes of equal depth run in parallel, depths one after another. The simplest relaxation; adds the most.
/// O(V log V + E).
/// Post for this and the next two: `keeps_dependencies(g, result)`. All throw `error` on a cycle and on the
/// empty graph.
template <topology G> sp_tree relax_by_strata(G const& g) {
  adjacency const& a = detail::as_adjacency(g);
  detail::check_not_empty(a.node_count());
  std::vector<int> const depth = detail::depths(a);
  std::vector<std::vector<int>> strata;
  sp_expr e;
  for (int v = 0; v < a.node_count(); ++v) {
    auto const d = idx(depth[idx(v)]);
    if (strata.size() <= d) strata.resize(d + 1);
    strata[d].push_back(e.leaf(v));
  }
  std::vector<int> parts;
  for (auto const& s : strata) parts.push_back(e.parallel(s));
  return normalise(e, e.series(parts));
}

/// Stratum by stratum, but only those branches wait for each other that depend on each other. An edge that
/// jumps over strata is kept up by imagined nodes. (Gonzalez-Escribano et al., report IT-DI-2002-0002,
/// University of Valladolid, 2002; here one node at a time.) O(W^2) for W = V + the number of strata that
/// edges of the transitive reduction jump over.
template <topology G> sp_tree relax_escribano(G const& g) {
  adjacency const a = transitive_reduction(g);
  int const n = a.node_count();
  detail::check_not_empty(n);
  std::vector<int> depth = detail::depths(a);
  int const root = n;
  depth.push_back(-1);
  std::vector<std::vector<int>> before(idx(n) + 1, std::vector<int>{});
  for (int v = 0; v < n; ++v) {
    auto const me = idx(v);
    if (a.predecessors(v).empty()) before[me].push_back(root);
    for (int u : a.predecessors(v)) {
      for (int d = depth[idx(u)] + 1; d < depth[me]; ++d) {
        before.push_back({u});
        depth.push_back(d);
        u = static_cast<int>(before.size()) - 1;
      }
      before[me].push_back(u);
    }
  }
  std::vector<std::vector<int>> strata;
  for (int v = 0; v < static_cast<int>(before.size()); ++v) {
    if (v == root) continue;
    auto const d = idx(depth[idx(v)]);
    if (strata.size() <= d) strata.resize(d + 1);
    strata[d].push_back(v);
  }
  detail::sp_growth<int> grow(std::vector<int>(before.size(), 1), root);
  for (std::size_t d = 0; d < strata.size(); ++d)
    for (int v : strata[d])
      grow.place({v}, before[idx(v)], [&](auto& forest) {
        for (auto& m : forest) m.up = depth[idx(m.node)] < static_cast<int>(d);
      });
  return grow.tree(n);
}

namespace detail {

/// Of all cuts of a forest by the weight of the path to a node: least upper + lower critical path, then least
/// lower one, then fewest below.
template <class T> struct cheapest_cut {
  T group;  ///< the heaviest node of the group that goes below

  template <class Members> void operator()(Members& forest) const {
    std::vector<typename Members::value_type*> open;
    T up{};
    for (auto& m : forest) {
      if (m.needed) up = std::max(up, m.through);
      else open.push_back(&m);
      m.up = m.needed;
    }
    std::sort(open.begin(), open.end(), [](auto const* x, auto const* y) {
      return std::pair(x->through, x->node) < std::pair(y->through, y->node);
    });
    std::vector<T> down(open.size() + 1, group);
    for (std::size_t k = open.size(); k-- > 0;) down[k] = std::max(down[k + 1], open[k]->onward);
    std::size_t best = 0;
    auto best_cost = std::pair(up + down[0], down[0]);
    for (std::size_t k = 1; k <= open.size(); ++k) {
      up = std::max(up, open[k - 1]->through);
      // of equals the last: a cut never parts equal paths
      if (auto const cost = std::pair(up + down[k], down[k]); cost <= best_cost) {
        best = k;
        best_cost = cost;
      }
    }
    for (std::size_t k = 0; k < best; ++k) open[k]->up = true;
  }
};

}  // namespace detail

/// Like Escribano's, but weighted: nodes come in the order in which they can end, and the forest is cut where
/// upper and lower critical paths add up to the least. O(V^2 log V + V E).
template <topology G, node_weights W = detail::unit_weight>
sp_tree relax_flexible(G const& g, W const& weight = {}) {
  using T = detail::weight_type<W>;
  adjacency const a = transitive_reduction(g);
  int const n = a.node_count(), root = n;
  detail::check_not_empty(n);
  std::vector<T> w;
  for (int v = 0; v < n; ++v) w.push_back(detail::weight_at(weight, v));
  w.push_back(T{});
  detail::sp_growth<T> grow(w, root);
  std::vector<int> missing, ready;
  for (int v = 0; v < n; ++v) {
    missing.push_back(a.predecessors(v).size());
    if (missing.back() == 0) ready.push_back(v);
  }
  auto const same_before = [&a](int u, int v) {
    auto const x = a.predecessors(u), y = a.predecessors(v);
    if (x.size() != y.size()) return false;
    for (int k : x) {
      bool found = false;
      for (int j : y) found = found || j == k;
      if (!found) return false;
    }
    return true;
  };
  while (!ready.empty()) {
    std::vector<T> const upto = grow.upto();
    int pick = -1;
    T pick_end{};
    for (int v : ready) {
      T start{};
      for (int u : a.predecessors(v)) start = std::max(start, upto[idx(u)]);
      T const end = start + w[idx(v)];
      if (pick < 0 || end < pick_end || (end == pick_end && v < pick)) {
        pick = v;
        pick_end = end;
      }
    }
    std::vector<int> group, later;
    T heaviest{};
    for (int v : ready) {
      bool const in = same_before(v, pick);
      (in ? group : later).push_back(v);
      if (in) heaviest = std::max(heaviest, w[idx(v)]);
    }
    ready = std::move(later);
    std::vector<int> before(a.predecessors(pick).begin(), a.predecessors(pick).end());
    if (before.empty()) before.push_back(root);
    grow.place(group, before, detail::cheapest_cut<T>{heaviest});
    for (int v : group)
      for (int x : a.successors(v))
        if (--missing[idx(x)] == 0) ready.push_back(x);
  }
  return grow.tree(n);
}

}  // namespace tensorpar::graph
