// tensorpar/search/solve/exact.hpp - the exact dynamic program over the series-parallel tree: every
// structure, time and memory
#pragma once
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/problem/evaluate.hpp>
#include <tensorpar/search/solve/frontier.hpp>
#include <unordered_map>
#include <utility>

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
  // by state: its point, and its key one after another
  struct solved {
    std::vector<points::item> states;
    std::vector<int> keys;
  };

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
  std::unordered_map<std::array<int, 3>, int, core::array_hash> memo_;
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
  /// Keys ascend.
  int store(keyed_frontiers<label>& by_key) {
    solved s;
    std::size_t const width = by_key.width();
    by_key.release([&](int const* key, points&& f) {
      for (auto& x : std::move(f).items()) {
        s.keys.insert(s.keys.end(), key, key + width);
        s.states.push_back(std::move(x));
      }
    });
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
    keyed_frontiers<label> by_key(open_[idx(entry)].size());
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
        by_key[&class_[idx(v)][idx(i)]].insert(x, {i, -1, -1, -1, -1});
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

  /// Operators of a pair whose seconds count where two sub-trees meet.
  struct meeting {
    pair_cost const* cost;
    bool first_left;
    int left, right;                     // places in the keys of both sides
    choice_classes const *of_left, *of_right;
  };
  static int index(std::vector<int> const& v, int x) {
    auto const i = std::find(v.begin(), v.end(), x);
    return i == v.end() ? -1 : static_cast<int>(i - v.begin());
  }
  std::vector<meeting> meetings(int entry, std::vector<int> const& open_a,
                                std::vector<int> const& open_b) const {
    std::vector<meeting> r;
    if (o_.bytes_only) return r;
    for (int k : pairs_[idx(entry)]) {
      operator_pair const& q = p_.pairs[idx(k)];
      bool const first_left = index(open_a, q.first) >= 0;
      choice_classes const &rows = p_.classes[idx(q.rows)], &cols = p_.classes[idx(q.cols)];
      r.push_back({&p_.costs[idx(q.cost)], first_left, index(open_a, first_left ? q.first : q.second),
                   index(open_b, first_left ? q.second : q.first), first_left ? &rows : &cols,
                   first_left ? &cols : &rows});
    }
    return r;
  }
  /// By state and meeting: the row or column of the meeting's costs.
  std::vector<int> places(solved const& of, std::vector<int> const& open, std::vector<meeting> const& meet,
                          bool left) const {
    std::vector<int> r;
    for (std::size_t i = 0; i < of.states.size(); ++i)
      for (meeting const& m : meet) {
        int const at = left ? m.left : m.right,
                  choice = of_class_[idx(open[idx(at)])][idx(of.keys[i * open.size() + idx(at)])];
        r.push_back((left ? m.of_left : m.of_right)->of[idx(choice)]);
      }
    return r;
  }
  bool combine(int entry, device_range r, device_range ra, device_range rb, bool side,
               keyed_frontiers<label>& by_key) {
    auto const& e = p_.tree[entry];
    int const a = solve(e.left, ra), b = a < 0 ? -1 : solve(e.right, rb);
    if (b < 0) return false;
    solved const &of_a = solved_[idx(a)], &of_b = solved_[idx(b)];
    std::size_t const na = of_a.states.size(), nb = of_b.states.size();
    left_ -= static_cast<i64>(na * nb);
    if (left_ < 0) return false;
    auto const &open_a = open_[idx(e.left)], &open_b = open_[idx(e.right)], &open = open_[idx(entry)];
    std::vector<meeting> const meet = meetings(entry, open_a, open_b);
    std::vector<int> const at_a = places(of_a, open_a, meet, true), at_b = places(of_b, open_b, meet, false);
    // where the key's parts come from
    std::vector<int> from_a, from_b, key(open.size() + 1, 0);
    for (int v : open) { from_a.push_back(index(open_a, v)); from_b.push_back(index(open_b, v)); }
    cost_point c;
    for (std::size_t i = 0; i < na; ++i)
      for (std::size_t j = 0; j < nb; ++j) {
        cost_point const &x = of_a.states[i].cost, &y = of_b.states[j].cost;
        double between = 0;
        for (std::size_t m = 0; m < meet.size(); ++m) {
          int const u = at_a[i * meet.size() + m], v = at_b[j * meet.size() + m];
          between += meet[m].first_left ? meet[m].cost->at(u, v) : meet[m].cost->at(v, u);
        }
        c.seconds = seconds_of(x, y, side) + between;
        if (!fast_enough(entry, r, c.seconds)) continue;
        sum_bytes(x, y, c);
        if (o_.memory && !within(c)) continue;
        for (std::size_t k = 0; k < open.size(); ++k)
          key[k] = from_a[k] >= 0 ? of_a.keys[i * open_a.size() + idx(from_a[k])]
                                  : of_b.keys[j * open_b.size() + idx(from_b[k])];
        points& best = by_key[key.data()];
        left_ -= static_cast<i64>(best.size());
        best.insert(c, {-1, a, b, static_cast<int>(i), static_cast<int>(j)});
      }
    return left_ >= 0;
  }

  void read_back(int entry, int table, int s, assignment& to) const {
    label const l = solved_[idx(table)].states[idx(s)].label;
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
      exact_point x{solved_[idx(top)].states[idx(s)].cost, assignment(idx(p_.operators()), 0)};
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
