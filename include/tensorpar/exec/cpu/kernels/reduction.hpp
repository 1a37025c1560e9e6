// tensorpar/exec/cpu/kernels/reduction.hpp - kernels of softmax and layer norm: every row of the last axis by
// itself
#pragma once
#include <tensorpar/exec/cpu/common/kernels.hpp>
#include <tensorpar/op/kinds/reduction.hpp>

namespace tensorpar::exec {

namespace detail {
/// What is subtracted before exp. Over the reals the maximum, against overflow; an exact scalar has no
/// overflow, and its stand-in for exp does not obey the law that would make the subtraction harmless.
template <class Scalar> Scalar top_of(Scalar const* x, i64 n) {
  if constexpr (scalar_traits<Scalar>::exact) return Scalar(0);
  else return largest_of(x[0], [x, n](auto&& visit) { for (i64 i = 1; i < n; ++i) visit(x[i]); });
}
/// The same, but NaN may be passed over: what follows is exp(x - top), which is NaN then.
template <class Scalar> Scalar shift_of_row(Scalar const* x, i64 n) {
  if constexpr (!std::floating_point<Scalar>) {
    return top_of(x, n);
  } else {
    constexpr i64 lanes = 4;
    Scalar top[lanes] = {x[0], x[0], x[0], x[0]};
    i64 i = 1;
    for (; i + lanes <= n; i += lanes)
      for (i64 j = 0; j < lanes; ++j) top[j] = x[i + j] > top[j] ? x[i + j] : top[j];
    for (; i < n; ++i) top[0] = x[i] > top[0] ? x[i] : top[0];
    for (i64 j = 1; j < lanes; ++j) top[0] = top[j] > top[0] ? top[j] : top[0];
    return top[0];
  }
}
/// y = exp(x) / sum(exp(x)) over n elements, in place allowed.
template <class Scalar> void softmax_row(Scalar const* x, Scalar* y, i64 n) {
  using traits = scalar_traits<Scalar>;
  Scalar const top = shift_of_row(x, n);
  for (i64 i = 0; i < n; ++i) y[i] = traits::exp(x[i] - top);
  Scalar const f = traits::reciprocal(sum_of<Scalar>(n, [y](i64 i) { return y[i]; }));
  for (i64 i = 0; i < n; ++i) y[i] = y[i] * f;
}
/// log(sum(exp(x))) over n elements.
template <class Scalar> Scalar log_sum_exp(Scalar const* x, i64 n) {
  using traits = scalar_traits<Scalar>;
  Scalar const top = shift_of_row(x, n);
  return top + traits::log(sum_of<Scalar>(n, [x, top](i64 i) { return traits::exp(x[i] - top); }));
}
template <class Scalar> struct row_moments {
  Scalar mean, rsqrt;   // rsqrt: 1 / sqrt(variance + eps)
};
template <class Scalar> row_moments<Scalar> moments_of(Scalar const* x, i64 n, double eps) {
  using traits = scalar_traits<Scalar>;
  Scalar const f = traits::reciprocal(traits::from_integer(n));
  Scalar const mean = sum_of<Scalar>(n, [x](i64 i) { return x[i]; }) * f;
  Scalar const q = sum_of<Scalar>(n, [x, mean](i64 i) { return (x[i] - mean) * (x[i] - mean); });
  return {mean, traits::rsqrt(q * f + constant_of<Scalar>(eps))};
}
}  // namespace detail

template <class Scalar> struct kernel<Scalar, softmax> {
  static void run(kernel_call const& c, softmax const&) {
    i64 const e = detail::last_extent(c.out_block[0]), rows = detail::row_count(c.out_block[0]);
    for (i64 r = 0; r < rows; ++r)
      detail::softmax_row(detail::operand<Scalar>(c, 0) + r * e, detail::result<Scalar>(c) + r * e, e);
  }
};
template <class Scalar> struct kernel<Scalar, softmax_grad> {
  static void run(kernel_call const& c, softmax_grad const&) {
    i64 const e = detail::last_extent(c.out_block[0]), rows = detail::row_count(c.out_block[0]);
    for (i64 r = 0; r < rows; ++r) {
      Scalar const *d = detail::operand<Scalar>(c, 0) + r * e, *y = detail::operand<Scalar>(c, 1) + r * e;
      Scalar* x = detail::result<Scalar>(c) + r * e;
      Scalar const s = detail::sum_of<Scalar>(e, [d, y](i64 i) { return d[i] * y[i]; });
      for (i64 i = 0; i < e; ++i) x[i] = y[i] * (d[i] - s);
    }
  }
};

template <class Scalar> struct kernel<Scalar, layernorm> {
  static void run(kernel_call const& c, layernorm const& op) {
    i64 const e = detail::last_extent(c.out_block[0]), rows = detail::row_count(c.out_block[0]);
    Scalar const *gamma = detail::operand<Scalar>(c, 1), *beta = detail::operand<Scalar>(c, 2);
    for (i64 r = 0; r < rows; ++r) {
      Scalar const* x = detail::operand<Scalar>(c, 0) + r * e;
      Scalar* y = detail::result<Scalar>(c) + r * e;
      auto const m = detail::moments_of(x, e, op.eps);
      for (i64 i = 0; i < e; ++i) y[i] = (x[i] - m.mean) * m.rsqrt * gamma[i] + beta[i];
    }
  }
};
/// dx = (g - mean(g) - xhat mean(g xhat)) / std with g = dy gamma.
template <class Scalar> struct kernel<Scalar, layernorm_grad_x> {
  static void run(kernel_call const& c, layernorm_grad_x const& op) {
    using traits = scalar_traits<Scalar>;
    i64 const e = detail::last_extent(c.out_block[0]), rows = detail::row_count(c.out_block[0]);
    Scalar const* gamma = detail::operand<Scalar>(c, 2);
    Scalar const f = traits::reciprocal(traits::from_integer(e));
    for (i64 r = 0; r < rows; ++r) {
      Scalar const *d = detail::operand<Scalar>(c, 0) + r * e, *x = detail::operand<Scalar>(c, 1) + r * e;
      Scalar* y = detail::result<Scalar>(c) + r * e;
      auto const m = detail::moments_of(x, e, op.eps);
      Scalar const s = detail::sum_of<Scalar>(e, [&](i64 i) { return d[i] * gamma[i]; }) * f;
      Scalar const q =
          detail::sum_of<Scalar>(e, [&](i64 i) { return d[i] * gamma[i] * ((x[i] - m.mean) * m.rsqrt); }) * f;
      for (i64 i = 0; i < e; ++i) y[i] = m.rsqrt * (d[i] * gamma[i] - s - (x[i] - m.mean) * m.rsqrt * q);
    }
  }
};
template <class Scalar> struct kernel<Scalar, layernorm_grad_gamma> {
  static void run(kernel_call const& c, layernorm_grad_gamma const& op) {
    i64 const e = detail::last_extent(c.in_block[0]), rows = detail::row_count(c.in_block[0]);
    Scalar* y = detail::result<Scalar>(c);
    for (i64 i = 0; i < e; ++i) y[i] = Scalar(0);
    for (i64 r = 0; r < rows; ++r) {
      Scalar const *d = detail::operand<Scalar>(c, 0) + r * e, *x = detail::operand<Scalar>(c, 1) + r * e;
      auto const m = detail::moments_of(x, e, op.eps);
      for (i64 i = 0; i < e; ++i) y[i] += d[i] * ((x[i] - m.mean) * m.rsqrt);
    }
  }
};

}  // namespace tensorpar::exec
