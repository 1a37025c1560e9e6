// tensorpar/rewrite/try_rule.hpp - tries a rule on random instances, every device computing its own blocks
#pragma once
#include <tensorpar/rewrite/field_numbers.hpp>
#include <tensorpar/rewrite/instances.hpp>
#include <tensorpar/rewrite/parts.hpp>
#include <tensorpar/rewrite/rule_text.hpp>

namespace tensorpar {

/// What trying a rule showed.
struct trial {
  int instances = 0;                     // on which both sides were valid and equal
  int refused = 0;                       // where only the source was valid
  std::string counterexample;            // empty: none was found
  std::string unknown;                   // an operator that `evaluate` does not know
};

namespace detail {

using field_tensor = spread_elements<prime_field>;

/// Runs one side. nullopt: it is not valid on these spreads.
inline std::optional<std::vector<field_tensor>> run_side(field_numbers& a, pattern_graph const& g, typed_pattern const& t,
                                                         std::vector<field_tensor> const& tensors, std::string& unknown) {
  std::vector<std::vector<field_tensor>> have;
  auto of = [&](pattern_value v) -> field_tensor const& { return value_of(v, tensors, have); };
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    std::vector<parallel_shape> shapes;
    std::vector<field_tensor> in;
    for (pattern_value v : g.nodes[i].in) {
      in.push_back(of(v));
      shapes.push_back(in.back().where);
    }
    parallel_result const out = infer_parallel_shapes(t.op[i], shapes);
    if (!out.ok()) return std::nullopt;
    have.push_back(run_on_parts(a, t.op[i], in, out.out));
    if (have.back().empty()) {
      unknown = std::string(t.op[i].op->name);
      return std::nullopt;
    }
  }
  std::vector<field_tensor> r;
  for (pattern_value v : g.outputs) r.push_back(of(v));
  return r;
}

inline std::string spell(rule const& r, rule_instance const& g) {
  std::string s;
  for (std::size_t x = 0; x < r.tensors.size(); ++x) s += (x ? ", " : "") + r.tensors[x] + " " + tensorpar::spell(g.tensors[x]);
  for (std::size_t p = 0; p < r.parameters.size(); ++p) s += ", " + r.parameters[p].name + " = " + std::to_string(g.at.parameter[p]);
  return s;
}

}  // namespace detail

/// Runs both sides of an instance in the prime field. Empty: equal; else how they differ. `valid` says on which sides it was valid.
inline std::string compare_sides(rule_instance const& g, rule const& r, auto& draw, bool& source_valid, bool& target_valid,
                                 std::string& unknown) {
  field_numbers a{draw()};
  std::vector<detail::field_tensor> tensors;
  for (parallel_shape const& s : g.tensors) {
    detail::field_tensor t{s, {}};
    for (i64 p = 0; p < s.sum; ++p) t.part.push_back(random_elements(s.type, draw, 8));
    tensors.push_back(std::move(t));
  }
  auto const left = detail::run_side(a, r.source, g.source, tensors, unknown);
  source_valid = left.has_value();
  target_valid = false;
  if (!left) return {};
  auto const right = detail::run_side(a, r.target, g.target, tensors, unknown);
  target_valid = right.has_value();
  if (!right) return {};
  for (std::size_t k = 0; k < left->size(); ++k) {
    auto const &x = (*left)[k], &y = (*right)[k];
    std::string const which = left->size() > 1 ? "output " + std::to_string(k) + ": " : "";
    if (!(x.where == y.where)) return which + spell(x.where) + " becomes " + spell(y.where);
    auto const u = whole(a, x), v = whole(a, y);
    if (!(u.data == v.data && u.index == v.index)) return which + "other values, " + spell(x.where);
  }
  return {};
}

/// Tries a rule on `wanted` random valid instances. Deterministic for a seed. `most_draws`: how many draws at most, as some are not valid.
inline trial try_rule(rule const& r, int wanted, u64 seed, vocabulary const& words = standard_vocabulary(), case_limits limits = {},
                      int most_draws = 0) {
  trial t;
  auto const cases = cases_of(r, words, limits);
  if (cases.empty()) {
    t.counterexample = "there are no ranks and axes for which both sides make sense";
    return t;
  }
  std::mt19937 draw(static_cast<std::uint32_t>(seed));
  if (most_draws == 0) most_draws = 200 * wanted;
  for (int n = 0; n < most_draws && t.instances < wanted; ++n) {
    rule_case const& c = cases[draw() % cases.size()];
    auto const g = random_instance(r, c, draw, words);
    if (!g) continue;
    bool left = false, right = false;
    std::string const difference = compare_sides(*g, r, draw, left, right, t.unknown);
    if (!t.unknown.empty()) return t;
    if (left && !right) ++t.refused;
    if (!right) continue;
    if (!difference.empty()) {
      t.counterexample = detail::spell(r, *g) + ": " + difference;
      return t;
    }
    ++t.instances;
  }
  return t;
}

}  // namespace tensorpar
