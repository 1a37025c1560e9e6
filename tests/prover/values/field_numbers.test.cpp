// tests/prover/values/field_numbers.test.cpp - the field as numbers to compute operators with
#include <tensorpar/prover/values/field_numbers.hpp>
#include <doctest/doctest.h>

using namespace tensorpar;
using namespace tensorpar::prover;

static_assert(number_algebra<field_numbers>);

TEST_CASE("unknown functions are functions, differ by name and seed, and are no homomorphisms") {
  field_numbers a{1}, b{2};
  prime_field const x(3), y(4);
  CHECK(a.apply(7, x) == a.apply(7, x));
  CHECK(a.apply(7, x) != a.apply(8, x));
  CHECK(a.apply(7, x) != b.apply(7, x));
  CHECK(a.apply(7, a.plus(x, y)) != a.plus(a.apply(7, x), a.apply(7, y)));
}

TEST_CASE("the maximum is associative, commutative and idempotent; real numbers keep their sums") {
  field_numbers a;
  prime_field const x(30), y(4), z(11);
  CHECK(a.maximum(x, a.maximum(y, z)) == a.maximum(a.maximum(x, y), z));
  CHECK(a.maximum(x, y) == a.maximum(y, x));
  CHECK(a.maximum(x, x) == x);
  CHECK(a.plus(a.real(0.5), a.real(0.25)) == a.real(0.75));
  CHECK(a.times(a.over(x, y), y) == x);
  CHECK(a.integer(-1) == prime_field(0) - prime_field(1));
}
