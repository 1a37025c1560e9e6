// tests/core/prime_field.test.cpp - field axioms, exact conversion from double, lazy sums
#include "support/dense.hpp"
#include <cmath>
#include <limits>
#include <tensorpar/core/prime_field.hpp>

using namespace tensorpar;

namespace {
constexpr u64 p = prime_field::modulus;

std::vector<prime_field> interesting() {
  std::vector<prime_field> r;
  for (u64 x : {u64{0}, u64{1}, u64{2}, u64{3}, p - 1, p - 2, p / 2, p / 2 + 1, u64{1} << 60, (u64{1} << 60) - 1, u64{1} << 32})
    r.push_back(prime_field::raw(x));
  std::mt19937_64 g(1);
  for (int i = 0; i < 20; ++i) { prime_field x; tests::draw(x, g); r.push_back(x); }
  return r;
}
/// The textbook product: double and add.
u64 slow_product(u64 a, u64 b) {
  u64 r = 0;
  for (; b; b >>= 1, a = (a + a) % p) if (b & 1) r = (r + a) % p;
  return r;
}
}  // namespace

TEST_CASE("prime_field is a field") {
  prime_field const zero = 0, one = 1;
  for (prime_field a : interesting()) {
    CHECK(a.v < p);
    CHECK(a + zero == a);
    CHECK(a * one == a);
    CHECK(a * zero == zero);
    CHECK(a - a == zero);
    CHECK(a + (-a) == zero);
    CHECK((-a).v < p);
    CHECK((a == zero || a * a.inverse() == one));
    for (prime_field b : interesting()) {
      CHECK((a + b).v == (a.v + b.v) % p);
      CHECK((a * b).v == slow_product(a.v, b.v));
      CHECK(a - b == a + (-b));
      CHECK(a * b == b * a);
      CHECK((b == zero || a / b * b == a));
      for (prime_field c : {interesting()[3], interesting()[15]}) {
        CHECK((a + b) + c == a + (b + c));
        CHECK((a * b) * c == a * (b * c));
        CHECK(a * (b + c) == a * b + a * c);
      }
    }
  }
  CHECK(zero.inverse() == zero);
  static_assert(std::regular<prime_field> && std::is_trivially_copyable_v<prime_field> && sizeof(prime_field) == 8);
  static_assert(prime_field(3) / prime_field(3) == prime_field(1));
}

TEST_CASE("integers of either sign") {
  CHECK(prime_field(-1) + prime_field(1) == prime_field(0));
  i64 const least = std::numeric_limits<i64>::min(), most = std::numeric_limits<i64>::max();
  CHECK(prime_field(least) + prime_field(most) == prime_field(-1));
  CHECK(prime_field(static_cast<i64>(p)) == prime_field(0));
  CHECK(prime_field(-static_cast<i64>(p)) == prime_field(0));
  CHECK(prime_field(most).v == 3);                             // 2^63 - 1 = 4 p + 3
}

TEST_CASE("a double converts exactly: mantissa times a power of two, of either sign") {
  auto f = prime_field::from_double;
  CHECK(f(0) == prime_field(0));
  CHECK(f(-0.0) == prime_field(0));
  CHECK(f(1) == prime_field(1));
  CHECK(f(-17) == prime_field(-17));
  CHECK(f(0.5) * prime_field(2) == prime_field(1));
  CHECK(f(0.375) * prime_field(8) == prime_field(3));
  CHECK(f(std::ldexp(1, 61)) == prime_field(1));
  CHECK(f(std::ldexp(1, -61)) == prime_field(1));
  CHECK(f(std::ldexp(5, 610 + 2)) == prime_field(20));
  std::mt19937_64 g(2);
  for (int i = 0; i < 2000; ++i) {
    i64 const a = static_cast<i64>(g() >> 12), b = static_cast<i64>(g() >> 40);
    int const e = static_cast<int>(g() % 900) - 450;
    CHECK(f(static_cast<double>(a)) == prime_field(a));
    CHECK(f(-static_cast<double>(b)) == prime_field(-b));
    double const x = std::ldexp(static_cast<double>(b), e), y = std::ldexp(static_cast<double>(b), e + 1);
    CHECK(f(x) + f(x) == f(y));
    CHECK(f(x) * f(static_cast<double>(a >> 30)) == f(x * static_cast<double>(a >> 30)));   // 24 + 22 bits: no rounding
  }
  double const tiny = std::numeric_limits<double>::denorm_min();
  CHECK(f(tiny) + f(tiny) == f(2 * tiny));
  CHECK(f(tiny * 4096) == f(tiny) * prime_field(4096));
  CHECK_THROWS_AS((void)f(std::numeric_limits<double>::infinity()), error);
  CHECK_THROWS_AS((void)f(std::nan("")), error);
}

TEST_CASE("a lazy sum of products equals the eager one") {
  std::mt19937_64 g(3);
  for (int n : {0, 1, 62, 63, 64, 126, 127, 1000}) {
    for (bool largest : {false, true}) {
      field_sum lazy;
      prime_field eager;
      for (int i = 0; i < n; ++i) {
        prime_field a = prime_field::raw(p - 1), b = a;
        if (!largest) { tests::draw(a, g); tests::draw(b, g); }
        lazy.add_product(a, b);
        eager += a * b;
      }
      CHECK(lazy.value() == eager);
    }
  }
}
