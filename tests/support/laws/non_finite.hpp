// tests/support/laws/non_finite.hpp - the law of NaN and infinity: one policy's results have them where another's do
#pragma once
#include "../../exec/each_call.hpp"
#include "../effort.hpp"
#include <cmath>
#include <tensorpar/op/core/spelling.hpp>

namespace tests {

using operands_of_double = std::vector<dense<double>>;

/// 0: finite, 1: +infinity, 2: -infinity, 3: NaN.
template <class Real> int kind_of(Real x) { return std::isnan(x) ? 3 : std::isinf(x) ? (x > 0 ? 1 : 2) : 0; }

template <class Real> std::vector<dense<Real>> as(operands_of_double const& x) {
  std::vector<dense<Real>> r;
  for (auto const& t : x) r.push_back({t.block, {t.real.begin(), t.real.end()}, t.index});
  return r;
}
/// What results are, element by element.
template <class Real> std::string kinds_of(std::vector<dense<Real>> const& y) {
  std::string r;
  for (auto const& t : y) {
    for (Real e : t.real) r += "f+-N"[kind_of(e)];
    r += ' ';
  }
  return r;
}
template <class Policy>
std::string kinds_by(tensorpar::op::any_op const& o, operands_of_double const& x, tensorpar::exec::step_state const& state) {
  return kinds_of(run_whole<Policy>(o, as<typename Policy::scalar_type>(x), state));
}

/// Calls visit(operator, operands with one number replaced, state, which operand, which element) for every operator, every operand of real
/// numbers, NaN and both infinities, at drawn elements.
template <class Reference, class Visit> void each_bad_call(int elements, u64 seed, Visit&& visit) {
  std::mt19937_64 r(seed);
  each_call<Reference>([&](tensorpar::op::any_op const& o, operands_of_double operands, tensorpar::exec::step_state const& state) {
    for (std::size_t k = 0; k < operands.size(); ++k) {
      std::size_t const n = operands[k].real.size();
      for (std::size_t turn = 0; turn < std::min(n, static_cast<std::size_t>(elements)); ++turn) {
        std::size_t const e = turn == 0 ? 0 : turn == 1 ? n - 1 : r() % n;
        double const before = operands[k].real[e];
        for (double bad : {static_cast<double>(NAN), static_cast<double>(INFINITY), -static_cast<double>(INFINITY)}) {
          operands[k].real[e] = bad;
          visit(o, operands, state, k, e);
        }
        operands[k].real[e] = before;
      }
    }
  });
}

/// At drawn elements of every operand of every operator. Reference: over double.
template <tensorpar::exec::compute_policy Policy, tensorpar::exec::compute_policy Reference>
void check_non_finite(int elements = test_effort::cases(3)) {
  int tried = 0;
  each_bad_call<Reference>(elements, 3, [&](tensorpar::op::any_op const& o, operands_of_double const& x,
                                            tensorpar::exec::step_state const& state, std::size_t k, std::size_t e) {
    std::string const want = kinds_by<Reference>(o, x, state), got = kinds_by<Policy>(o, x, state);
    CHECK_MESSAGE(got == want, (tensorpar::op::spell(o) + " with " + std::to_string(x[k].real[e]) + " at element " + std::to_string(e)
                                + " of operand " + std::to_string(k) + ": " + got + "instead of " + want));
    ++tried;
  });
  CHECK(tried > 300 * elements);
}

}  // namespace tests
