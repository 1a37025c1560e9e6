// tensorpar/prover/try_rule.hpp - tries a rule on random instances, every device computing its own blocks
#pragma once
#include <tensorpar/prover/cases/instances.hpp>
#include <tensorpar/prover/values/field_numbers.hpp>
#include <tensorpar/prover/values/parts.hpp>
#include <tensorpar/prover/values/real_numbers.hpp>
#include <tensorpar/rewrite/rule_text.hpp>

namespace tensorpar::prover {

/// What trying a rule showed. Values are those of a prime field, in which functions (exponentials and maxima
/// among them) are random ones. Where the sides differ there and functions took part, they are computed in
/// real numbers with the functions that they name: a difference refutes the rule; where there is none, or a
/// function is not known, this instance decides nothing.
struct trial {
  int instances = 0;                     // on which both sides were valid and equal
  int refused = 0;                       // where only the source was valid
  // on which both sides were valid and differ where functions are random ones alone
  int undecided = 0;
  // of these: on which the sides are equal in real numbers, up to rounding
  int agreed = 0;
  std::string counterexample;            // empty: none was found
  std::string open;                      // the first undecided instance, and what real numbers say of it
  std::string unknown;                   // an operator that `evaluate` does not know
};

namespace detail {

/// The field, and whether a random function stood for one that a rule names.
struct noted_field : field_numbers {
  bool stood_in = false;
  value maximum(value a, value b) {
    stood_in = true;
    return field_numbers::maximum(a, b);
  }
  value apply(u64 f, value x) {
    stood_in = true;
    return field_numbers::apply(f, x);
  }
};

template <number_algebra A> using sharding_of = sharding_elements<typename A::value>;

/// Runs one side. nullopt: it is not valid on these shardings.
template <number_algebra A>
std::optional<std::vector<sharding_of<A>>> run_side(A& a, rewrite::pattern_graph const& g,
                                                    typed_pattern const& t,
                                                  std::vector<sharding_of<A>> const& tensors,
                                                  std::string& unknown) {
  std::vector<std::vector<sharding_of<A>>> have;
  auto of = [&](rewrite::pattern_value v) -> sharding_of<A> const& {
    return rewrite::detail::value_of(v, tensors, have);
  };
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    std::vector<ir::parallel_shape> shapes;
    std::vector<sharding_of<A>> in;
    for (rewrite::pattern_value v : g.nodes[i].in) {
      in.push_back(of(v));
      shapes.push_back(in.back().where);
    }
    ir::parallel_result const out = ir::infer_parallel_shapes(t.op[i], shapes);
    if (!out.ok()) return std::nullopt;
    have.push_back(run_on_parts(a, t.op[i], in, out.out));
    if (have.back().empty()) {
      unknown = std::string(t.op[i].op->name);
      return std::nullopt;
    }
  }
  std::vector<sharding_of<A>> r;
  for (rewrite::pattern_value v : g.outputs) r.push_back(of(v));
  return r;
}

inline std::string spell(rewrite::rule const& r, rule_instance const& g) {
  std::string s;
  for (std::size_t x = 0; x < r.tensors.size(); ++x)
    s += (x ? ", " : "") + r.tensors[x] + " " + ir::spell(g.tensors[x]);
  for (std::size_t p = 0; p < r.parameters.size(); ++p) {
    bool const real = rewrite::detail::is_factor(r.source, static_cast<int>(p)) ||
                      rewrite::detail::is_factor(r.target, static_cast<int>(p));
    i64 const x = g.at.parameter[p];
    s += ", " + r.parameters[p].name + " = " +
         (real ? std::to_string(std::bit_cast<double>(x)) : std::to_string(x));
  }
  return s;
}

}  // namespace detail

/// Both sides of an instance. `difference`: how they differ; empty: they are equal. `by_functions`: in
/// values, where functions are random ones alone; `in_reals` is then what real numbers say. `unknown`: an
/// operator of which it is not known what it computes.
enum class real_verdict : int { equal, differ, not_finite, function_not_known };
struct compared_sides {
  bool source_valid = false, target_valid = false, by_functions = false;
  real_verdict in_reals = real_verdict::equal;
  std::string difference, unknown;
};

namespace detail {

/// How the sides compare in real numbers, under the functions that they name. Both are valid.
inline real_verdict compare_in_reals(rule_instance const& g, rewrite::rule const& r, u64 seed) {
  std::mt19937 draw(static_cast<std::uint32_t>(core::mix(seed)));
  real_numbers a;
  std::string unknown;
  std::vector<sharding_of<real_numbers>> tensors;
  for (ir::parallel_shape const& s : g.tensors) {
    sharding_of<real_numbers> t{s, {}};
    for (i64 p = 0; p < s.sum; ++p) t.part.push_back(random_reals(s.type, draw, 8));
    tensors.push_back(std::move(t));
  }
  auto const left = run_side(a, r.source, g.source, tensors, unknown),
             right = run_side(a, r.target, g.target, tensors, unknown);
  if (!left || !right || a.unknown) return real_verdict::function_not_known;
  bool finite = true;
  for (std::size_t k = 0; k < left->size(); ++k) {
    closeness const c = compare_reals(whole(a, (*left)[k]), whole(a, (*right)[k]));
    if (c == closeness::apart) return real_verdict::differ;
    finite = finite && c == closeness::close;
  }
  return finite ? real_verdict::equal : real_verdict::not_finite;
}
inline constexpr char const* said_of_reals[] = {"equal in real numbers", "other real numbers",
                                                "real numbers that are not finite decide nothing",
                                                "a function is not known in real numbers"};

}  // namespace detail

/// Runs both sides of an instance in the prime field, and in real numbers where the field decides nothing
/// (see `trial`).
inline compared_sides compare_sides(rule_instance const& g, rewrite::rule const& r, auto& draw) {
  compared_sides c;
  detail::noted_field a{{draw()}};
  std::vector<detail::sharding_of<field_numbers>> tensors;
  for (ir::parallel_shape const& s : g.tensors) {
    detail::sharding_of<field_numbers> t{s, {}};
    for (i64 p = 0; p < s.sum; ++p) t.part.push_back(random_elements(s.type, draw, 8));
    tensors.push_back(std::move(t));
  }
  auto const left = detail::run_side(a, r.source, g.source, tensors, c.unknown);
  c.source_valid = left.has_value();
  if (!left) return c;
  auto const right = detail::run_side(a, r.target, g.target, tensors, c.unknown);
  c.target_valid = right.has_value();
  if (!right) return c;
  for (std::size_t k = 0; k < left->size() && c.difference.empty(); ++k) {
    auto const &x = (*left)[k], &y = (*right)[k];
    std::string const which = left->size() > 1 ? "output " + std::to_string(k) + ": " : "";
    if (!(x.where == y.where)) c.difference = which + ir::spell(x.where) + " becomes " + ir::spell(y.where);
  }
  if (!c.difference.empty()) return c;
  for (std::size_t k = 0; k < left->size() && c.difference.empty(); ++k) {
    auto const u = whole(a, (*left)[k]), v = whole(a, (*right)[k]);
    std::string const which = left->size() > 1 ? "output " + std::to_string(k) + ": " : "";
    if (!(u.data == v.data && u.index == v.index))
      c.difference = which + "other values, " + ir::spell((*left)[k].where);
  }
  if (c.difference.empty() || !a.stood_in) return c;
  c.in_reals = detail::compare_in_reals(g, r, a.seed);
  c.by_functions = c.in_reals != real_verdict::differ;
  return c;
}

/// Tries a rule on random valid instances, until it is refuted, `wanted` of them are equal or as many
/// undecided. Deterministic for a seed. `max_draws`: how many draws at most, as some are not valid.
inline trial try_rule(rewrite::rule const& r, int wanted, u64 seed,
                      rewrite::vocabulary const& words = rewrite::standard_vocabulary(),
                      case_limits limits = {}, int max_draws = 0) {
  trial t;
  auto const cases = cases_of(r, words, limits);
  if (cases.empty()) {
    t.counterexample = "there are no ranks and axes for which both sides make sense";
    return t;
  }
  std::mt19937 draw(static_cast<std::uint32_t>(seed));
  if (max_draws == 0) max_draws = 200 * wanted;
  for (int n = 0; n < max_draws && t.instances < wanted && t.undecided < wanted; ++n) {
    auto const g = random_instance(r, cases[draw() % cases.size()], draw, words);
    if (!g) continue;
    compared_sides const c = compare_sides(*g, r, draw);
    t.unknown = c.unknown;
    if (!t.unknown.empty()) return t;
    t.refused += c.source_valid && !c.target_valid;
    if (!c.target_valid) continue;
    if (c.by_functions) {
      t.agreed += c.in_reals == real_verdict::equal;
      char const* const said = detail::said_of_reals[static_cast<int>(c.in_reals)];
      if (t.undecided++ == 0) t.open = detail::spell(r, *g) + ": " + c.difference + "; " + said;
      continue;
    }
    if (!c.difference.empty()) {
      t.counterexample = detail::spell(r, *g) + ": " + c.difference;
      return t;
    }
    ++t.instances;
  }
  return t;
}

}  // namespace tensorpar::prover
