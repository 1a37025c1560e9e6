// tensorpar/prover/values/field_numbers.hpp - operators computed in a prime field, with unknown functions
// drawn at random
#pragma once
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/prime_field.hpp>
#include <tensorpar/prover/values/numbers.hpp>

namespace tensorpar::prover {

/// Numbers modulo 2^61 - 1. Two programs that differ as polynomials in their inputs, in unknown functions of
/// them and in their quotients agree on random inputs with a probability of about degree / 2^61 (Schwartz
/// 1980, Zippel 1979). `apply` is a fixed random function per name and seed; the maximum is that of the
/// representatives.
struct field_numbers {
  using value = prime_field;
  u64 seed = 1;
  value integer(i64 n) const { return value(n); }
  value real(double c) const { return value::from_double(c); }
  value plus(value a, value b) const { return a + b; }
  value times(value a, value b) const { return a * b; }
  value over(value a, value b) const { return a / b; }
  value maximum(value a, value b) const { return a.v < b.v ? b : a; }
  value apply(u64 f, value x) const {
    return value::raw(core::mix(core::mix(f ^ seed) ^ x.v) % value::modulus);
  }
};

/// A tensor of random elements; where it holds indices, below `rows`.
inline elements<prime_field> random_elements(shape const& s, auto& draw, u64 rows) {
  elements<prime_field> e;
  e.type = s;
  for (i64 i = 0; i < s.elements(); ++i) {
    u64 const high = static_cast<u64>(draw()), x = high << 32 | static_cast<u64>(draw());
    if (is_integer(s.type)) e.index.push_back(static_cast<i64>(x % rows));
    else e.data.push_back(prime_field::raw(x % prime_field::modulus));
  }
  return e;
}

}  // namespace tensorpar::prover
