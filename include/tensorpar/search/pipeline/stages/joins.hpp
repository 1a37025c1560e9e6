// tensorpar/search/pipeline/stages/joins.hpp - borders of stages that hold branches, or their ends, and what
// follows their block
#pragma once
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/pipeline/stages/blocks.hpp>
#include <utility>
#include <vector>

namespace tensorpar::search::detail {

/// Block p of series e and the parts after it. The border of a *left* set (branches, ends of branches) with a
/// run of parts after the block is the sum of both borders but for the few tensors that touch both sides;
/// these are known here. O(such tensors) per question.
class block_joins {
  struct crossing {
    int tensor, consumers;
    double bytes;
  };
  stage_tree const* tree_;
  int e_, p_;
  std::vector<crossing> crossing_;
  std::vector<std::vector<int>> right_;  // by j, then crossing tensor: consumers in the run p+1 .. j-1

 public:
  /// Operators on the left: their border, and which crossing tensors they make and read how often.
  struct left {
    stage_border border;
    std::vector<std::pair<bool, int>> touch;
  };

  block_joins(stage_tree const& tree, int e, int p) : tree_(&tree), e_(e), p_(p) {
    auto const& parts = tree.series(e);
    int const block = parts[idx(p)], n = static_cast<int>(parts.size());
    auto const touches_left = [&](int v) {
      return tree.place(v) >= tree.lo(block) && tree.place(v) < tree.hi(block);
    };
    std::vector<char> seen(idx(tree.uses().count()), 0);
    for (int i = tree.lo(block); i < tree.hi(block); ++i) {
      int const v = tree.order()[idx(i)];
      for (auto const* list : {&tree.uses().read(v), &tree.uses().made(v)})
        for (int t : *list) {
          if (seen[idx(t)]) continue;
          seen[idx(t)] = 1;
          stage_tensor const& x = tree.uses().tensor(t);
          bool right = false;
          for (int w : x.consumers)
            right =
                right || (!touches_left(w) && tree.place(w) >= tree.hi(block) && tree.place(w) < tree.hi(e));
          if (right) crossing_.push_back({t, static_cast<int>(x.consumers.size()), x.bytes});
        }
    }
    right_.resize(idx(n) + 1);
    for (int j = p + 2; j <= n; ++j)
      for (crossing const& c : crossing_) {
        int count = 0;
        for (int w : tree.uses().tensor(c.tensor).consumers)
          count += tree.place(w) >= tree.hi(block) &&
                   tree.place(w) < tree.hi(parts[idx(j) - 1]);
        right_[idx(j)].push_back(count);
      }
  }

  /// `border` is that of these intervals of operators.
  left make_left(std::vector<std::pair<int, int>> const& intervals, stage_border const& border) const {
    left l{border, {}};
    auto holds = [&](int v) {
      for (auto const& [lo, hi] : intervals)
        if (tree_->place(v) >= lo && tree_->place(v) < hi) return true;
      return false;
    };
    for (crossing const& c : crossing_) {
      stage_tensor const& x = tree_->uses().tensor(c.tensor);
      int inside = 0;
      for (int w : x.consumers) inside += holds(w);
      l.touch.emplace_back(holds(x.producer), inside);
    }
    return l;
  }

  /// The border of a left set with parts p+1 .. j-1.
  stage_border border(left const& l, int j) const {
    stage_border const& r = tree_->run_border(e_, p_ + 1, j);
    stage_border b{l.border.in + r.in, l.border.out + r.out, l.border.tensors_in + r.tensors_in,
                   l.border.tensors_out + r.tensors_out};
    for (std::size_t i = 0; i < crossing_.size(); ++i) {
      auto const [made, inside] = l.touch[i];
      int const right = right_[idx(j)][i], all = crossing_[i].consumers;
      int const in = (!made && inside + right > 0) - (!made && inside > 0) - (right > 0),
                out = (made && inside + right < all) - (made && inside < all);
      b.tensors_in += in;
      b.tensors_out += out;
      b.in += in * crossing_[i].bytes;
      b.out += out * crossing_[i].bytes;
    }
    if (b.tensors_in == 0) b.in = 0;
    if (b.tensors_out == 0) b.out = 0;
    return b;
  }
};

/// Blocks and joins of a tree, prepared when first asked for and kept: they depend on no limit and on no
/// choice.
class stage_blocks {
  stage_tree const* tree_;
  std::map<int, branch_states> states_;
  struct join_point {
    block_joins joins;
    std::vector<block_joins::left> groups;                                // by group
    // by branch, and whether all equal ones: from its part q on
    std::map<std::pair<int, bool>, std::vector<block_joins::left>> ends;
  };
  std::map<std::pair<int, int>, join_point> joins_;

  join_point& at(int e, int p) {
    auto it = joins_.find({e, p});
    if (it != joins_.end()) return it->second;
    join_point x{block_joins(*tree_, e, p), {}, {}};
    for (branch_group const& g : states(tree_->series(e)[idx(p)]).groups) {
      std::vector<std::pair<int, int>> intervals;
      for (int c : g.children) intervals.emplace_back(tree_->lo(c), tree_->hi(c));
      x.groups.push_back(x.joins.make_left(intervals, g.border));
    }
    return joins_.emplace(std::pair{e, p}, std::move(x)).first->second;
  }

 public:
  explicit stage_blocks(stage_tree const& tree) : tree_(&tree) {}
  branch_states const& states(int block) {
    auto it = states_.find(block);
    if (it == states_.end()) it = states_.emplace(block, states_of(*tree_, block)).first;
    return it->second;
  }
  block_joins const& joins(int e, int p) { return at(e, p).joins; }
  /// Left sets of block p of series e: its groups.
  std::vector<block_joins::left> const& groups(int e, int p) { return at(e, p).groups; }
  /// Ends of a branch, or of all branches of its class together, from part q on, by q.
  std::vector<block_joins::left> const& ends(int e, int p, branch_class const& c, bool all) {
    join_point& x = at(e, p);
    auto const [it, fresh] = x.ends.try_emplace({c.children.front(), all}, std::vector<block_joins::left>{});
    if (fresh) {
      std::vector<int> const children(c.children.begin(), all ? c.children.end() : c.children.begin() + 1);
      int const m = static_cast<int>(tree_->series(children.front()).size());
      for (int q = 0; q < m; ++q) {
        std::vector<std::pair<int, int>> intervals;
        std::vector<int> operators;
        for (int child : children) {
          leaf_interval const y = tree_->run(child, q, m);
          intervals.emplace_back(y.lo, y.hi);
          if (all)
            for (int i = y.lo; i < y.hi; ++i)
              operators.push_back(tree_->order()[idx(i)]);
        }
        it->second.push_back(x.joins.make_left(
            intervals, all ? tree_->border_of(operators) : tree_->run_border(children.front(), q, m)));
      }
    }
    return it->second;
  }
};

}  // namespace tensorpar::search::detail
