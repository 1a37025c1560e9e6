// tests/core/fraction.test.cpp - the fraction that a double was written as
#include <cmath>
#include <doctest/doctest.h>
#include <limits>
#include <numeric>
#include <random>
#include <tensorpar/core/fraction.hpp>

namespace fraction_test {
using namespace tensorpar;

static_assert(fraction_of(1.0 / 3) == fraction{1, 3});
static_assert(fraction_of(-0.1) == fraction{-1, 10});

TEST_CASE("a ratio of small numbers is found again, in lowest terms") {
  std::mt19937_64 draw(1);
  for (i64 n = 1; n <= 2000; ++n) CHECK(fraction_of(1.0 / static_cast<double>(n)) == fraction{1, n});
  for (int k = 0; k < 20000; ++k) {
    i64 const bits = static_cast<i64>(draw() % 40);
    i64 const p = static_cast<i64>(draw() % (u64{1} << bits)), q = 1 + static_cast<i64>(draw() % (u64{1} << (40 - bits)));
    i64 const d = std::gcd(p, q);
    fraction const f = fraction_of(static_cast<double>(p) / static_cast<double>(q));
    REQUIRE(f == fraction{p / d, q / d});
  }
}

TEST_CASE("what was written as a decimal is that decimal; what is dyadic is itself") {
  CHECK(fraction_of(0) == fraction{0, 1});
  CHECK(fraction_of(-0.0) == fraction{0, 1});
  CHECK(fraction_of(1e-5) == fraction{1, 100000});
  CHECK(fraction_of(0.9) == fraction{9, 10});
  CHECK(fraction_of(0.999) == fraction{999, 1000});
  CHECK(fraction_of(0.044715) == fraction{8943, 200000});
  CHECK(fraction_of(0.375) == fraction{3, 8});
  CHECK(fraction_of(33554432) == fraction{33554432, 1});
  CHECK(fraction_of(std::ldexp(1, -40)) == fraction{1, i64{1} << 40});
  CHECK(fraction_of(1e-8) == fraction{1, 100000000});
}

TEST_CASE("numbers that no small fraction is nearest to have none") {
  using limits = std::numeric_limits<double>;
  for (double x : {1 / std::sqrt(2.0), std::exp(1.0), 1 - 0.9, 1e-13, 1e13, std::ldexp(1, -41), std::ldexp(3, -40), limits::infinity(),
                   -limits::infinity(), limits::quiet_NaN(), limits::max(), limits::denorm_min(), std::nextafter(1.0 / 3, 1)})
    CHECK(fraction_of(x) == fraction{});
}

}  // namespace fraction_test
