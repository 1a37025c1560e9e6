// tensorpar/prover/cases/restrict.hpp - the weakest conditions on axes that a rule needs
#pragma once
#include <algorithm>
#include <concepts>
#include <tensorpar/prover/cases/instances.hpp>

namespace tensorpar::prover {

namespace detail {

/// Conditions that may rule out cases of a rule: an axis parameter is none of the last one or two axes of a
/// tensor; two of them differ. Or an axis that is written as a number from the left is none of the last.
inline std::vector<rewrite::rule_condition> axis_conditions(rewrite::rule const& r) {
  std::vector<rewrite::rule_condition> all;
  for (std::size_t p = 0; p < r.parameters.size(); ++p) {
    if (r.parameters[p].kind != rewrite::parameter_kind::axis) continue;
    rewrite::rule_term const a = rewrite::parameter_term(static_cast<int>(p));
    for (std::size_t x = 0; x < r.tensors.size(); ++x)
      for (i64 last : {1, 2})
        all.push_back({rewrite::condition_kind::inner, a, rewrite::number_term(last), static_cast<int>(x)});
    for (std::size_t q = p + 1; q < r.parameters.size(); ++q)
      if (r.parameters[q].kind == rewrite::parameter_kind::axis)
        all.push_back({rewrite::condition_kind::different, a, rewrite::parameter_term(static_cast<int>(q)),
                       -1});
  }
  std::vector<i64> numbers;
  for (rewrite::pattern_graph const* g : {&r.source, &r.target})
    for (rewrite::pattern_node const& n : g->nodes)
      for (std::size_t i = 0; i < n.attr.size(); ++i)
        if (rewrite::role_of(*n.op, static_cast<int>(i)) == rewrite::attr_role::axis &&
            n.attr[i].factors.empty() && n.attr[i].number >= 0 &&
            std::find(numbers.begin(), numbers.end(), n.attr[i].number) == numbers.end())
          numbers.push_back(n.attr[i].number);
  for (i64 a : numbers)
    for (std::size_t x = 0; x < r.tensors.size(); ++x)
      for (i64 last : {1, 2})
        all.push_back({rewrite::condition_kind::inner, rewrite::number_term(a), rewrite::number_term(last),
                       static_cast<int>(x)});
  return all;
}

}  // namespace detail

/// Adds to a rule the conditions on axes under which `holds(case)` is true in all of its cases: one of them
/// if one is enough, else two; of several that will do, the one that leaves most cases. nullopt: none of them
/// do, or nothing is left.
/// O(cases * conditions^2) besides the calls of `holds`, one per case.
template <std::predicate<rule_case const&> Holds>
std::optional<rewrite::rule> restricted(rewrite::rule const& r, Holds const& holds,
                               rewrite::vocabulary const& words = rewrite::standard_vocabulary(),
                                   case_limits limits = {}) {
  auto const cases = cases_of(r, words, limits);
  std::vector<bool> good;
  for (rule_case const& c : cases) good.push_back(holds(c));
  auto const all = detail::axis_conditions(r);
  auto leaves = [&](rewrite::rule const& s) {   // how many cases are left; -1 if one of them is bad
    int n = 0;
    for (std::size_t i = 0; i < cases.size(); ++i) {
      if (!detail::holds_on_axes(s, cases[i].at, cases[i].tensors)) continue;
      if (!good[i]) return -1;
      ++n;
    }
    return n;
  };
  std::optional<rewrite::rule> best;
  int most = 0;
  auto attempt = [&](rewrite::rule s) {
    if (int const n = leaves(s); n > most) { most = n; best = std::move(s); }
  };
  attempt(r);
  if (best) return best;
  for (rewrite::rule_condition const& a : all) {
    rewrite::rule s = r;
    s.conditions.push_back(a);
    attempt(std::move(s));
  }
  if (best) return best;
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t j = i + 1; j < all.size(); ++j) {
      rewrite::rule s = r;
      s.conditions.push_back(all[i]);
      s.conditions.push_back(all[j]);
      attempt(std::move(s));
    }
  return best;
}

}  // namespace tensorpar::prover
