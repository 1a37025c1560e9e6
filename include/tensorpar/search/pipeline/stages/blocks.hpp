// tensorpar/search/pipeline/stages/blocks.hpp - the branches of a parallel composition in groups: which there
// are and what they border on
#pragma once
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/pipeline/stages/tree.hpp>
#include <utility>
#include <vector>

namespace tensorpar::search::detail {

/// A set of branches that become one stage.
struct branch_group {
  std::vector<leaf_interval> intervals;  // equal branches count several times
  std::vector<int> children;             // of the block that was prepared
  stage_border border;
};

/// A block's branches as states. A state is a set of branches: how many of each class, as a number in mixed
/// radix, 0 the empty set. Where there are too many such sets, branches are taken in their order and a state
/// is how many are done: then groups are neighbours.
struct branch_states {
  struct move {
    int before, group, size, one;  // one: the class or, in order, the place of the only branch
  };
  std::vector<int> count;  // branches of each class
  bool in_order = false;
  int states = 1;
  // by state: the state before, and the group that makes the difference
  std::vector<std::vector<move>> moves;
  std::vector<branch_group> groups;
  std::vector<int> ordered;  // branches in the order of their classes

  static constexpr int max_states = 512;

  /// How many of each class. Precondition: not in_order.
  std::vector<int> digits(int state) const {
    std::vector<int> d;
    for (int n : count) {
      d.push_back(state % (n + 1));
      state /= n + 1;
    }
    return d;
  }
  /// The group number of a state. Precondition: not in_order, state > 0.
  int group_of_state(int state) const { return state - 1; }
};

/// The states of a block: O(states^2) moves; in order, each of a run of branches, so O(branches^3) room.
inline branch_states states_of(stage_tree const& tree, int block) {
  branch_states r;
  auto const& classes = tree.classes(block);
  int all = 0;
  for (branch_class const& c : classes) {
    int const n = static_cast<int>(c.children.size());
    r.count.push_back(n);
    r.ordered.insert(r.ordered.end(), c.children.begin(), c.children.end());
    all += n;
    if (r.states <= branch_states::max_states) r.states *= n + 1;
  }
  r.in_order = r.states > branch_states::max_states;
  if (r.in_order) r.states = all + 1;
  r.moves.resize(idx(r.states));
  auto add_group = [&](branch_group g) {
    std::vector<int> operators;
    for (int c : g.children)
      for (int i = tree.lo(c); i < tree.hi(c); ++i)
        operators.push_back(tree.order()[idx(i)]);
    g.border = tree.border_of(operators);
    r.groups.push_back(std::move(g));
    return static_cast<int>(r.groups.size()) - 1;
  };
  if (r.in_order) {
    for (int s = 1; s < r.states; ++s) {
      branch_group g;
      for (int n = 1; n <= s; ++n) {
        int const c = r.ordered[idx(s - n)];
        g.children.push_back(c);
        g.intervals.push_back({tree.lo(c), tree.hi(c), 1});
        r.moves[idx(s)].push_back({s - n, n == 1 ? -1 : add_group(g), n, s - 1});
      }
    }
    return r;
  }
  std::vector<std::vector<int>> digits;
  for (int s = 0; s < r.states; ++s) digits.push_back(r.digits(s));
  for (int s = 1; s < r.states; ++s) {
    branch_group g;
    for (std::size_t c = 0; c < classes.size(); ++c) {
      int const n = digits[idx(s)][c], child = classes[c].children.front();
      if (n == 0) continue;
      g.intervals.push_back({tree.lo(child), tree.hi(child), n});
      g.children.insert(g.children.end(), classes[c].children.begin(), classes[c].children.begin() + n);
    }
    add_group(std::move(g));
  }
  for (int s = 1; s < r.states; ++s) {
    auto const& have = digits[idx(s)];
    std::size_t least = 0;
    while (have[least] == 0) ++least;
    // with a branch of the first class there is, so that no set comes about twice
    for (int g = 1; g <= s; ++g) {
      auto const& d = digits[idx(g)];
      bool inside = d[least] > 0;
      int size = 0;
      for (std::size_t c = 0; c < d.size() && inside; ++c) {
        inside = d[c] <= have[c];
        size += d[c];
      }
      if (inside)
        r.moves[idx(s)].push_back(
            {s - g, r.group_of_state(g), size, static_cast<int>(least)});
    }
  }
  return r;
}

}  // namespace tensorpar::search::detail
