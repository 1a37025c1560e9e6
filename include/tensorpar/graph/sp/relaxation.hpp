// tensorpar/graph/sp/relaxation.hpp - the nearest series-parallel tree of any acyclic graph, and what it
// costs
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/sp/exact.hpp>
#include <tensorpar/graph/sp/heuristics.hpp>
#include <tensorpar/graph/sp/measure.hpp>
#include <tensorpar/graph/sp/pieces.hpp>
#include <tensorpar/graph/sp/series_parallel.hpp>
#include <tensorpar/graph/views.hpp>
#include <vector>

namespace tensorpar::graph {

/// A series-parallel tree that keeps all dependencies of a graph, and its price.
template <class T> struct relaxation {
  sp_tree tree;
  // /< direct dependencies of the tree that the graph does not imply; none exactly if it is series-parallel
  std::vector<edge> added;
  T before, after;          ///< critical path of the graph and of the tree: after >= before
};

namespace detail {

/// The tree of the graph with every edge turned round, turned round. Law: twice is once nothing.
inline sp_tree turned_round(sp_tree const& t) {
  sp_expr e;
  std::vector<int> parts;
  for (int i = 0; i < t.size(); ++i) {
    if (t.kind(i) == sp_kind::leaf) {
      e.leaf(t.node(i));
      continue;
    }
    auto const p = t.parts(i);
    parts.assign(p.begin(), p.end());
    if (t.kind(i) == sp_kind::series) std::reverse(parts.begin(), parts.end());
    e.compose(t.kind(i), parts);  // entry i gets handle i
  }
  return normalise(e, t.root());
}

/// Relaxes a graph that is neither side by side nor one after another: exactly if small, else the best of the
/// heuristics, both ways round.
template <class W> sp_tree relax_piece(adjacency const& a, W const& weight) {
  if (a.node_count() <= 10) return relax_exactly(a, weight);
  adjacency const back(graph::reversed(a));   // of the same type: nothing is instantiated twice
  sp_tree best = relax_flexible(a, weight);
  auto least = critical_path(best, weight);
  auto const consider = [&](sp_tree t) {
    if (auto const c = critical_path(t, weight); c < least) {
      least = c;
      best = std::move(t);
    }
  };
  consider(turned_round(relax_flexible(back, weight)));
  consider(relax_escribano(a));
  consider(turned_round(relax_escribano(back)));
  consider(relax_by_strata(a));
  return best;
}

/// `weight` is by the nodes that `origin` names.
template <class T>
int relax_pieces(sp_expr& e, adjacency const& a, std::vector<int> const& origin,
                 std::vector<T> const& weight) {
  if (a.node_count() == 1) return e.leaf(origin[0]);
  components pieces = weakly_connected_components(a);
  bool const side_by_side = pieces.count > 1;
  if (!side_by_side) pieces = series_pieces(a);
  if (pieces.count == 1) {
    sp_tree const t = relax_piece(
        a, [&](int v) { return weight[idx(origin[idx(v)])]; });
    std::vector<int> handle, parts;
    for (int i = 0; i < t.size(); ++i) {
      parts.clear();
      for (int k : t.parts(i)) parts.push_back(handle[idx(k)]);
      handle.push_back(t.kind(i) == sp_kind::leaf ? e.leaf(origin[idx(t.node(i))])
                                                  : e.compose(t.kind(i), parts));
    }
    return handle.back();
  }
  std::vector<std::vector<int>> nodes(idx(pieces.count), std::vector<int>{});
  for (int v = 0; v < a.node_count(); ++v)
    nodes[idx(pieces.of[idx(v)])].push_back(v);
  std::vector<int> parts;
  for (auto& some : nodes) {
    subgraph s = induced(a, some);
    for (int& v : s.origin) v = origin[idx(v)];
    parts.push_back(relax_pieces(e, s.structure, s.origin, weight));
  }
  return e.compose(side_by_side ? sp_kind::parallel : sp_kind::series, parts);
}

}  // namespace detail

/// A series-parallel tree near the graph: what is series-parallel stays; every piece that is not gets the
/// relaxation with the least critical path known (the least there is up to 10 nodes). No additions exactly if
/// `is_series_parallel(g)`. Deterministic. Pre: weights not negative. O(V^2 log V + V E) where pieces are
/// large; V^2 / 8 bytes. Throws `error` on a cycle and on the empty graph.
template <topology G, node_weights W = detail::unit_weight>
auto relax(G const& g, W const& weight = {}) -> relaxation<detail::weight_type<W>> {
  int const n = graph::node_count(g);
  detail::check_not_empty(n);
  auto const before = longest_path(g, weight).length;
  if (auto t = sp_decomposition(g)) return {std::move(*t), {}, before, before};
  reachability const reach(g);
  adjacency const a = transitive_reduction(g);
  std::vector<int> all;
  std::vector<detail::weight_type<W>> weights;
  for (int v = 0; v < n; ++v) {
    all.push_back(v);
    weights.push_back(detail::weight_at(weight, v));
  }
  sp_expr e;
  int const root = detail::relax_pieces(e, a, all, weights);
  sp_tree tree = normalise(e, root);
  std::vector<edge> added;
  for (auto const& [u, v] : cover_edges(tree))
    if (!reach.reaches(u, v)) added.push_back({u, v});
  auto const after = critical_path(tree, weights);
  return {std::move(tree), std::move(added), before, after};
}

}  // namespace tensorpar::graph
