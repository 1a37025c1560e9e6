// tensorpar/search/solve/exact.hpp - the exact dynamic program over the series-parallel tree: every
// structure, time and memory
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/problem/evaluate.hpp>
#include <tensorpar/search/solve/frontier.hpp>

namespace tensorpar::search {

struct exact_options {
  bool memory = false;           // keep the frontier of seconds and bytes; points beyond capacity are dropped
  // with memory: seconds count as nothing and capacities are ignored (how little memory is enough?)
  bool bytes_only = false;
  i64 budget = 1'000'000;        // combinations looked at before giving up
  // seconds; of slower assignments none need be found
  double most = infinity;
};

/// One best or Pareto-optimal assignment.
struct exact_point {
  cost_point cost;
  assignment choices;
};

namespace detail {

class exact_mapper {
  // left, right: solved tables; -1 for a leaf
  struct label { int choice, left, right, left_state, right_state; };
  using points = frontier<label>;
  struct state { std::vector<int> key; frontier<label>::item point; };
  struct solved { std::vector<state> states; };

  mapping_problem const& p_;
  exact_options o_;
  i64 left_;
  std::vector<std::vector<int>> pairs_;
  // by tree entry: operators with partners outside
  std::vector<std::vector<int>> open_;
  // by operator: choice -> joint class, class -> a choice
  std::vector<std::vector<int>> class_, of_class_;
  // by operator: classes on the range of all devices
  std::vector<int> first_;
  // by tree entry: seconds that the rest takes at least
  std::vector<double> beside_;
  std::map<std::vector<int>, int> memo_;
  std::vector<solved> solved_;


  void find_open() {
    std::vector<int> partners(idx(p_.operators()), 0);
    if (!o_.bytes_only)
      for (operator_pair const& q : p_.pairs) {
        ++partners[idx(q.first)];
        ++partners[idx(q.second)];
      }
    std::vector<int> unmet = partners;
    for (int i = 0; i < p_.tree.size(); ++i) {
      auto const& e = p_.tree[i];
      std::vector<int> mine;
      if (e.kind == graph::sp_kind::leaf) mine = {e.left};
      else {
        mine = open_[idx(e.left)];
        mine.insert(mine.end(), open_[idx(e.right)].begin(), open_[idx(e.right)].end());
        if (!o_.bytes_only)
          for (int k : pairs_[idx(i)]) {
            --unmet[idx(p_.pairs[idx(k)].first)];
            --unmet[idx(p_.pairs[idx(k)].second)];
          }
      }
      std::vector<int> still;
      for (int v : mine) if (unmet[idx(v)] > 0) still.push_back(v);
      std::sort(still.begin(), still.end());
      open_.push_back(std::move(still));
    }
  }
  void find_classes() {
    std::vector<std::vector<int>> lists(idx(p_.operators()));
    for (operator_pair const& q : p_.pairs) {
      lists[idx(q.first)].push_back(q.rows);
      lists[idx(q.second)].push_back(q.cols);
    }
    for (int v = 0; v < p_.operators(); ++v) {
      std::map<std::vector<int>, int> number;
      std::vector<int> of, some;
      std::vector<int> at_zero;
      for (int i = 0; i < p_.choices(v).count(); ++i) {
        std::vector<int> key;
        for (int c : lists[idx(v)]) key.push_back(p_.classes[idx(c)].of[idx(i)]);
        auto const [it, fresh] = number.try_emplace(std::move(key), static_cast<int>(number.size()));
        if (fresh) some.push_back(i);
        of.push_back(it->second);
        if (p_.choices(v).shardings[idx(i)].start == 0) at_zero.push_back(it->second);
      }
      std::sort(at_zero.begin(), at_zero.end());
      first_.push_back(static_cast<int>(std::unique(at_zero.begin(), at_zero.end()) - at_zero.begin()));
      class_.push_back(std::move(of));
      of_class_.push_back(std::move(some));
    }
  }

  /// What happens on k of n devices counts k/n, as in search/solve/reduced.hpp: no assignment takes less than
  /// the sum.
  void find_rest() {
    std::vector<double> own;
    for (int i = 0; i < p_.tree.size(); ++i) {
      auto const& e = p_.tree[i];
      if (e.kind != graph::sp_kind::leaf) { own.push_back(own[idx(e.left)] + own[idx(e.right)]); continue; }
      choice_set const& c = p_.choices(e.left);
      own.push_back(infinity);
      for (std::size_t k = 0; k < c.seconds.size(); ++k)
        own.back() = std::min(own.back(), c.seconds[k] * c.sizes[k] / p_.devices);
    }
    for (double x : own) beside_.push_back(own.back() - x);
  }
  /// Can it be a part of an assignment that is fast enough?
  bool fast_enough(int entry, device_range r, double seconds) const {
    return o_.most == infinity ||
           seconds * r.count / p_.devices + beside_[idx(entry)] <= o_.most * (1 + 1e-9);
  }
  bool within(cost_point const& c) const {
    if (o_.bytes_only) return true;
    for (std::size_t d = 0; d < c.bytes.size(); ++d) if (c.bytes[d] > p_.capacity[d]) return false;
    return true;
  }
  int store(std::map<std::vector<int>, points>& by_key) {
    solved s;
    for (auto& [key, f] : by_key) for (auto const& x : f.items()) s.states.push_back({key, x});
    solved_.push_back(std::move(s));
    return static_cast<int>(solved_.size()) - 1;
  }

  /// Combinations that the first range alone takes: every combination of open classes is a state.
  double min_work() const {
    std::vector<double> states;
    double work = 0;
    for (int i = 0; i < p_.tree.size(); ++i) {
      auto const& e = p_.tree[i];
      double n = 1;
      for (int v : open_[idx(i)]) n *= static_cast<double>(first_[idx(v)]);
      states.push_back(n);
      if (e.kind != graph::sp_kind::leaf) work += states[idx(e.left)] * states[idx(e.right)];
    }
    return work;
  }

  /// Number of the solved table, or -1 where the budget is used up.
  int solve(int entry, device_range r) {
    auto const it = memo_.find({entry, r.first, r.count});
    if (it != memo_.end()) return it->second;
    auto const& e = p_.tree[entry];
    std::map<std::vector<int>, points> by_key;
    if (e.kind == graph::sp_kind::leaf) {
      int const v = e.left;
      choice_set const& c = p_.choices(v);
      for (int i = 0; i < c.count(); ++i) {
        if (!p_.fits(v, i, r)) continue;
        cost_point x{o_.bytes_only ? 0 : c.seconds[idx(i)], {}};
        if (!fast_enough(entry, r, x.seconds)) continue;
        if (o_.memory) {
          x.bytes.assign(idx(p_.devices), 0);
          for (int k = 0; k < c.sizes[idx(i)]; ++k) x.bytes[idx(r.first + k)] = c.bytes[idx(i)];
          if (!within(x)) continue;
        }
        std::vector<int> key;
        if (!open_[idx(entry)].empty()) key.push_back(class_[idx(v)][idx(i)]);
        by_key[key].insert(std::move(x), {i, -1, -1, -1, -1});
      }
    } else {
      if (!combine(entry, r, r, r, false, by_key)) return -1;
      if (e.kind == graph::sp_kind::parallel)
        for (auto const& [a, b] : divisions(r, p_.grain))
          if (!combine(entry, r, a, b, true, by_key)) return -1;
    }
    int const id = store(by_key);
    memo_[{entry, r.first, r.count}] = id;
    return id;
  }

  bool combine(int entry, device_range r, device_range ra, device_range rb, bool side,
               std::map<std::vector<int>, points>& by_key) {
    auto const& e = p_.tree[entry];
    int const a = solve(e.left, ra), b = a < 0 ? -1 : solve(e.right, rb);
    if (b < 0) return false;
    auto const &open_a = open_[idx(e.left)], &open_b = open_[idx(e.right)], &open = open_[idx(entry)];
    struct meeting { operator_pair const* pair; bool first_left; int left, right; };
    std::vector<meeting> meet;
    auto const index = [](std::vector<int> const& v, int x) {
      auto const i = std::find(v.begin(), v.end(), x);
      return i == v.end() ? -1 : static_cast<int>(i - v.begin());
    };
    if (!o_.bytes_only)
      for (int k : pairs_[idx(entry)]) {
        operator_pair const& q = p_.pairs[idx(k)];
        bool const first_left = index(open_a, q.first) >= 0;
        meet.push_back({&q, first_left, index(open_a, first_left ? q.first : q.second),
                        index(open_b, first_left ? q.second : q.first)});
      }
    // where the key's parts come from
    std::vector<int> from_a, from_b;
    for (int v : open) { from_a.push_back(index(open_a, v)); from_b.push_back(index(open_b, v)); }
    std::vector<int> key(open.size(), 0);
    int const na = static_cast<int>(solved_[idx(a)].states.size()),
              nb = static_cast<int>(solved_[idx(b)].states.size());
    left_ -= static_cast<i64>(na) * nb;
    if (left_ < 0) return false;
    for (int i = 0; i < na; ++i)
      for (int j = 0; j < nb; ++j) {
        state const &x = solved_[idx(a)].states[idx(i)], &y = solved_[idx(b)].states[idx(j)];
        double between = 0;
        for (meeting const& m : meet) {
          int const i_left = of_class_[idx(open_a[idx(m.left)])][idx(x.key[idx(m.left)])],
                    i_right = of_class_[idx(open_b[idx(m.right)])][idx(y.key[idx(m.right)])];
          between +=
              m.first_left ? p_.seconds(*m.pair, i_left, i_right) : p_.seconds(*m.pair, i_right, i_left);
        }
        cost_point c =
            side ? side_by_side(x.point.cost, y.point.cost) : in_sequence(x.point.cost, y.point.cost);
        c.seconds += between;
        if (!fast_enough(entry, r, c.seconds)) continue;
        if (o_.memory && !within(c)) continue;
        for (std::size_t k = 0; k < key.size(); ++k)
          key[k] = from_a[k] >= 0 ? x.key[idx(from_a[k])] : y.key[idx(from_b[k])];
        points& best = by_key[key];
        left_ -= static_cast<i64>(best.size());
        best.insert(std::move(c), {-1, a, b, i, j});
      }
    return left_ >= 0;
  }

  void read_back(int entry, int table, int s, assignment& to) const {
    label const l = solved_[idx(table)].states[idx(s)].point.label;
    auto const& e = p_.tree[entry];
    if (e.kind == graph::sp_kind::leaf) { to[idx(e.left)] = l.choice; return; }
    read_back(e.left, l.left, l.left_state, to);
    read_back(e.right, l.right, l.right_state, to);
  }

 public:
  exact_mapper(mapping_problem const& p, exact_options o)
      : p_(p), o_(o), left_(o.budget), pairs_(pairs_at(p)) {
    find_open();
    find_classes();
    find_rest();
  }
  std::optional<std::vector<exact_point>> run() {
    if (min_work() > static_cast<double>(o_.budget)) return std::nullopt;
    int const top = solve(p_.tree.root(), {0, p_.devices});
    if (top < 0) return std::nullopt;
    std::vector<exact_point> r;
    for (int s = 0; s < static_cast<int>(solved_[idx(top)].states.size()); ++s) {
      exact_point x{solved_[idx(top)].states[idx(s)].point.cost, assignment(idx(p_.operators()), 0)};
      read_back(p_.tree.root(), top, s, x.choices);
      r.push_back(std::move(x));
    }
    std::stable_sort(r.begin(), r.end(), [](exact_point const& a, exact_point const& b) {
      return a.cost.seconds < b.cost.seconds;
    });
    return r;
  }
};

}  // namespace detail

/// All that is worth choosing from: without `memory` the one fastest assignment; with it the Pareto frontier
/// of seconds and bytes per device within capacity, fastest first, empty if nothing fits or is fast enough.
/// Nothing at all if the budget does not suffice. A dynamic program over the tree: for every sub-tree and
/// device range a table by the layout classes of the operators that have partners outside (exact, as the cost
/// of the rest depends on nothing else). Exponential in the number of such operators at one time.
inline std::optional<std::vector<exact_point>> exact_mappings(mapping_problem const& p,
                                                              exact_options o = {}) {
  return detail::exact_mapper(p, o).run();
}

}  // namespace tensorpar::search
