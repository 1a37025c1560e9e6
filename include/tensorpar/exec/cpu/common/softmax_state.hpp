// tensorpar/exec/cpu/common/softmax_state.hpp - how states of a softmax in parts lie in memory, and how they
// are brought to one maximum
#pragma once
#include <limits>
#include <tensorpar/exec/device/kernel.hpp>
#include <tensorpar/exec/device/scalar.hpp>
#include <tensorpar/op/attention/parts.hpp>

namespace tensorpar::exec::detail {

/// What scores are shifted by, given the largest: by nothing where that is -infinity, so that their weights
/// are 0, not NaN.
template <class Scalar> constexpr Scalar shift_of(Scalar top) {
  if constexpr (!scalar_traits<Scalar>::exact)
    if (top < -std::numeric_limits<Scalar>::max()) return Scalar(0);
  return top;
}
/// e^(m - n), n no less than m. An exact scalar's scores are not shifted (see top_of), so that its states are
/// plain sums.
template <class Scalar> constexpr Scalar rescaling(Scalar m, Scalar n) {
  if constexpr (scalar_traits<Scalar>::exact) return Scalar(1);
  else return scalar_traits<Scalar>::exp(m - shift_of(n));
}
/// A block of states: one part and head of one batch element at a time.
template <class Scalar> struct state_block {
  // width: of the block's values; head: of one head's values
  i64 batches, parts, queries, width, head;
  /// Of a tensor of states with this many heads in all.
  state_block(op::tensor_block const& x, i64 heads)
      : batches(x.local[0]),
        parts(x.local[1]),
        queries(x.local[2]),
        width(x.local[3]),
        head(op::detail::value_width(x.global[3], heads) / heads) {
    width = width / (head + 2) * head;
  }
  constexpr i64 heads() const { return width / head; }
  /// Where the columns of a head begin.
  constexpr i64 at(i64 b, i64 p, i64 i, i64 h) const {
    return (((b * parts + p) * queries + i) * heads() + h) * (head + 2);
  }
  /// Calls visit(where its queries begin, batch element, part, head) for every head of every part.
  template <class Visit> void each_part_and_head(Visit&& visit) const {
    for (i64 b = 0; b < batches; ++b)
      for (i64 p = 0; p < parts; ++p)
        for (i64 h = 0; h < heads(); ++h) visit(b * queries * width + h * head, b, p, h);
  }
};
/// Which of n numbers that lie `step` apart is the largest, the first if there are several.
template <class Scalar> constexpr i64 place_of_top(Scalar const* x, i64 n, i64 step) {
  i64 at = 0;
  for (i64 i = 1; i < n; ++i) if (scalar_traits<Scalar>::greater(x[i * step], x[at * step])) at = i;
  return at;
}

}  // namespace tensorpar::exec::detail
