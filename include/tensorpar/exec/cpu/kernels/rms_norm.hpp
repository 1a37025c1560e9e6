// tensorpar/exec/cpu/kernels/rms_norm.hpp - kernels of RMS norm: every row of the last axis by itself
#pragma once
#include <tensorpar/exec/cpu/common/kernels.hpp>
#include <tensorpar/op/kinds/rms_norm.hpp>

namespace tensorpar::exec {

namespace detail {
/// 1 / sqrt(mean(x * x) + eps) over n elements.
template <class Scalar> Scalar inverse_rms(Scalar const* x, i64 n, double eps) {
  using traits = scalar_traits<Scalar>;
  Scalar const mean =
      sum_of<Scalar>(n, [x](i64 i) { return x[i] * x[i]; }) * traits::reciprocal(traits::from_integer(n));
  return traits::rsqrt(mean + constant_of<Scalar>(eps));
}
}  // namespace detail

template <class Scalar> struct kernel<Scalar, rmsnorm> {
  static void run(kernel_call const& c, rmsnorm const& op) {
    i64 const e = detail::last_extent(c.out_block[0]), rows = detail::row_count(c.out_block[0]);
    Scalar const* gamma = detail::operand<Scalar>(c, 1);
    for (i64 r = 0; r < rows; ++r) {
      Scalar const* x = detail::operand<Scalar>(c, 0) + r * e;
      Scalar* y = detail::result<Scalar>(c) + r * e;
      Scalar const f = detail::inverse_rms(x, e, op.eps);
      for (i64 i = 0; i < e; ++i) y[i] = x[i] * f * gamma[i];
    }
  }
};
template <class Scalar> struct kernel<Scalar, rmsnorm_grad_x> {
  static void run(kernel_call const& c, rmsnorm_grad_x const& op) {
    using traits = scalar_traits<Scalar>;
    i64 const e = detail::last_extent(c.out_block[0]), rows = detail::row_count(c.out_block[0]);
    Scalar const* gamma = detail::operand<Scalar>(c, 2);
    Scalar const share = traits::reciprocal(traits::from_integer(e));
    for (i64 r = 0; r < rows; ++r) {
      Scalar const *d = detail::operand<Scalar>(c, 0) + r * e, *x = detail::operand<Scalar>(c, 1) + r * e;
      Scalar* y = detail::result<Scalar>(c) + r * e;
      Scalar const f = detail::inverse_rms(x, e, op.eps);
      Scalar const q = detail::sum_of<Scalar>(e, [&](i64 i) { return d[i] * gamma[i] * (x[i] * f); }) * share;
      for (i64 i = 0; i < e; ++i) y[i] = f * (d[i] * gamma[i] - x[i] * f * q);
    }
  }
};
template <class Scalar> struct kernel<Scalar, rmsnorm_grad_gamma> {
  static void run(kernel_call const& c, rmsnorm_grad_gamma const& op) {
    i64 const e = detail::last_extent(c.in_block[0]), rows = detail::row_count(c.in_block[0]);
    Scalar* y = detail::result<Scalar>(c);
    for (i64 i = 0; i < e; ++i) y[i] = Scalar(0);
    for (i64 r = 0; r < rows; ++r) {
      Scalar const *d = detail::operand<Scalar>(c, 0) + r * e, *x = detail::operand<Scalar>(c, 1) + r * e;
      Scalar const f = detail::inverse_rms(x, e, op.eps);
      for (i64 i = 0; i < e; ++i) y[i] += d[i] * (x[i] * f);
    }
  }
};

}  // namespace tensorpar::exec
