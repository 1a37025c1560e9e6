// tensorpar/prover/cases/drawn_numbers.hpp - the numbers that a rule's parameters are tried with
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <string_view>
#include <tensorpar/rewrite/rule.hpp>
#include <vector>

namespace tensorpar::prover {

struct case_limits {
  int max_rank = 4;
  int most = 64;                         // cases of one rule
};

namespace detail {

/// Stands in a case for a real number, which decides no shape: every instance draws one of its own.
inline constexpr i64 real_of_any_sign = std::bit_cast<i64>(0.5);
/// The same for one that is never negative: what is added to a variance (eps), or a share (rate).
inline constexpr i64 real_not_negative = std::bit_cast<i64>(0.25);
/// A real number that a parameter is tried with: of either sign, a whole one or not. One in eight is 0, 1,
/// -1, 2 or -2. The others are eighths: half of all from [-4, 4), where functions are not flat, the rest from
/// [-125, 125).
inline i64 random_real(auto& draw) {
  unsigned const way = static_cast<unsigned>(draw() % 8), n = static_cast<unsigned>(draw() % 2000);
  double const x = n;
  return std::bit_cast<i64>(way == 0  ? std::fmod(x, 5) - 2
                            : way % 2 ? std::fmod(x, 64) / 8 - 4
                                      : x / 8 - 125);
}

/// The number that an instance has for a parameter which is `what` in its case: one that is drawn, where that
/// stands for real numbers.
inline i64 drawn_number(i64 what, auto& draw) {
  if (what == real_of_any_sign) return random_real(draw);
  if (what == real_not_negative)
    return std::bit_cast<i64>(std::abs(std::bit_cast<double>(random_real(draw))));
  return what;
}

/// What numbers a parameter is tried with, by the attribute that it stands for.
inline std::vector<i64> number_choices(rewrite::rule const& r, int p) {
  std::vector<i64> c;
  std::string_view attribute;
  bool sampled = false;
  for (rewrite::pattern_graph const* g : {&r.source, &r.target})
    for (rewrite::pattern_node const& n : g->nodes)
      for (std::size_t i = 0; i < n.attr.size(); ++i)
        for (rewrite::rule_factor const& f : n.attr[i].factors) {
          if (f.kind != rewrite::term_kind::parameter || f.index != p || !c.empty()) continue;
          std::string_view const name = n.op->attr_name(static_cast<int>(i));
          attribute = name;
          sampled =
              n.op->attr_kind(static_cast<int>(i)) != 'b' && n.op->attr_kind(static_cast<int>(i)) != 'f';
          if (n.op->attr_kind(static_cast<int>(i)) == 'b') c = {0, 1};
          else if (n.op->attr_kind(static_cast<int>(i)) == 'f')
            c = {name == "eps" || name == "rate" ? real_not_negative : real_of_any_sign};
          else if (name == "pad") c = {0, 1};
          else if (name == "pad_w") c = {-1};
          else if (name == "parts") c = {2, 3};
          else if (name == "groups") c = {1};
          else c = {1, 2};
        }
  if (c.empty()) c = {1};
  // a number of the same attribute that the rule writes out must not be all that is tried
  std::vector<i64> written;
  for (rewrite::pattern_graph const* g : {&r.source, &r.target})
    for (rewrite::pattern_node const& n : g->nodes)
      for (std::size_t i = 0; i < n.attr.size() && sampled; ++i)
        if (!n.attr[i].open && n.attr[i].factors.empty() && n.op->attr_name(static_cast<int>(i)) == attribute)
          written.push_back(n.attr[i].number);
  auto holds = [](std::vector<i64> const& all, i64 x) {
    return std::find(all.begin(), all.end(), x) != all.end();
  };
  for (i64 x : {3, 4, 6, 12})
    if (!written.empty() && !holds(written, x) && !holds(c, x)) {
      c.push_back(x);
      break;
    }
  return c;
}

/// What every parameter is tried with.
inline std::vector<std::vector<i64>> parameter_choices(rewrite::rule const& r, case_limits const& limits) {
  std::vector<std::vector<i64>> choices;
  for (std::size_t p = 0; p < r.parameters.size(); ++p) {
    std::vector<i64> c{1};
    if (r.parameters[p].kind == rewrite::parameter_kind::axis) {
      c.clear();
      for (int a = 0; a < limits.max_rank; ++a) c.push_back(a);
    } else if (r.parameters[p].kind == rewrite::parameter_kind::number) {
      c = number_choices(r, static_cast<int>(p));
    }
    choices.push_back(std::move(c));
  }
  return choices;
}

}  // namespace detail

}  // namespace tensorpar::prover
