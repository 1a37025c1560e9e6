// tensorpar/prover/symbolic.hpp - properties of operators checked element by element over symbols, at small
// sizes
#pragma once
#include <tensorpar/prover/try_axiom.hpp>
#include <tensorpar/prover/z3.hpp>

namespace tensorpar::prover {

/// Real numbers as Z3's terms. Unknown functions are uninterpreted; all that is known of the exponential is
/// that it is positive, so its values are unknowns of their own, and that of a maximum is one of its
/// operands'.
class symbolic_numbers {
  z3::context& c_;
  std::map<unsigned, z3::expr> exponential_;   // by the operand's id in Z3
  std::vector<z3::expr> operand_;              // keeps the ids
  z3::expr_vector positive_;

  z3::expr exponential(z3::expr const& x) {
    if (x.is_app() && x.decl().decl_kind() == Z3_OP_ITE)
      return z3::ite(x.arg(0), exponential(x.arg(1)), exponential(x.arg(2)));
    auto const [it, fresh] =
        exponential_.emplace(x.id(), c_.real_const(("exp" + std::to_string(operand_.size())).c_str()));
    if (fresh) {
      operand_.push_back(x);
      positive_.push_back(it->second > 0);
    }
    return it->second;
  }

 public:
  using value = z3::expr;
  explicit symbolic_numbers(z3::context& c) : c_(c), positive_(c) {}
  z3::expr_vector const& positive() const { return positive_; }
  value integer(i64 n) { return c_.real_val(static_cast<std::int64_t>(n)); }
  value real(double x) { return c_.real_val(std::to_string(x).c_str()); }
  value plus(value const& a, value const& b) { return a + b; }
  value times(value const& a, value const& b) { return a * b; }
  value over(value const& a, value const& b) { return a / b; }
  value maximum(value const& a, value const& b) { return z3::ite(a < b, b, a); }
  value apply(u64 f, value const& x) {
    if (f == detail::exponential) return exponential(x);
    return c_.function(("f" + std::to_string(f)).c_str(), c_.real_sort(), c_.real_sort())(x);
  }
};

/// What a symbolic check showed.
struct symbolic_trial {
  int cases = 0;                         // in which all elements were shown to be equal
  std::string problem;                   // the first case in which they were not
};

/// Shows that the two sides of an axiom have equal elements whatever their operands' elements are, in its
/// cases in turn, with extents of one, two and three. At most `most` cases. O(cases * elements * what Z3
/// needs to compare two terms).
inline symbolic_trial check_symbolically(axiom const& a, int most = 8,
                                         rewrite::vocabulary const& words = rewrite::standard_vocabulary()) {
  symbolic_trial t;
  rewrite::rule const r = rewrite::parse_rule(a.text, words, "axiom " + std::string(a.name));
  z3::context c;
  symbolic_numbers numbers(c);
  auto const cases = cases_of(r, words);
  for (std::size_t attempt = 0; attempt < 20 * cases.size() && t.cases < most; ++attempt) {
    rule_case const& k = cases[attempt % cases.size()];
    std::vector<shape> types = k.tensors;
    i64 elements_in_all = 0;
    for (std::size_t x = 0; x < types.size(); ++x) {
      for (int d = 0; d < types[x].rank; ++d) {
        u64 const axis = static_cast<u64>(k.extents.of(static_cast<int>(x), d)) << 32;
        types[x].d[d] = dim(1 + static_cast<i64>(core::mix(axis + attempt) % 3));
      }
      elements_in_all += types[x].elements();
    }
    auto const left = detail::type_pattern(r.source, types, k.at.parameter, words);
    auto const right = detail::type_pattern(r.target, types, k.at.parameter, words);
    if (!left || !right || elements_in_all > 40) continue;
    std::vector<elements<z3::expr>> tensors;
    for (std::size_t x = 0; x < types.size(); ++x) {
      elements<z3::expr> e;
      e.type = types[x];
      for (i64 i = 0; i < types[x].elements(); ++i) {
        if (is_integer(types[x].type)) e.index.push_back(i % 2);
        else e.data.push_back(c.real_const((r.tensors[x] + std::to_string(i)).c_str()));
      }
      tensors.push_back(std::move(e));
    }
    auto const x = detail::run_values(numbers, r.source, *left, tensors),
               y = detail::run_values(numbers, r.target, *right, tensors);
    auto fail = [&](std::string why) { t.problem = z3_prover::describe(r, k) + ": " + why; };
    if (x.empty() || y.empty() || x[0].data.size() != y[0].data.size() || x[0].index != y[0].index) {
      fail("the sides have different elements");
      return t;
    }
    z3::params order(c);
    order.set("som", true);              // sums of monomials: equal polynomials become one term
    for (std::size_t i = 0; i < x[0].data.size(); ++i) {
      if (z3::eq((x[0].data[i] - y[0].data[i]).simplify(order), c.real_val(0))) continue;
      z3::solver s(c);
      z3::params p(c);
      p.set("rlimit", 2'000'000u);
      s.set(p);
      s.add(numbers.positive());
      s.add(x[0].data[i] != y[0].data[i]);
      if (s.check() != z3::unsat) {
        fail("element " + std::to_string(i) + " is not shown to be equal");
        return t;
      }
    }
    ++t.cases;
  }
  return t;
}

}  // namespace tensorpar::prover
