// tensorpar/core/checked.hpp - sizes that never wrap around: sums and products that stop at the largest
// number
#pragma once
#include <limits>
#include <tensorpar/core/config.hpp>

namespace tensorpar::core {

/// A tensor has at most so many elements (2^48). So its bytes, and those of thousands like it, are numbers of
/// 64 bits.
inline constexpr i64 max_tensor_elements = i64{1} << 48;
/// A device holds at most so many bytes (2^62); what a saturating sum comes to lies above.
inline constexpr i64 max_device_bytes = i64{1} << 62;

/// a + b and a * b of sizes, or the largest number where that is less. Precondition: neither is negative.
constexpr i64 saturating_add(i64 a, i64 b) {
  return a > std::numeric_limits<i64>::max() - b ? std::numeric_limits<i64>::max() : a + b;
}
constexpr i64 saturating_mul(i64 a, i64 b) {
  if (a <= 0 || b <= 0) return 0;
  return a > std::numeric_limits<i64>::max() / b ? std::numeric_limits<i64>::max() : a * b;
}

}  // namespace tensorpar::core
