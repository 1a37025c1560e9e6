// tensorpar/graph/downsets/lattice.hpp - all downsets of a graph, each a few small integers
#pragma once
#include <algorithm>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/numbers.hpp>
#include <tensorpar/graph/reachability.hpp>
#include <vector>

namespace tensorpar::graph {

/// The downsets (sets closed under predecessors) of an acyclic graph: what the prefixes of pipelines are.
/// Downset 0 is the empty one, and each other is its parent and one node more; parents come first.
///
/// Enumeration: in a topological order of the nodes every downset is met exactly once by adding nodes in
/// ascending order, because a downset without its last node is a downset. So no set is looked up, and the
/// work is O(1) per downset and available node. Representation: the nodes are covered by chains of the
/// reachability order; a downset holds the first h nodes of each chain, so it is the tuple of these heights,
/// and inclusion is comparison of tuples. A graph with L downsets has no antichain of more than log2(L)
/// nodes, hence the tuples are short. Memory: 2 * chains + 8 bytes per downset.
class downset_lattice {
  int nodes_ = 0, width_ = 0;
  std::vector<int> chain_, place_;             // of a node: its chain, and where in it
  std::vector<std::vector<int>> chains_;
  std::vector<int> parent_, last_;
  std::vector<unsigned short> heights_;        // rows of width_

  [[noreturn]] static void too_many(int most) {
    throw error("the graph has more than " + std::to_string(most) + " downsets", "downsets",
                "a narrower graph, or coarser nodes");
  }
  /// Nodes with longest paths of one length do not reach each other: k of them make 2^k downsets.
  void refuse_wide(adjacency const& a, std::vector<int> const& order, int most) const {
    std::vector<int> depth(idx(nodes_), 0), count(idx(nodes_) + 1, 0);
    for (int v : order) {
      for (int u : a.predecessors(v))
        depth[idx(v)] = std::max(depth[idx(v)], depth[idx(u)] + 1);
      int const k = ++count[idx(depth[idx(v)])];
      if (k > 30 || (1 << k) > most) too_many(most);
    }
  }
  void make_chains(adjacency const& a, std::vector<int> const& order) {
    reachability const reach(a);
    std::vector<int> when(idx(nodes_));
    for (int i = 0; i < nodes_; ++i) when[idx(order[idx(i)])] = i;
    for (int v : order) {  // each node continues the chain whose end is its latest ancestor
      int best = -1;
      for (int c = 0; c < static_cast<int>(chains_.size()); ++c) {
        int const end = chains_[idx(c)].back();
        if (reach.reaches(end, v) &&
            (best < 0 || when[idx(end)] > when[idx(chains_[idx(best)].back())]))
          best = c;
      }
      if (best < 0) {
        best = static_cast<int>(chains_.size());
        chains_.emplace_back();
      }
      chain_[idx(v)] = best;
      place_[idx(v)] = static_cast<int>(chains_[idx(best)].size());
      chains_[idx(best)].push_back(v);
    }
    width_ = static_cast<int>(chains_.size());
  }

  struct frame {
    // nodes that are left to be added stand at [next, to) of the shared list, which ends with the last frame
    int set, next, to;
  };

  void enumerate(adjacency const& a, std::vector<int> const& order, int most) {
    std::vector<int> when(idx(nodes_)), missing(idx(nodes_)), available;
    for (int i = 0; i < nodes_; ++i) when[idx(order[idx(i)])] = i;
    for (int v = 0; v < nodes_; ++v) missing[idx(v)] = a.predecessors(v).size();
    for (int i = 0; i < nodes_; ++i)
      if (missing[idx(order[idx(i)])] == 0) available.push_back(i);
    std::vector<unsigned short> height(idx(width_), 0);
    parent_.push_back(-1);
    last_.push_back(-1);
    heights_ = height;
    std::vector<frame> stack{{0, 0, static_cast<int>(available.size())}};
    auto const leave = [&](int v) {
      --height[idx(chain_[idx(v)])];
      for (int w : a.successors(v)) ++missing[idx(w)];
    };
    while (!stack.empty()) {
      frame& f = stack.back();
      if (f.next == f.to) {
        int const v = last_[idx(f.set)];
        stack.pop_back();
        if (v >= 0) leave(v);
        continue;
      }
      int const at = f.next++, v = order[idx(available[idx(at)])], start = f.to, set = f.set;
      if (static_cast<int>(parent_.size()) >= most) too_many(most);
      int const child = static_cast<int>(parent_.size());
      parent_.push_back(set);
      last_.push_back(v);
      ++height[idx(chain_[idx(v)])];
      heights_.insert(heights_.end(), height.begin(), height.end());
      auto const after = a.successors(v);
      std::size_t const room = idx(2 * start - at + after.size());
      if (available.size() < room) available.resize(2 * room);
      int* const list = available.data();
      int end = static_cast<int>(std::copy(list + at + 1, list + start, list + start) - list);
      for (int w : after)
        if (--missing[idx(w)] == 0) {  // keeps the list ascending
          int i = end++;
          for (; i > start && list[i - 1] > when[idx(w)]; --i) list[i] = list[i - 1];
          list[i] = when[idx(w)];
        }
      stack.push_back({child, start, end});
    }
  }

 public:
  /// All downsets of `g`. Precondition: at most 65,535 nodes. Throws `error` on a cycle, and if there are
  /// more than `most` downsets. Time O(V E / 64 + downsets * chains).
  template <topology G>
  explicit downset_lattice(G const& g, int most)
      : nodes_(graph::node_count(g)), chain_(idx(nodes_)), place_(idx(nodes_)) {
    if (nodes_ > 65'535) throw error("too many nodes", "downsets", "at most 65535");
    adjacency const& a = detail::as_adjacency(g);
    auto const order = topological_order(a);
    refuse_wide(a, order, most);
    make_chains(a, order);
    enumerate(a, order, most);
  }

  int count() const { return static_cast<int>(parent_.size()); }
  int node_count() const { return nodes_; }
  int chains() const { return width_; }
  int chain_length(int c) const { return static_cast<int>(chains_[idx(c)].size()); }
  /// The downset without its last node; -1 for the empty one.
  int parent(int d) const { return parent_[idx(d)]; }
  int last(int d) const { return last_[idx(d)]; }
  /// How many nodes of each chain the downset holds.
  unsigned short const* heights(int d) const { return heights_.data() + idx(d) * idx(width_); }
  bool contains(int d, int v) const {
    return heights(d)[chain_[idx(v)]] > static_cast<unsigned short>(place_[idx(v)]);
  }
  /// Is downset a a part of downset b? O(chains).
  bool within(int a, int b) const {
    unsigned short const *x = heights(a), *y = heights(b);
    for (int c = 0; c < width_; ++c)
      if (x[c] > y[c]) return false;
    return true;
  }
  /// Calls f(v) for the nodes of b that are not in a, chain by chain. Precondition: within(a, b).
  template <class F> void each_between(int a, int b, F&& f) const {
    unsigned short const *x = heights(a), *y = heights(b);
    for (int c = 0; c < width_; ++c)
      for (int i = x[c]; i < y[c]; ++i) f(chains_[idx(c)][idx(i)]);
  }
  /// The same, ascending.
  std::vector<int> between(int a, int b) const {
    std::vector<char> in(idx(nodes_), 0);
    each_between(a, b, [&](int v) { in[idx(v)] = 1; });
    std::vector<int> r;
    for (int v = 0; v < nodes_; ++v)
      if (in[idx(v)]) r.push_back(v);
    return r;
  }
};

}  // namespace tensorpar::graph
