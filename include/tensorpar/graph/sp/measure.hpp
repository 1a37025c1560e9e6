// tensorpar/graph/sp/measure.hpp - what can be read off a series-parallel tree: leaves, work, critical path,
// who precedes whom
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/concepts.hpp>
#include <tensorpar/graph/sp/tree.hpp>
#include <vector>

namespace tensorpar::graph {

/// The graph nodes of the leaves in print order; a duplicated node occurs several times. O(size).
inline std::vector<int> leaves(sp_tree const& t) {
  std::vector<int> r;
  for (int i = 0; i < t.size(); ++i)
    if (t.kind(i) == sp_kind::leaf) r.push_back(t.node(i));
  return r;
}

/// The sum of the weights of all leaves. O(size).
template <node_weights W = detail::unit_weight>
auto work(sp_tree const& t, W const& weight = {}) -> detail::weight_type<W> {
  detail::weight_type<W> sum{};
  for (int i = 0; i < t.size(); ++i)
    if (t.kind(i) == sp_kind::leaf) sum += detail::weight_at(weight, t.node(i));
  return sum;
}

/// The heaviest path: a series adds, a parallel composition takes the maximum. O(size). Pre: weights not
/// negative.
template <node_weights W = detail::unit_weight>
auto critical_path(sp_tree const& t, W const& weight = {}) -> detail::weight_type<W> {
  using T = detail::weight_type<W>;
  std::vector<T> cost(idx(t.size()), T{});
  for (int i = 0; i < t.size(); ++i) {
    T& c = cost[idx(i)];
    if (t.kind(i) == sp_kind::leaf) c = detail::weight_at(weight, t.node(i));
    for (int k : t.parts(i)) {
      T const x = cost[idx(k)];
      if (t.kind(i) == sp_kind::series) c += x;
      else if (c < x) c = x;
    }
  }
  return cost.back();
}

/// The order that a tree puts on its nodes, in O(1) a question. u precedes v exactly if it does in two print
/// orders: with parallel parts as they stand, and with parallel parts turned round. (A series-parallel order
/// has dimension at most 2; Valdes, Tarjan, Lawler 1982.) Precondition: no node occurs twice. Built in
/// O(size).
class sp_order {
  std::vector<int> first_, second_;

 public:
  /// `nodes`: size of the id space, at least 1 + the largest leaf.
  sp_order(sp_tree const& t, int nodes) : first_(idx(nodes), -1), second_(first_) {
    for (bool turned : {false, true}) {
      int next = 0;
      std::vector<int> stack{t.root()};
      while (!stack.empty()) {
        int const i = stack.back();
        stack.pop_back();
        if (t.kind(i) == sp_kind::leaf) {
          (turned ? second_ : first_)[idx(t.node(i))] = next++;
          continue;
        }
        auto const parts = t.parts(i);
        bool const forward = t.kind(i) == sp_kind::series || !turned;
        for (int k = 0; k < parts.size(); ++k) stack.push_back(parts[forward ? parts.size() - 1 - k : k]);
      }
    }
  }
  bool has(int v) const { return first_[idx(v)] >= 0; }
  bool precedes(int u, int v) const {
    auto const a = idx(u), b = idx(v);
    return has(u) && has(v) && first_[a] < first_[b] && second_[a] < second_[b];
  }
};

/// Does the tree hold every node of g exactly once and keep every dependency (u before v for every edge)? O(V
/// + E).
/// It may order more than g does: then it is a relaxation of g to a series-parallel order.
template <topology G> bool keeps_dependencies(G const& g, sp_tree const& t) {
  int const n = graph::node_count(g);
  std::vector<int> const l = leaves(t);
  std::vector<char> seen(idx(n), 0);
  if (static_cast<int>(l.size()) != n) return false;
  for (int v : l) {
    if (v < 0 || v >= n || seen[idx(v)]) return false;
    seen[idx(v)] = 1;
  }
  sp_order const order(t, n);
  for (int v = 0; v < n; ++v) {
    auto&& before = graph::predecessors(g, v);
    for (auto const& u : before)
      if (!order.precedes(static_cast<int>(u), v)) return false;
  }
  return true;
}

/// The fewest edges with the order of the tree: the last nodes of each part of a series to the first nodes of
/// the next. Precondition: no node occurs twice. O(size + edges).
inline std::vector<std::pair<int, int>> cover_edges(sp_tree const& t) {
  std::vector<std::vector<int>> first(idx(t.size())), last(first.size());
  std::vector<std::pair<int, int>> r;
  for (int i = 0; i < t.size(); ++i) {
    auto const me = idx(i);
    if (t.kind(i) == sp_kind::leaf) {
      first[me] = last[me] = {t.node(i)};
      continue;
    }
    auto const parts = t.parts(i);
    for (int k = 0; k < parts.size(); ++k) {
      auto const p = idx(parts[k]);
      bool const series = t.kind(i) == sp_kind::series;
      if (series && k > 0)
        for (int u : last[idx(parts[k - 1])])
          for (int v : first[p]) r.emplace_back(u, v);
      if (!series || k == 0) first[me].insert(first[me].end(), first[p].begin(), first[p].end());
      if (!series || k == parts.size() - 1) last[me].insert(last[me].end(), last[p].begin(), last[p].end());
    }
    for (int k : parts) {
      first[idx(k)] = {};  // a part whose ends are handed up needs them no more
      last[idx(k)] = {};
    }
  }
  std::sort(r.begin(), r.end());
  return r;
}

}  // namespace tensorpar::graph
