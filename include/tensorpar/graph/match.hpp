// tensorpar/graph/match.hpp - where a small graph occurs in a large one
#pragma once
#include <concepts>
#include <tensorpar/graph/adjacency.hpp>
#include <vector>

namespace tensorpar::graph {

/// `subgraph`: every pattern edge is an edge between the images. `induced`: and no other edge joins the
/// images.
enum class match_kind : unsigned char { subgraph, induced };

namespace detail {

/// Pattern nodes in the order of the search: the most constrained first, then always one joined to those
/// before it, if any is. Ties: more edges to earlier nodes, fewer candidates, smaller id.
constexpr core::pool<int> search_order(adjacency const& p, core::pool<int> const& candidates) {
  int const k = p.node_count();
  core::pool<int> order, joined(k, 0), done(k, 0);
  for (int i = 0; i < k; ++i) {
    int best = -1;
    for (int v = 0; v < k; ++v) {
      if (done[v]) continue;
      if (best < 0 || joined[v] > joined[best] ||
          (joined[v] == joined[best] && candidates[v] < candidates[best]))
        best = v;
    }
    done[best] = 1;
    order.push(best);
    for (core::slice<int> side : {p.predecessors(best), p.successors(best)})
      for (int w : side) ++joined[w];
  }
  return order;
}

constexpr bool contains(core::slice<int> list, int x) {
  for (int y : list)
    if (y == x) return true;
  return false;
}

template <class Compatible> class matcher {
  adjacency const &p_, &g_;
  Compatible const& ok_;
  match_kind kind_;
  core::pool<int> image_, used_, order_;

  constexpr bool fits(int v, int x) const {
    if (used_[x] || p_.predecessors(v).size() > g_.predecessors(x).size()) return false;
    if (p_.successors(v).size() > g_.successors(x).size()) return false;
    for (int u : p_.predecessors(v))
      if (image_[u] >= 0 && !contains(g_.predecessors(x), image_[u])) return false;
    for (int w : p_.successors(v))
      if (image_[w] >= 0 && !contains(g_.successors(x), image_[w])) return false;
    if (kind_ == match_kind::induced)
      for (int y = 0; y < p_.node_count(); ++y) {
        if (image_[y] < 0) continue;
        if (contains(g_.predecessors(x), image_[y]) && !contains(p_.predecessors(v), y)) return false;
        if (contains(g_.successors(x), image_[y]) && !contains(p_.successors(v), y)) return false;
      }
    return static_cast<bool>(ok_(v, x));
  }

 public:
  constexpr matcher(adjacency const& p, adjacency const& g, Compatible const& ok, match_kind kind)
      : p_(p), g_(g), ok_(ok), kind_(kind), image_(p.node_count(), -1), used_(g.node_count(), 0) {
    core::pool<int> candidates(p.node_count(), 0);
    for (int v = 0; v < p.node_count(); ++v)
      for (int x = 0; x < g.node_count(); ++x) candidates[v] += ok(v, x) ? 1 : 0;
    order_ = search_order(p, candidates);
  }

  /// False once `visit` has asked to stop.
  template <class Visit> constexpr bool search(int i, Visit& visit) {
    if (i == order_.size()) return visit(image_.view());
    int const v = order_[i];
    core::slice<int> from{};
    bool joined = false;  // candidates are the neighbours of an image already fixed; the shortest such list
    for (int u : p_.predecessors(v))
      if (image_[u] >= 0 && (!joined || g_.successors(image_[u]).size() < from.size()))
        from = g_.successors(image_[u]), joined = true;
    for (int w : p_.successors(v))
      if (image_[w] >= 0 && (!joined || g_.predecessors(image_[w]).size() < from.size()))
        from = g_.predecessors(image_[w]), joined = true;
    for (int j = 0, n = joined ? from.size() : g_.node_count(); j < n; ++j) {
      int const x = joined ? from[j] : j;
      if (!fits(v, x)) continue;
      image_[v] = x;
      used_[x] = 1;
      bool const go_on = search(i + 1, visit);
      image_[v] = -1;
      used_[x] = 0;
      if (!go_on) return false;
    }
    return true;
  }
};

}  // namespace detail

/// Visits every way to place `pattern` in `g`: an injective map of pattern nodes with
/// `compatible(pattern_node, node)` that keeps edges. `visit(image)` gets a slice, image[pattern node] =
/// node, valid during the call; it returns false to stop. Same order in every run. Returns false if stopped.
/// The empty pattern matches once.
/// Complexity: V_p * V + exponential in the pattern at worst; for a connected pattern O(V * degree^V_p).
/// Recursion depth V_p.
template <topology P, topology G, class Compatible, class Visit>
  requires std::predicate<Compatible const&, int, int> && std::predicate<Visit&, core::slice<int>>
constexpr bool for_each_match(P const& pattern, G const& g, Compatible const& compatible, Visit&& visit,
                              match_kind kind = match_kind::subgraph) {
  adjacency const &p = detail::as_adjacency(pattern), &a = detail::as_adjacency(g);
  return detail::matcher<Compatible>(p, a, compatible, kind).search(0, visit);
}

/// The first match in that order as image[pattern node], empty if there is none.
template <topology P, topology G, class Compatible>
  requires std::predicate<Compatible const&, int, int>
constexpr std::vector<int> find_match(P const& pattern, G const& g, Compatible const& compatible,
                                      match_kind kind = match_kind::subgraph) {
  std::vector<int> r;
  for_each_match(pattern, g, compatible, [&r](core::slice<int> image) {
    r.assign(image.begin(), image.end());
    return false;
  }, kind);
  return r;
}

}  // namespace tensorpar::graph
