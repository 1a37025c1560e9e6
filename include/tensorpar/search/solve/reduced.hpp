// tensorpar/search/solve/reduced.hpp - two simpler problems beside a mapping problem: one that bounds it from
// below, one whose answers are
// answers
#pragma once
#include <algorithm>
#include <concepts>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/problem/problem.hpp>

namespace tensorpar::search {

/// May anything run side by side at all?
inline bool branches(mapping_problem const& p) {
  if (p.devices <= p.grain) return false;
  for (int i = 0; i < p.tree.size(); ++i) if (p.tree[i].kind == graph::sp_kind::parallel) return true;
  return false;
}

/// A problem with fewer choices, and these in the original's numbers.
struct smaller_problem {
  mapping_problem problem;
  std::vector<std::vector<int>> original;        // set -> choice -> choice of the original
  assignment back(assignment a) const {
    for (std::size_t v = 0; v < a.size(); ++v)
      a[v] = original[idx(problem.set_of[v])][idx(a[v])];
    return a;
  }
};

/// Keeps the choices that are listed, by set. Precondition: at least one of every set. O(choices + pair
/// costs).
inline smaller_problem with_choices(mapping_problem const& p, std::vector<std::vector<int>> listed) {
  smaller_problem r;
  static_cast<problem_frame&>(r.problem) = p;
  for (std::size_t number = 0; number < p.sets.size(); ++number) {
    choice_set const& s = p.sets[number];
    std::vector<int> keep = std::move(listed[number]);
    choice_set t;
    for (int i : keep) {
      auto const k = idx(i);
      t.shardings.push_back(s.shardings[k]);
      if (!s.savings.empty()) t.savings.push_back(s.savings[k]);
      t.sizes.push_back(s.sizes[k]);
      t.seconds.push_back(s.seconds[k]);
      t.bytes.push_back(s.bytes[k]);
    }
    r.problem.sets.push_back(std::move(t));
    r.original.push_back(std::move(keep));
  }
  std::vector<std::vector<int>> kept;            // classes -> new class -> old class
  for (choice_classes const& c : p.classes) {
    std::vector<int> number(idx(c.count), -1), old, of;
    for (int i : r.original[idx(c.set)]) {
      int& n = number[idx(c.of[idx(i)])];
      if (n < 0) { n = static_cast<int>(old.size()); old.push_back(c.of[idx(i)]); }
      of.push_back(n);
    }
    r.problem.classes.push_back({c.set, static_cast<int>(old.size()), std::move(of)});
    kept.push_back(std::move(old));
  }
  std::vector<char> done(p.costs.size(), 0);
  r.problem.costs.resize(p.costs.size());
  for (operator_pair const& q : p.pairs) {
    auto const k = idx(q.cost);
    if (done[k]) continue;                       // equal cost, equal classes: they were made together
    done[k] = 1;
    auto const &rows = kept[idx(q.rows)], &cols = kept[idx(q.cols)];
    pair_cost c{static_cast<int>(rows.size()), static_cast<int>(cols.size()), {}};
    c.seconds.reserve(rows.size() * cols.size());
    for (int x : rows) {
      double const* const row = p.costs[k].seconds.data() + idx(x) * idx(p.costs[k].cols);
      for (int y : cols) c.seconds.push_back(row[y]);
    }
    r.problem.costs[k] = std::move(c);
  }
  return r;
}

/// Keeps the choices for which keep(set, choice) holds. Precondition: at least one of every set.
template <std::predicate<int, int> Keep>
smaller_problem with_choices(mapping_problem const& p, Keep const& keep) {
  std::vector<std::vector<int>> listed(p.sets.size());
  for (std::size_t set = 0; set < p.sets.size(); ++set)
    for (int i = 0; i < p.sets[set].count(); ++i)
      if (keep(static_cast<int>(set), i)) listed[set].push_back(i);
  return with_choices(p, std::move(listed));
}

/// Everything in sequence on all devices: the choices that start at device 0. Law: the cheapest plain sum is
/// the cost of an assignment of p.
inline smaller_problem in_sequence_only(mapping_problem const& p) {
  return with_choices(
      p, [&](int set, int i) { return p.sets[idx(set)].shardings[idx(i)].start == 0; });
}

/// Of every set, and on every range of devices, the fastest choice by itself. O(choices log choices).
inline smaller_problem one_of_a_range(mapping_problem const& p) {
  std::vector<std::vector<int>> listed(p.sets.size());
  for (std::size_t s = 0; s < p.sets.size(); ++s) {
    choice_set const& c = p.sets[s];
    std::map<std::pair<int, int>, int> best;
    for (int i = 0; i < c.count(); ++i) {
      auto const [at, fresh] =
          best.try_emplace({c.shardings[idx(i)].start, c.sizes[idx(i)]}, i);
      if (!fresh && c.seconds[idx(i)] < c.seconds[idx(at->second)]) at->second = i;
    }
    for (auto const& [range, i] : best) listed[s].push_back(i);
  }
  return with_choices(p, std::move(listed));
}

/// Costs between operators that happen on k of n devices, counted k/n: k is the larger of the smallest ranges
/// in which the two choices can stand. Equal costs are scaled once. Precondition: all that it is given
/// outlives it; `from` and `least` may grow.
class scaled_pairs {
  mapping_tables const& from_;
  mapping_tables& to_;
  std::vector<std::vector<int>> const& least_;                     // set -> choice -> devices of that range
  int devices_;
  // classes -> (new classes, new class -> choice)
  std::map<int, std::pair<int, std::vector<int>>> finer_;
  std::map<int, operator_pair> scaled_;                            // by cost

  /// Classes that tell apart what stands in smaller ranges too.
  std::pair<int, std::vector<int>> const& finer(int classes) {
    auto const [it, fresh] = finer_.try_emplace(classes);
    if (!fresh) return it->second;
    choice_classes const& c = from_.classes[idx(classes)];
    choice_classes n{c.set, 0, {}};
    std::map<std::pair<int, int>, int> number;
    for (std::size_t i = 0; i < c.of.size(); ++i) {
      auto const [at, first] =
          number.try_emplace({c.of[i], least_[idx(c.set)][i]}, static_cast<int>(number.size()));
      if (first) it->second.second.push_back(static_cast<int>(i));
      n.of.push_back(at->second);
    }
    n.count = static_cast<int>(number.size());
    it->second.first = static_cast<int>(to_.classes.size());
    to_.classes.push_back(std::move(n));
    return it->second;
  }

 public:
  scaled_pairs(mapping_tables const& from, mapping_tables& to, std::vector<std::vector<int>> const& least,
               int devices)
      : from_(from), to_(to), least_(least), devices_(devices) {}

  /// The same pair with scaled costs, in the tables `to`.
  operator_pair operator()(operator_pair q) {
    auto const [it, fresh] = scaled_.try_emplace(q.cost);
    if (fresh) {
      auto const& [rows, row_choice] = finer(q.rows);
      auto const& [cols, col_choice] = finer(q.cols);
      auto const &a = least_[idx(from_.classes[idx(q.rows)].set)],
                 &b = least_[idx(from_.classes[idx(q.cols)].set)];
      pair_cost c{static_cast<int>(row_choice.size()), static_cast<int>(col_choice.size()), {}};
      auto const &row_class = from_.classes[idx(q.rows)].of,
                 &col_class = from_.classes[idx(q.cols)].of;
      pair_cost const& whole = from_.costs[idx(q.cost)];
      // by column: where it is in a row, and on how many devices
      std::vector<std::pair<int, int>> places;
      for (int y : col_choice) places.push_back({col_class[idx(y)], b[idx(y)]});
      c.seconds.reserve(row_choice.size() * col_choice.size());
      for (int x : row_choice) {
        double const* const row =
            whole.seconds.data() + idx(row_class[idx(x)]) * idx(whole.cols);
        int const size = a[idx(x)];
        for (auto const& [y, other] : places) c.seconds.push_back(row[y] * std::max(size, other) / devices_);
      }
      it->second = {0, 0, static_cast<int>(to_.costs.size()), rows, cols};
      to_.costs.push_back(std::move(c));
    }
    return {q.first, q.second, it->second.cost, it->second.rows, it->second.cols};
  }
};

/// A problem whose cheapest plain sum is never above the cost of any assignment of `p`, whatever runs side by
/// side. Take two parts side by side on k and m - k of m devices. The longer takes at least k/m of the one
/// plus (m-k)/m of the other. So time on k of all n devices counts k/n, with the smallest range in which a
/// choice can stand. O(choices + pair costs).
inline mapping_problem relaxed_sum(mapping_problem const& p,
                                   std::vector<std::vector<int>> const& pairs_of_entry) {
  mapping_problem r;
  static_cast<problem_frame&>(r) = p;
  r.sets = p.sets;
  r.classes = p.classes;
  // only those are there that stay as they are
  r.costs.resize(p.costs.size());
  auto const ranges = reachable_ranges(p.tree, p.devices, p.grain);
  // set -> choice -> size of that range
  std::vector<std::vector<int>> least(p.sets.size());
  for (int i = 0; i < p.tree.size(); ++i) {
    if (p.tree[i].kind != graph::sp_kind::leaf) continue;
    auto const s = idx(p.set_of[idx(p.tree[i].left)]);
    // operators of one set stand in the same ranges
    if (!least[s].empty()) continue;
    choice_set const& c = p.sets[s];
    for (int k = 0; k < c.count(); ++k) {
      int size = p.devices;
      for (device_range x : ranges[idx(i)])
        if (p.fits(p.tree[i].left, k, x)) size = std::min(size, x.count);
      least[s].push_back(size);
      r.sets[s].seconds[idx(k)] *= static_cast<double>(size) / p.devices;
    }
  }
  scaled_pairs scaled(p, r, least, p.devices);
  for (std::size_t e = 0; e < pairs_of_entry.size(); ++e)
    for (int k : pairs_of_entry[e]) {
      operator_pair& q = r.pairs[idx(k)];
      if (ranges[e].size() > 1) q = scaled(p.pairs[idx(k)]);
      else if (pair_cost& c = r.costs[idx(q.cost)]; c.seconds.empty())
        c = p.costs[idx(q.cost)];
    }
  return r;
}

}  // namespace tensorpar::search
