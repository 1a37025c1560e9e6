// tensorpar/core/infinity.hpp - the seconds, bytes and prices that nothing exceeds
#pragma once
#include <limits>

namespace tensorpar {

/// Of what cannot be: a choice that is not allowed, a limit that nobody set.
inline constexpr double infinity = std::numeric_limits<double>::infinity();

}  // namespace tensorpar
