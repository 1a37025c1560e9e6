// tensorpar/search/problem/move_book.hpp - which steps bring a tensor from one layout to another, worked out
// once for all shapes
#pragma once
#include <deque>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/reshard.hpp>
#include <vector>

namespace tensorpar::search {

/// Reshards between layouts, by the layouts' numbers. The steps do not depend on the tensor's extents, which
/// all degrees divide, so they serve every shape; and a step that occurs in many reshards is kept once, so
/// that whoever prices steps prices it once. Reshards in one exchange (or in a cut of what is there) are
/// most of all and have no step in common: they are known by their kind.
class move_book {
 public:
  /// One reshard: numbers of steps, in order, or what is done in one go from the one layout to the other.
  struct moves {
    int const* first;
    int count;
    ir::reshard_kind whole;                    // where count is 0
  };

 private:
  static constexpr int unknown = 0, kept = 1, exchanged = 2, listed = 3;   // from there on: a place in lists_
  std::vector<std::vector<int>> known_;  // to -> from
  std::vector<int> lists_;               // each: how many, then numbers of steps
  std::vector<ir::reshard_step> made_;          // of the reshard at hand
  std::deque<ir::reshard_step> steps_;
  // open addressing: numbers of steps, from 1
  std::vector<int> slots_ = std::vector<int>(1024, 0);

  static u64 hash_of(ir::reshard_step const& m) {
    core::hasher h;
    h.add(m.kind).add(m.from_dim).add(m.to_dim);
    for (ir::group_axis const& a : m.group) h.add(a.degree).add(a.stride);
    for (ir::layout const* l : {&m.before, &m.after}) {
      h.add(l->start);
      for (ir::layout_axis const& a : l->axes)
        h.add(static_cast<u64>(a.kind) * 64 + static_cast<u64>(a.dim + 1)).add(a.degree).add(a.stride);
    }
    return h.value();
  }
  /// Where it is or belongs.
  std::size_t find(ir::reshard_step const& m) const {
    std::size_t i = idx(hash_of(m)) & (slots_.size() - 1);
    while (slots_[i] && !(step(slots_[i] - 1) == m)) i = (i + 1) & (slots_.size() - 1);
    return i;
  }
  int number(ir::reshard_step&& m) {
    std::size_t i = find(m);
    if (slots_[i]) return slots_[i] - 1;
    steps_.push_back(std::move(m));
    if (2 * steps_.size() > slots_.size()) {
      slots_.assign(4 * slots_.size(), 0);
      for (std::size_t s = 0; s < steps_.size(); ++s) slots_[find(steps_[s])] = static_cast<int>(s + 1);
    } else {
      slots_[i] = static_cast<int>(steps_.size());
    }
    return static_cast<int>(steps_.size() - 1);
  }
  int entry_for(ir::layout const& from, ir::layout const& to, shape const& s) {
    made_.clear();
    if (!ir::detail::reshard_in_steps(from, to, s.rank, made_))
      return ir::detail::holds_already(from, to, s) ? kept : exchanged;
    int const at = static_cast<int>(lists_.size());
    lists_.push_back(static_cast<int>(made_.size()));
    for (ir::reshard_step& m : made_) {
      int const n = number(std::move(m));
      lists_.push_back(n);
    }
    return listed + at;
  }

 public:
  /// From layout number `a` to layout number `b`, another one. `s`: any shape with such layouts. The answer
  /// is valid until the next question.
  moves at(int a, ir::layout const& from, int b, ir::layout const& to, shape const& s) {
    auto const row = idx(b), column = idx(a);
    if (row >= known_.size()) known_.resize(row + 1);
    if (column >= known_[row].size()) known_[row].resize(column + 1, unknown);
    int& e = known_[row][column];
    if (e == unknown) e = entry_for(from, to, s);
    if (e < listed) return {nullptr, 0, e == kept ? ir::reshard_kind::slice : ir::reshard_kind::exchange};
    int const* const list = lists_.data() + (e - listed);
    return {list + 1, list[0], {}};
  }
  ir::reshard_step const& step(int i) const { return steps_[idx(i)]; }
};

}  // namespace tensorpar::search
