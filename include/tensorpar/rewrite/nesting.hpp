// tensorpar/rewrite/nesting.hpp - what a concatenation of many tensors is: one of two, over and over
#pragma once
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>

namespace tensorpar::rewrite {

inline constexpr int max_nested = 64;

/// For n = 3 .. 64: a concatenation of n operands is that of two, of the first (n + 1) / 2 and the others.
/// Shipped rules have patterns of two operands; with these they reach concatenations of any number. That is
/// what the operator means, so nothing has to be proved; the first ones are tried on devices' blocks
/// (tests/rewrite/nesting). Made once per program, O(n^2).
template <class = void>
std::vector<rule> const& nesting_rules() {
  static std::vector<rule> const all = [] {
    std::vector<rule> r;
    for (int n = 3; n <= max_nested; ++n) {
      auto const joined = [](int from, int to) {
        std::string s;
        for (int i = from; i < to; ++i) s += (i > from ? ", x" : "x") + std::to_string(i);
        return to - from == 1 ? s : "concat{axis=d}(" + s + ")";
      };
      int const half = (n + 1) / 2;
      r.push_back(
          parse_rule(joined(0, n) + " => concat{axis=d}(" + joined(0, half) + ", " + joined(half, n) + ")",
                     standard_vocabulary(), "nesting"));
      r.back().name = "concat of " + std::to_string(n) + ", nested";
    }
    return r;
  }();
  return all;
}
/// Precondition: 3 <= n <= max_nested.
inline rule const& nesting_rule(int n) { return nesting_rules()[idx(n - 3)]; }
/// By name, or nullptr. O(64).
inline rule const* find_nesting_rule(std::string_view name) {
  for (rule const& r : nesting_rules()) if (r.name == name) return &r;
  return nullptr;
}

#ifdef TENSORPAR_COMPILED
extern template std::vector<rule> const& nesting_rules<>();
#endif

}  // namespace tensorpar::rewrite
