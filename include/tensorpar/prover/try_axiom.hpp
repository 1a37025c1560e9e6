// tensorpar/prover/try_axiom.hpp - tries properties of operators on random shapes in the prime field
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/prover/axioms.hpp>
#include <tensorpar/prover/cases/instances.hpp>
#include <tensorpar/prover/values/evaluate.hpp>
#include <tensorpar/prover/values/field_numbers.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>

namespace tensorpar::prover {

/// What trying an axiom showed: how often its sides were defined and equal, and the first time that they were
/// not as it says.
struct axiom_trial {
  int equal = 0;
  int undefined = 0;                     // neither side, or one where the axiom says nothing of the other
  std::string counterexample;
};

namespace detail {

/// The values of a side's outputs; empty: it is not known what an operator computes.
template <number_algebra A, class T = typename A::value>
std::vector<elements<T>> run_values(A& a, rewrite::pattern_graph const& g, typed_pattern const& t,
                                    std::vector<elements<T>> const& tensors) {
  std::vector<std::vector<elements<T>>> have;
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    std::vector<elements<T>> in;
    for (rewrite::pattern_value v : g.nodes[i].in)
      in.push_back(rewrite::detail::value_of(v, tensors, have));
    have.push_back(evaluate(a, t.op[i], in, t.value[i]));
    if (have.back().empty()) return {};
  }
  std::vector<elements<T>> r;
  for (rewrite::pattern_value v : g.outputs)
    r.push_back(rewrite::detail::value_of(v, tensors, have));
  return r;
}

/// Shapes of a case's tensors with random extents: mostly those that must be equal are, now and then not.
inline std::vector<shape> random_types(rule_case const& c, int largest, auto& draw) {
  std::vector<i64> extent;
  for (int i = 0; i < c.extents.count(); ++i)
    extent.push_back(1 + static_cast<i64>(draw() % static_cast<unsigned>(largest)));
  bool const loose = draw() % 4 == 0;
  std::vector<shape> all = c.tensors;
  for (std::size_t x = 0; x < all.size(); ++x)
    for (int d = 0; d < all[x].rank; ++d)
      all[x].d[d] =
          dim(loose && draw() % 4 == 0 ? 1 + static_cast<i64>(draw() % static_cast<unsigned>(largest))
                                       : extent[idx(c.extents.of(static_cast<int>(x), d))]);
  return all;
}

}  // namespace detail

/// Tries what an axiom says on `wanted` random shapes on which its sides are defined. Deterministic for a
/// seed.
inline axiom_trial try_axiom(axiom const& a, int wanted, u64 seed,
                             rewrite::vocabulary const& words = rewrite::standard_vocabulary()) {
  axiom_trial t;
  rewrite::rule const r = rewrite::parse_rule(a.text, words, "axiom " + std::string(a.name));
  auto cases = cases_of(r, words);
  if (cases.empty()) {
    t.counterexample = "there are no ranks and axes for which both sides make sense";
    return t;
  }
  // where a side that is defined must make the other one so, its own ranks and axes count
  auto add_side = [&](rewrite::pattern_graph const& g) {
    rewrite::rule one = r;
    one.source = one.target = g;
    for (rule_case& c : cases_of(one, words)) cases.push_back(std::move(c));
  };
  if (a.kind != axiom_kind::guarded) add_side(r.source);
  if (a.kind == axiom_kind::both) add_side(r.target);
  std::mt19937 draw(static_cast<std::uint32_t>(seed));
  for (int n = 0; n < 100 * wanted && t.equal < wanted; ++n) {
    rule_case const& c = cases[draw() % cases.size()];
    auto const types = detail::random_types(c, 3, draw);
    std::vector<i64> parameter = c.at.parameter;
    for (std::size_t p = 0; p < parameter.size(); ++p) {
      if (r.parameters[p].kind == rewrite::parameter_kind::function)
        parameter[p] = static_cast<i64>(draw() % 64);
      parameter[p] = detail::drawn_number(parameter[p], draw);
    }
    auto const left = detail::type_pattern(r.source, types, parameter, words);
    auto const right = detail::type_pattern(r.target, types, parameter, words);
    auto where = [&] {
      std::string s;
      for (std::size_t x = 0; x < types.size(); ++x)
        s += (x ? ", " : "") + r.tensors[x] + " " + op::spell(types[x]);
      for (std::size_t p = 0; p < parameter.size(); ++p)
        s += ", " + r.parameters[p].name + " = " + std::to_string(parameter[p]);
      return s;
    };
    if (left.has_value() != right.has_value()) {
      bool const says = a.kind == axiom_kind::both || (a.kind == axiom_kind::forward && left);
      if (says) {
        t.counterexample = where() + ": only the " + (left ? "left" : "right") + " side is defined";
        return t;
      }
    }
    if (!left || !right) {
      ++t.undefined;
      continue;
    }
    field_numbers numbers{draw()};
    std::vector<elements<prime_field>> tensors;
    for (shape const& s : types) tensors.push_back(random_elements(s, draw, 4));
    auto const x = detail::run_values(numbers, r.source, *left, tensors),
               y = detail::run_values(numbers, r.target, *right, tensors);
    if (x.empty() || y.empty()) {
      t.counterexample = "it is not known what an operator computes";
      return t;
    }
    if (!same_extents(x[0].type, y[0].type) || x[0].data != y[0].data || x[0].index != y[0].index) {
      t.counterexample = where() + ": " + op::spell(x[0].type) + " and " + op::spell(y[0].type) + " differ";
      return t;
    }
    ++t.equal;
  }
  return t;
}

}  // namespace tensorpar::prover
