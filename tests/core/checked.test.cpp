// tests/core/checked.test.cpp - sums and products of sizes against 128-bit arithmetic
#include <tensorpar/core/checked.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

using namespace tensorpar;

TEST_CASE("sums and products are exact, or the largest number where they would not fit") {
  __extension__ typedef __int128 wide;
  i64 const most = std::numeric_limits<i64>::max();
  std::mt19937_64 draw(1);
  std::vector<i64> interesting{0, 1, 2, 3, core::max_tensor_elements, core::max_device_bytes, most - 1, most, most / 2, most / 2 + 1,
                               3037000499, 3037000500};
  for (int k = 0; k < 60; ++k) interesting.push_back(static_cast<i64>(draw() >> (1 + draw() % 62)));
  for (i64 a : interesting)
    for (i64 b : interesting) {
      CHECK(core::saturating_add(a, b) == static_cast<i64>(std::min<wide>(static_cast<wide>(a) + b, most)));
      CHECK(core::saturating_mul(a, b) == static_cast<i64>(std::min<wide>(static_cast<wide>(a) * b, most)));
    }
  static_assert(core::saturating_mul(i64{1} << 62, 2) == std::numeric_limits<i64>::max());
}
