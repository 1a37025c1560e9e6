// tests/ranges/ranges.test.cpp - what comes through the door to range-v3 is there
#include <tensorpar/ranges/ranges.hpp>
#include <doctest/doctest.h>

#include <vector>

TEST_CASE("views compose, are lazy, and become containers") {
  int asked = 0;
  auto even = ranges::views::iota(0, 10) | ranges::views::filter([&](int i) { ++asked; return i % 2 == 0; }) |
                    ranges::views::transform([](int i) { return i * i; });
  CHECK(asked == 0);
  CHECK((even | ranges::to<std::vector>()) == std::vector<int>{0, 4, 16, 36, 64});
  CHECK(ranges::accumulate(ranges::views::iota(1, 5), 0) == 10);
  CHECK(asked > 0);
}
