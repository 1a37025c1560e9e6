// tensorpar/exec/cpu/kernels/loss.hpp - kernels of losses: a device's share of a mean over all logical
// elements
#pragma once
#include <tensorpar/exec/cpu/kernels/reduction.hpp>
#include <tensorpar/op/kinds/loss.hpp>

namespace tensorpar::exec {

namespace detail {
/// 1 / (number of elements of the logical tensor).
template <class Scalar> Scalar share_of(op::tensor_block const& b) {
  return scalar_traits<Scalar>::reciprocal(scalar_traits<Scalar>::from_integer(b.logical_elements()));
}
}  // namespace detail

template <class Scalar> struct kernel<Scalar, cross_entropy> {
  static void run(kernel_call const& c, cross_entropy const&) {
    i64 const e = detail::last_extent(c.in_block[0]), rows = detail::row_count(c.in_block[0]);
    std::int32_t const* label = detail::operand<std::int32_t>(c, 1);
    Scalar const* logits = detail::operand<Scalar>(c, 0);
    Scalar const s = detail::sum_of<Scalar>(rows, [&](i64 r) {
      Scalar const* x = logits + r * e;
      return detail::log_sum_exp(x, e) - x[detail::checked_index(label[r], e, "label", c)];
    });
    *detail::result<Scalar>(c) = s * detail::share_of<Scalar>(c.in_block[1]);
  }
};
template <class Scalar> struct kernel<Scalar, cross_entropy_grad> {
  static void run(kernel_call const& c, cross_entropy_grad const&) {
    i64 const e = detail::last_extent(c.in_block[1]), rows = detail::row_count(c.in_block[1]);
    std::int32_t const* label = detail::operand<std::int32_t>(c, 2);
    Scalar const f = *detail::operand<Scalar>(c, 0) * detail::share_of<Scalar>(c.in_block[2]);
    for (i64 r = 0; r < rows; ++r) {
      Scalar* y = detail::result<Scalar>(c) + r * e;
      detail::softmax_row(detail::operand<Scalar>(c, 1) + r * e, y, e);
      y[detail::checked_index(label[r], e, "label", c)] -= Scalar(1);
      for (i64 i = 0; i < e; ++i) y[i] = y[i] * f;
    }
  }
};

template <class Scalar> struct kernel<Scalar, mean_squared_error> {
  static void run(kernel_call const& c, mean_squared_error const&) {
    Scalar const *a = detail::operand<Scalar>(c, 0), *b = detail::operand<Scalar>(c, 1);
    i64 const n = c.in_block[0].elements();
    Scalar const s = detail::sum_of<Scalar>(n, [a, b](i64 i) { return (a[i] - b[i]) * (a[i] - b[i]); });
    *detail::result<Scalar>(c) = s * detail::share_of<Scalar>(c.in_block[0]);
  }
};
template <class Scalar> struct kernel<Scalar, mean_squared_error_grad> {
  static void run(kernel_call const& c, mean_squared_error_grad const&) {
    Scalar const *a = detail::operand<Scalar>(c, 1), *b = detail::operand<Scalar>(c, 2);
    Scalar const f = *detail::operand<Scalar>(c, 0) * Scalar(2) * detail::share_of<Scalar>(c.in_block[1]);
    Scalar* y = detail::result<Scalar>(c);
    i64 const n = c.out_block[0].elements();
    for (i64 i = 0; i < n; ++i) y[i] = (a[i] - b[i]) * f;
  }
};

}  // namespace tensorpar::exec
