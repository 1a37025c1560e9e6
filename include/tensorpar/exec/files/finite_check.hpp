// tensorpar/exec/files/finite_check.hpp - numbers that are NaN or infinite are found before they are saved
// over ones that are not
#pragma once
#include <cmath>
#include <concepts>
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/op/core/spelling.hpp>
#include <vector>

namespace tensorpar::exec {

/// Which numbers a file may hold: finite ones alone, or NaN and infinity too (to look at what went wrong).
enum class saved_numbers { finite, any };

namespace detail {
/// Throws `error` for the first element that is not finite of a tensor `name` of this type, which is a
/// `what`. O(elements). An exact scalar's numbers all are.
template <class Scalar>
void require_finite(std::vector<Scalar> const& all, char const* what, std::string const& name,
                    shape const& type, char const* where) {
  if constexpr (std::floating_point<Scalar>)
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (std::isfinite(all[i])) continue;
      std::string at;
      i64 rest = static_cast<i64>(i);
      for (int d = type.rank - 1; d >= 0; rest /= type.d[d--].n)
        at = std::to_string(rest % type.d[d].n) + (at.empty() ? "" : ",") + at;
      throw error(std::string(what) + " '" + name + "' is " +
                      (std::isnan(all[i]) ? "nan"
                       : all[i] > 0       ? "inf"
                                          : "-inf") +
                      " at element [" + at + "]",
                  where, "finite numbers, or saved_numbers::any to save it nevertheless");
    }
}
}  // namespace detail

}  // namespace tensorpar::exec
