// tests/support/effort.hpp - how many random cases a property is tried on
#pragma once
#include <cstdlib>

namespace test_effort {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool slow = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool slow = true;
#else
inline constexpr bool slow = false;
#endif
#else
inline constexpr bool slow = false;
#endif

/// How many times as many cases are wanted: the environment's TENSORPAR_TEST_EFFORT, from 1 to 1,000; else 1.
inline int wanted() {
  char const* const text = std::getenv("TENSORPAR_TEST_EFFORT");
  int const n = text ? std::atoi(text) : 1;
  return n < 1 ? 1 : n > 1000 ? 1000 : n;
}
/// All of them in optimised builds, a quarter under sanitizers: these look for bad memory accesses, which the first cases meet as well.
inline int cases(int all) { return (slow ? (all + 3) / 4 : all) * wanted(); }

}  // namespace test_effort
