// tensorpar/search/pipeline/stages/tree.hpp - a series-parallel tree prepared for pricing: intervals of
// operators, equal sub-trees, borders
#pragma once
#include <map>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/sp/tree.hpp>
#include <tensorpar/search/pipeline/stages/border.hpp>
#include <utility>
#include <vector>

namespace tensorpar::search::detail {

/// Longer series are refused: borders of all their runs are kept, 24 bytes each, 430 MB for so many.
inline constexpr std::size_t max_in_series = 6000;

/// Operators lo .. hi-1 in the tree's order, counted `times` times (equal branches).
struct leaf_interval {
  int lo, hi, times;
};

/// Branches of a parallel composition that look alike and read the same tensors from outside, in the tree's
/// order.
struct branch_class {
  std::vector<int> children;
};

/// Numbers the operators in the tree's order, so that every sub-tree, every run of parts of a series and
/// every branch is an interval. Finds equal sub-trees: equal in shape, kinds of operators, and in how tensors
/// join them and leave them. O(operators * depth * tensors per operator); borders of runs of n parts are
/// computed once per different series, n^2 of them.
class stage_tree {
  graph::sp_tree tree_;
  tensor_uses uses_;
  mutable border_counter counter_;
  std::vector<int> order_, lo_, hi_, alike_;
  std::map<int, std::vector<branch_class>> classes_;
  mutable std::map<int, std::vector<std::vector<stage_border>>> runs_;  // by series, then its part at the end
  std::vector<std::vector<int>> parts_;

  template <class Kind>
  std::pair<u64, u64> signature(int e, Kind const& kind,
                                std::vector<std::pair<u64, u64>> const& known) const {
    core::hasher a, b;
    b.add(17);
    auto put = [&](auto x) {
      a.add(x);
      b.add(x);
    };
    put(static_cast<int>(tree_.kind(e)));
    for (int c : tree_.parts(e)) {
      put(known[idx(c)].first);
      put(hi_[idx(c)] - lo_[idx(c)]);
    }
    std::map<int, int> seen;
    auto touch = [&](int t) {
      auto const [it, fresh] = seen.try_emplace(t, static_cast<int>(seen.size()));
      put(it->second);
      if (!fresh) return;
      stage_tensor const& x = uses_.tensor(t);
      put(x.bytes);
      bool outside = !holds(e, x.producer);
      put(outside);
      outside = false;
      for (int v : x.consumers) outside = outside || !holds(e, v);
      put(outside);
    };
    for (int i = lo_[idx(e)]; i < hi_[idx(e)]; ++i) {
      int const v = order_[idx(i)];
      put(kind(v));
      put(static_cast<int>(uses_.read(v).size()));
      for (int t : uses_.read(v)) touch(t);
      for (int t : uses_.made(v)) touch(t);
    }
    return {a.value(), b.value()};
  }
  std::vector<int> place_;
  bool holds(int e, int v) const {
    int const p = place_[idx(v)];
    return p >= lo_[idx(e)] && p < hi_[idx(e)];
  }
  void count(int e) const {
    for (int i = lo(e); i < hi(e); ++i) counter_.add(order_[idx(i)]);
  }

 public:
  /// `kind(v)`: operators of one kind cost the same. Precondition: the tree's leaves are 0 .. operators-1.
  template <class Kind>
  stage_tree(graph::sp_tree tree, std::vector<stage_tensor> const& tensors, int operators, Kind const& kind)
      : tree_(std::move(tree)),
        uses_(tensors, operators),
        counter_(uses_),
        place_(idx(operators), 0) {
    std::size_t const n = idx(tree_.size());
    lo_.assign(n, 0);
    hi_.assign(n, 0);
    // entries: parts before their whole, in order, so leaves come in order
    for (int e = 0; e < tree_.size(); ++e) {
      std::size_t const i = idx(e);
      parts_.emplace_back();
      if (tree_.kind(e) == graph::sp_kind::leaf) {
        lo_[i] = static_cast<int>(order_.size());
        hi_[i] = lo_[i] + 1;
        place_[idx(tree_.node(e))] = lo_[i];
        order_.push_back(tree_.node(e));
      } else {
        for (int c : tree_.parts(e)) parts_[i].push_back(c);
        lo_[i] = lo_[idx(parts_[i].front())];
        hi_[i] = hi_[idx(parts_[i].back())];
      }
    }
    for (int e = 0; e < tree_.size(); ++e)
      // a series of one part
      if (tree_.kind(e) != graph::sp_kind::series) parts_[idx(e)].assign(1, e);
    std::vector<std::pair<u64, u64>> known;
    std::map<std::pair<u64, u64>, int> first;
    for (int e = 0; e < tree_.size(); ++e) {
      known.push_back(signature(e, kind, known));
      alike_.push_back(first.try_emplace(known.back(), e).first->second);
    }
    for (int e = 0; e < tree_.size(); ++e) {
      if (tree_.kind(e) != graph::sp_kind::parallel) continue;
      std::map<std::pair<int, std::vector<int>>, int> number;
      std::vector<branch_class>& classes = classes_[e];
      for (int c : tree_.parts(e)) {
        std::vector<int> outside;  // tensors that several branches read count once where these share a stage
        for (int i = lo(c); i < hi(c); ++i)
          for (int t : uses_.read(order_[idx(i)]))
            if (!holds(c, uses_.tensor(t).producer)) outside.push_back(t);
        auto const [it, fresh] =
            number.try_emplace({alike(c), std::move(outside)}, static_cast<int>(classes.size()));
        if (fresh) classes.emplace_back();
        classes[idx(it->second)].children.push_back(c);
      }
    }
  }
  stage_tree(stage_tree const&) = delete;  // the counter refers to a member
  stage_tree& operator=(stage_tree const&) = delete;

  graph::sp_tree const& tree() const { return tree_; }
  int root() const { return tree_.root(); }
  std::vector<int> const& order() const { return order_; }
  int place(int v) const { return place_[idx(v)]; }
  tensor_uses const& uses() const { return uses_; }
  int lo(int e) const { return lo_[idx(e)]; }
  int hi(int e) const { return hi_[idx(e)]; }
  bool is_block(int e) const { return tree_.kind(e) == graph::sp_kind::parallel; }
  /// The first sub-tree equal to this one.
  int alike(int e) const { return alike_[idx(e)]; }
  /// The parts of a series; anything else is a series of itself.
  std::vector<int> const& series(int e) const { return parts_[idx(e)]; }
  std::vector<branch_class> const& classes(int block) const { return classes_.at(block); }

  leaf_interval run(int e, int from, int to) const {
    return {lo(series(e)[idx(from)]), hi(series(e)[idx(to) - 1]),
            1};
  }
  /// The borders of the parts from .. to-1 of a series at place to - 1 - from, all of them. O(1) but for the
  /// first time.
  std::vector<stage_border> const& runs_before(int e, int to) const {
    std::vector<std::vector<stage_border>>& rows = runs_[e];
    std::vector<int> const& parts = series(e);
    if (rows.empty()) {
      if (parts.size() > max_in_series)
        throw error(
            std::to_string(parts.size()) + " operators in a row", "find_stages",
            "at most " + std::to_string(max_in_series) + "; group them (light_chains, find_stages_grouped)");
      rows.resize(parts.size());
    }
    std::vector<stage_border>& row = rows[idx(to) - 1];
    if (row.empty()) {
      row.reserve(idx(to));
      counter_.clear();
      for (std::size_t i = idx(to); i-- > 0;) {
        count(parts[i]);
        row.push_back(counter_.value());
      }
    }
    return row;
  }
  stage_border const& run_border(int e, int from, int to) const {
    return runs_before(e, to)[idx(to - 1 - from)];
  }
  /// The border of any operators.
  stage_border border_of(std::vector<int> const& operators) const {
    counter_.clear();
    for (int v : operators) counter_.add(v);
    return counter_.value();
  }
};

}  // namespace tensorpar::search::detail
