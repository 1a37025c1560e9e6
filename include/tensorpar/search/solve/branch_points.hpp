// tensorpar/search/solve/branch_points.hpp - points of two costs that no other is better than, and the
// decisions that lead to them
#pragma once
#include <algorithm>
#include <limits>
#include <span>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/problem/evaluate.hpp>
#include <vector>

namespace tensorpar::search::detail {

/// What a branch may take: seconds inside (t), seconds of what it exchanges with operators outside (p), and
/// how it comes about.
struct branch_point { double t, p; int trace; };
/// Ascending t, descending p.
using branch_points = std::vector<branch_point>;

/// Leaves points out until `most` are left. Returns the least factor (of some tried) such that for every
/// point there is one that is kept and at most so many times as dear, in both costs. Where no factor up to
/// 1,000 does, as with costs of nothing, all stay: 1.
inline double thin(branch_points& all, std::size_t most) {
  branch_points kept;
  for (double step = 1e-4; step < 1000; step *= 2) {
    double const factor = 1 + step;
    kept.clear();
    for (std::size_t i = 0; i < all.size() && kept.size() <= most;) {
      std::size_t k = i;
      // stands for those before it
      while (k + 1 < all.size() && all[k + 1].t <= all[i].t * factor) ++k;
      kept.push_back(all[k]);
      for (i = k + 1; i < all.size() && all[k].p <= all[i].p * factor;) ++i;          // and for these behind
    }
    if (kept.size() > most) continue;
    all = std::move(kept);
    return factor;
  }
  return 1;
}

/// Points that nothing else is better than. Ties: less p, then the smaller choice, then the smaller traces.
class branch_frontier {
  // op -1: of both below; moved: of the left one, so many places further on
  struct decision { int op, choice, left, right; };
  static constexpr int moved_ = -2;
  std::vector<decision> decisions_;

 public:
  struct draft { double t, p; int left, right, choice; };
  /// Every point of the one with every point of the other, in sequence or side by side.
  struct composition { branch_points const *left, *right; bool side; };

  int decide(int op, int choice, int left, int right) {
    decisions_.push_back({op, choice, left, right});
    return static_cast<int>(decisions_.size()) - 1;
  }

  /// Only points that are kept are remembered as decisions. Leaves `all` empty.
  branch_points best_of(std::vector<draft>& all, int op) {
    // the first in this order is kept, and all others must beat its p: most fall before anything is sorted
    draft const* first = nullptr;
    for (draft const& d : all) if (d.t + d.p < infinity && (!first || before(d, *first))) first = &d;
    if (!first) {
      all.clear();
      return {};
    }
    draft const best = *first;
    std::erase_if(all, [&](draft const& d) { return !(d.p < best.p && d.t + d.p < infinity); });
    return keep(best, all, op);
  }
  /// The same of all points of these, of which only those are made that have a chance.
  branch_points best_of(std::vector<composition> const& some) {
    draft first{infinity, infinity, -1, -1, -1};
    bool found = false;
    for (composition const& c : some)
      for (branch_point const& x : *c.left) {
        // t is no less with any other, and no less further on
        if (found && x.t > first.t) break;
        for (branch_point const& y : *c.right) {
          draft const d = composed(x, y, c.side);
          if (found && d.t > first.t) break;
          if (d.t + d.p < infinity && (!found || before(d, first))) { first = d; found = true; }
        }
      }
    if (!found) return {};
    made_.clear();
    for (composition const& c : some)
      for (branch_point const& x : *c.left)
        for (std::size_t k = c.right->size(); k-- > 0;) {
          draft const d = composed(x, (*c.right)[k], c.side);
          if (!(d.p < first.p)) break;                   // p is no less before
          if (d.t + d.p < infinity) made_.push_back(d);
        }
    return keep(first, made_, -1);
  }

  /// The same decisions about operators that stand `places` further along the tree.
  branch_points moved(branch_points all, int places) {
    for (branch_point& x : all)
      if (x.trace >= 0 && places != 0) x.trace = decide(moved_, places, x.trace, -1);
    return all;
  }

  /// Writes what was decided. `op_of(op, places)`: the operator so many places further on.
  template <class Op> void read(int trace, assignment& to, Op const& op_of, int places = 0) const {
    while (trace >= 0) {
      decision const& d = decisions_[idx(trace)];
      if (d.op == moved_) places += d.choice;
      else if (d.op >= 0) to[idx(op_of(d.op, places))] = d.choice;
      if (d.op != moved_) read(d.right, to, op_of, places);
      trace = d.left;
    }
  }

  void read(int trace, assignment& to) const { read(trace, to, [](int op, int) { return op; }); }

 private:
  std::vector<draft> made_;

  static bool before(draft const& a, draft const& b) {
    return a.t != b.t ? a.t < b.t : a.p != b.p ? a.p < b.p : a.choice != b.choice ? a.choice < b.choice :
           a.left != b.left ? a.left < b.left : a.right < b.right;
  }
  static draft composed(branch_point const& x, branch_point const& y, bool side) {
    return {side ? std::max(x.t, y.t) : x.t + y.t, x.p + y.p, x.trace, y.trace, -1};
  }
  branch_points keep(draft const& best, std::vector<draft>& others, int op) {
    branch_points r;
    r.push_back({best.t, best.p, decide(op, best.choice, best.left, best.right)});
    std::sort(others.begin(), others.end(), before);
    for (draft const& d : others)
      if (d.p < r.back().p) r.push_back({d.t, d.p, decide(op, d.choice, d.left, d.right)});
    others.clear();
    return r;
  }
};

/// A choice of the next operator of a chain: its seconds inside, and those of what it exchanges outside.
struct branch_entrant { int choice; double own, out; };

/// Have all points of all states the same p? Then of each state the one with the least t is enough.
inline bool level(std::vector<branch_points> const& now) {
  double const* p = nullptr;
  for (branch_points const& some : now)
    for (branch_point const& x : some) {
      if (p && x.p != *p) return false;
      p = &x.p;
    }
  return true;
}
/// The next operator of a chain after states that are level, with no fork between: what best_of keeps of
/// all pairs, by classes of what is exchanged. Additions keep order, so the least of a class is the least
/// of its sums; equal sums are told apart as best_of does. Returns how many pairs there are.
inline i64 join_level(mapping_tables const& tables, std::vector<branch_points> const& now,
                      operator_pair const* met, bool ascending, std::vector<branch_entrant> const& enter,
                      int v, branch_frontier& kept, std::vector<branch_points>& next) {
  auto const classes = [&](bool rows) -> choice_classes const& {
    return tables.classes[idx(rows ? met->rows : met->cols)];
  };
  // all points, those of a class together: class k's end where those of k + 1 begin
  std::size_t const kinds = met ? idx(classes(ascending).count) : 1;
  auto const class_of = [&](std::size_t i) { return met ? idx(classes(ascending).of[i]) : std::size_t{0}; };
  std::vector<std::size_t> begin(kinds + 1, 0);
  for (std::size_t i = 0; i < now.size(); ++i) begin[class_of(i) + 1] += now[i].size();
  for (std::size_t k = 0; k < kinds; ++k) begin[k + 1] += begin[k];
  branch_points sorted(begin[kinds]);
  std::vector<std::size_t> next_of = begin;
  double p = 0;
  for (std::size_t i = 0; i < now.size(); ++i)
    for (branch_point const& y : now[i]) {
      sorted[next_of[class_of(i)]++] = y;
      p = y.p;
    }
  auto const of_class = [&](std::size_t k) {
    return std::span(sorted.data() + begin[k], begin[k + 1] - begin[k]);
  };
  // of class k and the j-th entrant: base[k * step + other[j]]
  double const nothing = 0;
  double const* const base = met ? tables.costs[idx(met->cost)].seconds.data() : &nothing;
  std::size_t const cols = met ? idx(tables.costs[idx(met->cost)].cols) : 0;
  std::size_t const step = ascending ? cols : 1;
  std::vector<std::size_t> other(enter.size(), 0);
  for (std::size_t j = 0; j < enter.size() && met; ++j)
    other[j] = idx(classes(!ascending).of[idx(enter[j].choice)]) * (ascending ? 1 : cols);
  // points, of which each entrant leaves some out
  i64 all = 0;
  struct state { double t = infinity; std::size_t kind = 0; bool ties = false; i64 left_out = 0; };
  std::vector<state> best(enter.size());
  for (std::size_t k = 0; k < kinds; ++k) {
    if (of_class(k).empty()) continue;
    double least = infinity;
    for (branch_point const& y : of_class(k)) least = std::min(least, y.t);
    i64 const n = static_cast<i64>(of_class(k).size());
    all += n;
    double const* const row = base + k * step;
    for (std::size_t j = 0; j < enter.size(); ++j) {
      double const between = row[other[j]], t = least + between + enter[j].own;
      state& b = best[j];
      if (between == infinity) b.left_out += n;
      else if (t < b.t) b = {t, k, false, b.left_out};
      else if (t == b.t) b.ties = true;
    }
  }
  i64 pairs = 0;
  for (std::size_t j = 0; j < enter.size(); ++j) {
    auto const& [c, own, out] = enter[j];
    state const& b = best[j];
    pairs += all - b.left_out;
    if (!(b.t + (p + out) < infinity)) continue;
    int trace = std::numeric_limits<int>::max();
    for (std::size_t k = b.ties ? 0 : b.kind; k < (b.ties ? kinds : b.kind + 1); ++k) {
      double const between = base[k * step + other[j]];
      for (branch_point const& y : of_class(k))
        if (y.t + between + own == b.t) trace = std::min(trace, y.trace);
    }
    next[idx(c)].push_back({b.t, p + out, kept.decide(v, c, trace, -1)});
  }
  return pairs;
}

}  // namespace tensorpar::search::detail
