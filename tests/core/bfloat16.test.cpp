// tests/core/bfloat16.test.cpp - every bfloat16 there is, and how floats are rounded to one
#include <tensorpar/core/bfloat16.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

using namespace tensorpar;

namespace {
bfloat16 of_bits(unsigned bits) {
  bfloat16 r;
  r.bits = static_cast<std::uint16_t>(bits);
  return r;
}
}  // namespace

TEST_CASE("every bfloat16 is a float, which is rounded to itself") {
  for (unsigned bits = 0; bits < 65536; ++bits) {
    float const x = of_bits(bits);
    if (std::isnan(x)) CHECK(std::isnan(static_cast<float>(bfloat16(x))));
    else if (bfloat16(x).bits != bits) FAIL_CHECK(bits);
  }
}

TEST_CASE("floats are rounded to the nearest of their two neighbours, ties to the even one") {
  std::mt19937 draw(1);
  for (int i = 0; i < 200000; ++i) {
    std::uint32_t const u = static_cast<std::uint32_t>(draw());
    float x;
    std::memcpy(&x, &u, sizeof x);
    if (!std::isfinite(x)) continue;
    unsigned const below = u >> 16;                        // towards zero
    float const lo = of_bits(below), hi = of_bits(below + 1);
    double const to_lo = std::abs(static_cast<double>(x) - lo),
                 to_hi = std::isinf(hi) ? std::abs(std::ldexp(1.0, 128) - std::abs(static_cast<double>(x)))
                                        : std::abs(static_cast<double>(x) - hi);
    unsigned const want = to_lo < to_hi || (to_lo == to_hi && below % 2 == 0) ? below : below + 1;
    if (bfloat16(x).bits != want) FAIL_CHECK(x);
  }
  CHECK(std::isinf(static_cast<float>(bfloat16(std::numeric_limits<float>::infinity()))));
  CHECK(std::isnan(static_cast<float>(bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  static_assert(bfloat16(1.00390625f).bits == bfloat16(1.0f).bits);          // a tie
  static_assert(bfloat16(1.01171875f).bits == bfloat16(1.015625f).bits);     // the tie above it
}

TEST_CASE("over all draws a float is rounded to itself on average, to its two neighbours alone") {
  std::mt19937 draw(2);
  for (int i = 0; i < 60; ++i) {
    std::uint32_t const u = static_cast<std::uint32_t>(draw()) & (i % 5 ? 0xffffffffu : 0xffff0000u);
    float x;
    std::memcpy(&x, &u, sizeof x);
    if (!std::isfinite(x)) continue;
    int up = 0;
    for (unsigned d = 0; d < 65536; ++d) {
      unsigned const got = bfloat16::drawn(x, static_cast<std::uint16_t>(d)).bits;
      if (got != u >> 16 && got != (u >> 16) + 1) FAIL_CHECK(x);
      up += got != u >> 16;
    }
    CHECK(up == static_cast<int>(u & 0xffff));              // of 65,536: the distance from the lower neighbour
  }
  for (unsigned d : {0u, 1u, 0xffffu}) {
    auto const drawn = [&](float x) { return static_cast<float>(bfloat16::drawn(x, static_cast<std::uint16_t>(d))); };
    CHECK(drawn(std::numeric_limits<float>::infinity()) == std::numeric_limits<float>::infinity());
    CHECK(drawn(-std::numeric_limits<float>::infinity()) == -std::numeric_limits<float>::infinity());
    CHECK(std::isnan(drawn(std::numeric_limits<float>::quiet_NaN())));
    CHECK(drawn(0.0f) == 0.0f);
    CHECK(drawn(1.5f) == 1.5f);
  }
}

TEST_CASE("arithmetic is that of floats") {
  bfloat16 a(3), b(0.0078125f);
  static_assert(std::is_same_v<decltype(a + b), float> && std::is_same_v<computed<bfloat16>, float>);
  CHECK(a + b == 3.0078125f);
  a += b;
  CHECK(static_cast<float>(a) == 3.0f);                    // half of the distance to the next number, and a tie
}
