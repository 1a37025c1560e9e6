// tensorpar/core/prime_field.hpp - integers modulo 2^61 - 1: arithmetic without rounding, so that two
// programs can be compared exactly
#pragma once
#include <bit>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/error.hpp>

namespace tensorpar {

namespace detail {
__extension__ typedef unsigned __int128 u128;
}

/// An element of the field of integers modulo p = 2^61 - 1 (a Mersenne prime). A regular value of 8 bytes,
/// always in [0, p). Laws: a commutative field; 1 / 0 is 0 by convention. Addition and multiplication are
/// exact, hence independent of order: a parallel sum equals the serial one bit for bit, and two different
/// polynomial programs agree on random inputs with probability at most degree / p (Schwartz 1980, Zippel
/// 1979).
struct prime_field {
  static constexpr u64 modulus = (u64{1} << 61) - 1;
  u64 v = 0;

  prime_field() = default;
  /// Any integer, negative ones included.
  constexpr prime_field(int n) : prime_field(static_cast<i64>(n)) {}
  constexpr prime_field(i64 n)
      : v(n >= 0 ? static_cast<u64>(n) % modulus : negated(static_cast<u64>(-(n + 1)) % modulus + 1)) {}
  /// Precondition: x < p.
  static constexpr prime_field raw(u64 x) { prime_field r; r.v = x; return r; }
  /// A number below 2^128 modulo p: 2^61 = 1, so its base 2^61 digits are added.
  static constexpr prime_field reduced(detail::u128 x) {
    u64 const lo = static_cast<u64>(x) & modulus, mid = static_cast<u64>(x >> 61) & modulus,
              hi = static_cast<u64>(x >> 122);
    u64 s = lo + mid + hi;
    s = (s & modulus) + (s >> 61);
    return raw(s >= modulus ? s - modulus : s);
  }
  /// A double is mantissa * 2^e; 2 has order 61, so 2^e is 2^(e mod 61), for negative e as well. Exact: x = y
  /// + z in the reals (without rounding) gives x = y + z here. Throws `error` for infinities and NaN.
  static constexpr prime_field from_double(double x) {
    u64 const bits = std::bit_cast<u64>(x), fraction = bits & ((u64{1} << 52) - 1);
    int const biased = static_cast<int>(bits >> 52 & 2047);
    if (biased == 2047)
      throw error("a prime field has no infinities and no NaN", "prime_field", "finite numbers");
    u64 const mantissa = biased ? fraction | u64{1} << 52 : fraction;
    int const e = ((biased ? biased : 1) - 1075) % 61, shift = e < 0 ? e + 61 : e;
    prime_field const r = reduced(static_cast<detail::u128>(mantissa) << shift);
    return bits >> 63 ? -r : r;
  }
  constexpr prime_field inverse() const {
    prime_field r = raw(1), base = *this;                            // Fermat: x^(p - 2)
    for (u64 e = modulus - 2; e; e >>= 1) {
      if (e & 1) r = r * base;
      base = base * base;
    }
    return r;
  }
  friend constexpr prime_field operator+(prime_field a, prime_field b) {
    u64 const s = a.v + b.v;
    return raw(s >= modulus ? s - modulus : s);
  }
  friend constexpr prime_field operator-(prime_field a, prime_field b) {
    return raw(a.v >= b.v ? a.v - b.v : a.v + modulus - b.v);
  }
  friend constexpr prime_field operator-(prime_field a) { return raw(negated(a.v)); }
  friend constexpr prime_field operator*(prime_field a, prime_field b) {
    detail::u128 const x = static_cast<detail::u128>(a.v) * b.v;
    u64 const s = (static_cast<u64>(x) & modulus) + static_cast<u64>(x >> 61);
    return raw(s >= modulus ? s - modulus : s);
  }
  friend constexpr prime_field operator/(prime_field a, prime_field b) { return a * b.inverse(); }
  constexpr prime_field& operator+=(prime_field b) { return *this = *this + b; }
  constexpr prime_field& operator-=(prime_field b) { return *this = *this - b; }
  constexpr prime_field& operator*=(prime_field b) { return *this = *this * b; }
  constexpr prime_field& operator/=(prime_field b) { return *this = *this / b; }
  friend constexpr bool operator==(prime_field const&, prime_field const&) = default;

 private:
  static constexpr u64 negated(u64 x) { return x == 0 || x == modulus ? 0 : modulus - x; }
};
static_assert(sizeof(prime_field) == 8);

/// A sum of products, reduced once per 63 of them: a product is below 2^122, so 63 and a folded rest fit in
/// 128 bits.
class field_sum {
  detail::u128 s_ = 0;
  int n_ = 0;

 public:
  static constexpr int batch = 63;
  constexpr void add_product(prime_field a, prime_field b) {
    s_ += static_cast<detail::u128>(a.v) * b.v;
    if (++n_ == batch) { s_ = fold(s_); n_ = 0; }
  }
  constexpr prime_field value() const { return prime_field::reduced(s_); }
  /// Congruent to x and below 2^68.
  static constexpr detail::u128 fold(detail::u128 x) { return (x & prime_field::modulus) + (x >> 61); }
};

}  // namespace tensorpar
