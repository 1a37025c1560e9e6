// tests/support/effort.hpp - how many random cases a property is tried on
#pragma once

namespace effort {

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

/// All of them in optimised builds, a quarter under sanitizers: these look for bad memory accesses, which the first cases meet as well.
constexpr int cases(int all) { return slow ? (all + 3) / 4 : all; }

}  // namespace effort
