// tensorpar/core/config.hpp - the integer types every room speaks
#pragma once
#include <cstdint>

namespace tensorpar {

using i64 = std::int64_t;
using u64 = std::uint64_t;

/// Version of the library; plans and caches record it.
inline constexpr int version_major = 0;
inline constexpr int version_minor = 1;

}  // namespace tensorpar
