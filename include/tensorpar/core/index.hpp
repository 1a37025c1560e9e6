// tensorpar/core/index.hpp - numbers of things as indices of containers
#pragma once
#include <cstddef>

namespace tensorpar {

/// A number that is not negative, as an index or a count of elements: `ranks[idx(r)]` for an int r. The
/// library's own numbers are signed, since their differences may be negative. Precondition: i >= 0. O(1).
template <class Number>
[[gnu::always_inline]] constexpr std::size_t idx(Number i) {
  return static_cast<std::size_t>(i);
}

}  // namespace tensorpar
