// tensorpar/rewrite/rules/standard_rules.hpp - the rules that come with the library: made, proved and tried
// by programs
#pragma once
#include <optional>
#include <tensorpar/rewrite/rule_parser.hpp>
#include <tensorpar/rewrite/rules/activated.hpp>
#include <tensorpar/rewrite/rules/attention.hpp>
#include <tensorpar/rewrite/rules/attentionsharded.hpp>
#include <tensorpar/rewrite/rules/batchedmatmul.hpp>
#include <tensorpar/rewrite/rules/concat.hpp>
#include <tensorpar/rewrite/rules/convolution.hpp>
#include <tensorpar/rewrite/rules/elementwise.hpp>
#include <tensorpar/rewrite/rules/embedding.hpp>
#include <tensorpar/rewrite/rules/heads.hpp>
#include <tensorpar/rewrite/rules/linear.hpp>
#include <tensorpar/rewrite/rules/matmul.hpp>
#include <tensorpar/rewrite/rules/matmulsharded.hpp>
#include <tensorpar/rewrite/rules/normalisation.hpp>
#include <tensorpar/rewrite/rules/pooling.hpp>
#include <tensorpar/rewrite/rules/spreads.hpp>
#include <tensorpar/rewrite/rules/sum.hpp>
#include <tensorpar/rewrite/rules/transpose.hpp>

namespace tensorpar::rewrite {

/// All of them, as they were proved. Z3 is not needed to use them.
inline std::vector<shipped_rule> shipped_rules() {
  std::vector<shipped_rule> all;
  auto take = [&](auto const& list) { all.insert(all.end(), std::begin(list), std::end(list)); };
  take(rules::spreads);
  take(rules::element_wise);
  take(rules::concat);
  take(rules::transpose);
  take(rules::linear);
  take(rules::matmul);
  take(rules::matmul_sharded);
  take(rules::batched_matmul);
  take(rules::convolution);
  take(rules::pooling);
  take(rules::embedding);
  take(rules::sum);
  take(rules::heads);
  take(rules::normalisation);
  take(rules::attention);
  take(rules::attention_sharded);
  take(rules::activated);
  return all;
}
/// The rule read from right to left; nullopt where its target does not bind what its source names.
inline std::optional<rule> reversed(rule r) {
  std::swap(r.source, r.target);
  if (!r.name.empty()) r.name += ", reversed";
  if (!problems(r).empty()) return std::nullopt;
  return r;
}
/// The same, ready to be applied; `name` is set. Read once per program.
template <class = void>
std::vector<rule> const& standard_rules() {
  static std::vector<rule> const all = [] {
    std::vector<rule> r;
    for (shipped_rule const& s : shipped_rules()) {
      r.push_back(parse_rule(s.text, standard_vocabulary(), "rule " + std::string(s.name)));
      r.back().name = s.name;
    }
    return r;
  }();
  return all;
}
/// The shipped rules in both directions.
template <class = void>
std::vector<rule> const& rules_both_ways() {
  static std::vector<rule> const all = [] {
    std::vector<rule> r;
    for (rule const& one : standard_rules()) {
      r.push_back(one);
      if (auto back = reversed(one)) r.push_back(std::move(*back));
    }
    return r;
  }();
  return all;
}

#ifdef TENSORPAR_COMPILED
extern template std::vector<rule> const& standard_rules<>();
extern template std::vector<rule> const& rules_both_ways<>();
#endif

}  // namespace tensorpar::rewrite
