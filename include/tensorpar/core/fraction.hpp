// tensorpar/core/fraction.hpp - the fraction that a double was written as
#pragma once
#include <bit>
#include <tensorpar/core/prime_field.hpp>

namespace tensorpar {

/// over / under in lowest terms; under = 0: none.
struct fraction {
  i64 over = 0, under = 0;
  friend constexpr bool operator==(fraction const&, fraction const&) = default;
};

/// The fraction of which x is the nearest double: 1.0 / 3 gives 1/3, 0.1 gives 1/10, 0.375 gives 3/8. Of
/// fractions whose two numbers multiply to at most 2^40 there is at most one, since two of them lie more than
/// a rounding apart. None for numbers that no such fraction is nearest to (1 / sqrt(2.0), 1 - 0.9),
/// infinities and NaN. O(1): continued fractions, whose convergents it is among (Legendre).
constexpr fraction fraction_of(double x) {
  constexpr detail::u128 most = u64{1} << 40;
  u64 const bits = std::bit_cast<u64>(x), low = bits & ((u64{1} << 52) - 1);
  int const e = static_cast<int>(bits >> 52 & 2047) - 1075;
  if (low == 0 && e == -1075) return {0, 1};
  if (e < -52 - 41 || e > 40 - 52) return {};                            // below 2^-41, or 2^41 and more
  detail::u128 a = low | u64{1} << 52, b = detail::u128{1} << -e;        // |x| = a / b
  double const size = bits >> 63 ? -x : x;
  detail::u128 p = 1, q = 0, before_p = 0, before_q = 1;                 // convergents
  while (b) {
    detail::u128 const whole = a / b, rest = a % b;
    if (whole > most) return {};
    detail::u128 const next_p = whole * p + before_p, next_q = whole * q + before_q;
    if (next_p * next_q > most) return {};
    before_p = p, before_q = q, p = next_p, q = next_q;
    a = b, b = rest;
    if (p && static_cast<double>(static_cast<u64>(p)) / static_cast<double>(static_cast<u64>(q)) == size) {
      i64 const over = static_cast<i64>(p);
      return {bits >> 63 ? -over : over, static_cast<i64>(q)};
    }
  }
  return {};
}

}  // namespace tensorpar
