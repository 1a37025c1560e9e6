// tensorpar/graph/dominators.hpp - nodes that every path must pass
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/order.hpp>
#include <tensorpar/graph/views.hpp>
#include <vector>

namespace tensorpar::graph {

/// The immediate (post-)dominators of an acyclic graph, as a tree. With several sources one node before all
/// of them is imagined; a node whose immediate dominator is that one has none.
class dominator_tree {
  std::vector<int> up_, depth_;
  constexpr int up(int v) const { return up_[idx(v)]; }
  constexpr int depth(int v) const { return v < 0 ? 0 : depth_[idx(v)]; }

 public:
  static constexpr int none = -1;

  /// Cooper, Harvey, Kennedy, "A simple, fast dominance algorithm" (2001): one pass suffices on an acyclic
  /// graph. O(V log V + E depth). Throws `error` on a cycle.
  template <topology G>
  constexpr explicit dominator_tree(G const& g)
      : up_(idx(graph::node_count(g)), none), depth_(up_.size(), 1) {
    adjacency const& a = detail::as_adjacency(g);
    for (int v : detail::topological_order(a)) {
      bool first = true;
      int d = none;
      for (int u : a.predecessors(v)) {
        d = first ? u : common(d, u);
        first = false;
      }
      up_[idx(v)] = d;
      depth_[idx(v)] = depth(d) + 1;
    }
  }

  /// The last node before v that every path to v passes, or `none`.
  constexpr int immediate(int v) const { return up(v); }

  /// The nearest node that dominates both (a node dominates itself), or `none`. O(depth).
  constexpr int common(int a, int b) const {
    while (a != b) {
      if (depth(a) >= depth(b)) a = up(a);
      else b = up(b);
    }
    return a;
  }
  /// The nearest node that dominates all of them, or `none`. Of all sources, in a tree of post-dominators:
  /// where everything meets.
  constexpr int common(std::vector<int> const& nodes) const {
    int d = nodes.empty() ? none : nodes[0];
    for (int v : nodes) d = d == none ? none : common(d, v);
    return d;
  }
  /// Does every path from a source to v pass d? O(depth).
  constexpr bool dominates(int d, int v) const {
    while (depth(v) > depth(d)) v = up(v);
    return d == v;
  }
  /// All dominators of v, itself first, then upwards.
  constexpr std::vector<int> all(int v) const {
    std::vector<int> r;
    for (; v != none; v = up(v)) r.push_back(v);
    return r;
  }
};

template <topology G> constexpr dominator_tree dominators(G const& g) { return dominator_tree(g); }

/// The same against the edges: nodes that every path from v to a sink passes.
template <topology G> constexpr dominator_tree post_dominators(G const& g) {
  return dominator_tree(graph::reversed(g));
}

}  // namespace tensorpar::graph
