// tensorpar/prover/values/real_numbers.hpp - operators computed in floating point with the functions that
// they name
#pragma once
#include <algorithm>
#include <cmath>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/prover/values/numbers.hpp>

namespace tensorpar::prover {

/// Numbers of 53 bits, with functions as operators define them. Where an operator names a function that is
/// not known here, `unknown` is set and results mean nothing.
struct real_numbers {
  using value = double;
  bool unknown = false;
  value integer(i64 n) const { return static_cast<double>(n); }
  value real(double c) const { return c; }
  value plus(value a, value b) const { return a + b; }
  value times(value a, value b) const { return a * b; }
  value over(value a, value b) const { return a / b; }
  value maximum(value a, value b) const { return std::max(a, b); }
  value apply(u64 f, value x) {
    if (f == core::name_hash(relu::name)) return std::max(x, 0.0);
    if (f == core::name_hash(sigmoid::name)) return 1 / (1 + std::exp(-x));
    if (f == core::name_hash(tanh_::name)) return std::tanh(x);
    if (f == core::name_hash(gelu::name))
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)));
    if (f == core::name_hash("exp")) return std::exp(x);
    if (f == core::name_hash("1/sqrt")) return 1 / std::sqrt(x);
    unknown = true;
    return x;
  }
};

/// A tensor of random numbers in [-2, 2); where it holds indices, below `rows`.
inline elements<double> random_reals(shape const& s, auto& draw, u64 rows) {
  elements<double> e;
  e.type = s;
  for (i64 i = 0; i < s.elements(); ++i) {
    u64 const x = static_cast<u64>(draw());
    if (is_integer(s.type)) e.index.push_back(static_cast<i64>(x % rows));
    else e.data.push_back(static_cast<double>(x % 4096) / 1024 - 2);
  }
  return e;
}

/// How two tensors compare: apart by more than rounding, or not; or not known, since a number is infinite or
/// none.
enum class closeness : int { close, apart, not_finite };
inline closeness compare_reals(elements<double> const& a, elements<double> const& b) {
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < a.data.size(); ++i) {
    if (!std::isfinite(a.data[i]) || !std::isfinite(b.data[i])) return closeness::not_finite;
    largest = std::max({largest, std::abs(a.data[i]), std::abs(b.data[i])});
    difference = std::max(difference, std::abs(a.data[i] - b.data[i]));
  }
  return a.index == b.index && difference <= 1e-9 * largest ? closeness::close : closeness::apart;
}

}  // namespace tensorpar::prover
