// tensorpar/exec/cpu/kernels/batch_norm.hpp - kernels of batch normalisation: sums per channel, and what
// follows from complete sums
#pragma once
#include <tensorpar/exec/cpu/common/kernels.hpp>
#include <tensorpar/op/kinds/batch_norm.hpp>

namespace tensorpar::exec {

namespace detail {
/// Calls visit(channel, offset, length) for every image's every channel of a [n,c,h,w] block.
template <class Visit> void each_channel(op::tensor_block const& b, Visit&& visit) {
  i64 const plane = b.local[2] * b.local[3];
  for (i64 n = 0; n < b.local[0]; ++n)
    for (i64 ch = 0; ch < b.local[1]; ++ch) visit(ch, (n * b.local[1] + ch) * plane, plane);
}
template <class Scalar> struct channel_statistics {
  Scalar const* moments;
  i64 channels;
  Scalar per_count, eps;
  constexpr channel_statistics(Scalar const* sums, i64 local_channels, i64 count, double e)
      : moments(sums),
        channels(local_channels),
        per_count(scalar_traits<Scalar>::reciprocal(scalar_traits<Scalar>::from_integer(count))),
        eps(constant_of<Scalar>(e)) {}
  constexpr Scalar mean(i64 ch) const { return moments[ch] * per_count; }
  constexpr Scalar rsqrt(i64 ch) const {
    Scalar const m = mean(ch);
    return scalar_traits<Scalar>::rsqrt(
        scalar_traits<Scalar>::not_below_zero(moments[channels + ch] * per_count - m * m) + eps);
  }
};
/// Elements of one channel over the whole logical batch.
inline i64 per_channel(op::tensor_block const& x) { return x.global[0] * x.global[2] * x.global[3]; }
}  // namespace detail

template <class Scalar> struct kernel<Scalar, op::channel_moments> {
  static void run(kernel_call const& c, op::channel_moments const&) {
    Scalar const* x = detail::operand<Scalar>(c, 0);
    Scalar* y = detail::result<Scalar>(c);
    i64 const channels = c.in_block[0].local[1];
    for (i64 i = 0; i < 2 * channels; ++i) y[i] = Scalar(0);
    detail::each_channel(c.in_block[0], [&](i64 ch, i64 at, i64 n) {
      Scalar s(0), q(0);
      for (i64 i = at; i < at + n; ++i) { s += x[i]; q += x[i] * x[i]; }
      y[ch] += s;
      y[channels + ch] += q;
    });
  }
};
template <class Scalar> struct kernel<Scalar, op::channel_moments_grad> {
  static void run(kernel_call const& c, op::channel_moments_grad const&) {
    Scalar const *d = detail::operand<Scalar>(c, 0), *x = detail::operand<Scalar>(c, 1);
    Scalar* y = detail::result<Scalar>(c);
    i64 const channels = c.in_block[1].local[1];
    detail::each_channel(c.in_block[1], [&](i64 ch, i64 at, i64 n) {
      Scalar const a = d[ch], b = d[channels + ch] * Scalar(2);
      for (i64 i = at; i < at + n; ++i) y[i] = a + x[i] * b;
    });
  }
};

template <class Scalar> struct kernel<Scalar, op::normalize> {
  static void run(kernel_call const& c, op::normalize const& op) {
    Scalar const *x = detail::operand<Scalar>(c, 0), *gamma = detail::operand<Scalar>(c, 2),
                 *beta = detail::operand<Scalar>(c, 3);
    Scalar* y = detail::result<Scalar>(c);
    op::tensor_block const& b = c.in_block[0];
    detail::channel_statistics<Scalar> const s(detail::operand<Scalar>(c, 1), b.local[1],
                                               detail::per_channel(b), op.eps);
    detail::each_channel(b, [&](i64 ch, i64 at, i64 n) {
      Scalar const m = s.mean(ch), f = s.rsqrt(ch) * gamma[ch], add_on = beta[ch];
      for (i64 i = at; i < at + n; ++i) y[i] = (x[i] - m) * f + add_on;
    });
  }
};
template <class Scalar> struct kernel<Scalar, op::normalize_sums> {
  static void run(kernel_call const& c, op::normalize_sums const& op) {
    Scalar const *d = detail::operand<Scalar>(c, 0), *x = detail::operand<Scalar>(c, 1);
    Scalar* y = detail::result<Scalar>(c);
    op::tensor_block const& b = c.in_block[1];
    i64 const channels = b.local[1];
    detail::channel_statistics<Scalar> const s(detail::operand<Scalar>(c, 2), channels,
                                               detail::per_channel(b), op.eps);
    for (i64 i = 0; i < 2 * channels; ++i) y[i] = Scalar(0);
    detail::each_channel(b, [&](i64 ch, i64 at, i64 n) {
      Scalar const m = s.mean(ch);
      Scalar p(0), q(0);
      for (i64 i = at; i < at + n; ++i) { p += d[i] * (x[i] - m); q += d[i]; }
      y[ch] += p * s.rsqrt(ch);
      y[channels + ch] += q;
    });
  }
};
template <class Scalar> struct kernel<Scalar, op::normalize_grad_x> {
  static void run(kernel_call const& c, op::normalize_grad_x const& op) {
    Scalar const *d = detail::operand<Scalar>(c, 0), *gamma = detail::operand<Scalar>(c, 2);
    Scalar* y = detail::result<Scalar>(c);
    op::tensor_block const& b = c.in_block[0];
    detail::channel_statistics<Scalar> const s(detail::operand<Scalar>(c, 1), b.local[1],
                                               detail::per_channel(b), op.eps);
    detail::each_channel(b, [&](i64 ch, i64 at, i64 n) {
      Scalar const f = gamma[ch] * s.rsqrt(ch);
      for (i64 i = at; i < at + n; ++i) y[i] = d[i] * f;
    });
  }
};
template <class Scalar> struct kernel<Scalar, op::normalize_grad_moments> {
  static void run(kernel_call const& c, op::normalize_grad_moments const& op) {
    Scalar const *sums = detail::operand<Scalar>(c, 0), *gamma = detail::operand<Scalar>(c, 2);
    Scalar* y = detail::result<Scalar>(c);
    i64 const channels = c.in_block[0].local[1];
    detail::channel_statistics<Scalar> const s(detail::operand<Scalar>(c, 1), channels, op.count, op.eps);
    Scalar const half = scalar_traits<Scalar>::reciprocal(Scalar(2));
    for (i64 ch = 0; ch < channels; ++ch) {
      Scalar const r = s.rsqrt(ch), f = gamma[ch] * s.per_count * r;
      y[ch] = f * (sums[ch] * s.mean(ch) * r - sums[channels + ch]);
      y[channels + ch] = Scalar(0) - f * sums[ch] * r * half;
    }
  }
};

}  // namespace tensorpar::exec
