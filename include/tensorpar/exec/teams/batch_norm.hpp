// tensorpar/exec/teams/batch_norm.hpp - team kernels of batch normalisation: a team for every channel's sums, and what follows from them
#pragma once
#include <tensorpar/exec/kernels_batch_norm.hpp>
#include <tensorpar/exec/teams/kernel.hpp>

namespace tensorpar {

namespace detail {
/// Where the elements of a channel lie in a [n,c,h,w] block.
struct channel_walk {
  i64 images, channels, plane;
  explicit channel_walk(tensor_block const& b) : images(b.local[0]), channels(b.local[1]), plane(b.local[2] * b.local[3]) {}
  constexpr i64 terms() const { return images * plane; }
  constexpr i64 at(i64 ch, i64 i) const { return (i / plane * channels + ch) * plane + i % plane; }
  constexpr i64 channel_of(i64 element) const { return element / plane % channels; }
};
template <class Scalar> struct channel_moments_at {
  channel_walk w;
  Scalar const* x;
  computed<Scalar>* y;
  template <class Team> constexpr void operator()(i64 ch, Team const& team) const {
    computed<Scalar> const s = team.template sum<computed<Scalar>>(w.terms(), [&](i64 i) { return x[w.at(ch, i)]; });
    computed<Scalar> const q = team.template sum<computed<Scalar>>(w.terms(), [&](i64 i) { return x[w.at(ch, i)] * x[w.at(ch, i)]; });
    team.alone([&] { y[ch] = s; y[w.channels + ch] = q; });
  }
};
template <class Scalar> struct channel_moments_grad_at {
  channel_walk w;
  computed<Scalar> const* d;
  Scalar const* x;
  Scalar* y;
  constexpr void operator()(i64 i) const {
    i64 const ch = w.channel_of(i);
    y[i] = d[ch] + x[i] * (d[w.channels + ch] * computed<Scalar>(2));
  }
};
template <class Scalar> struct normalize_at {
  channel_walk w;
  channel_statistics<computed<Scalar>> s;
  Scalar const *x, *gamma, *beta;
  Scalar* y;
  constexpr void operator()(i64 i) const {
    i64 const ch = w.channel_of(i);
    y[i] = (x[i] - s.mean(ch)) * (s.rsqrt(ch) * gamma[ch]) + beta[ch];
  }
};
template <class Scalar> struct normalize_sums_at {
  channel_walk w;
  channel_statistics<computed<Scalar>> s;
  Scalar const *d, *x;
  computed<Scalar>* y;
  template <class Team> constexpr void operator()(i64 ch, Team const& team) const {
    computed<Scalar> const m = s.mean(ch);
    computed<Scalar> const p = team.template sum<computed<Scalar>>(w.terms(), [&](i64 i) { return d[w.at(ch, i)] * (x[w.at(ch, i)] - m); });
    computed<Scalar> const q = team.template sum<computed<Scalar>>(w.terms(), [&](i64 i) { return d[w.at(ch, i)]; });
    team.alone([&] { y[ch] = p * s.rsqrt(ch); y[w.channels + ch] = q; });
  }
};
template <class Scalar> struct normalize_grad_at {
  channel_walk w;
  channel_statistics<computed<Scalar>> s;
  Scalar const *d, *gamma;
  Scalar* y;
  constexpr void operator()(i64 i) const {
    i64 const ch = w.channel_of(i);
    y[i] = d[i] * (gamma[ch] * s.rsqrt(ch));
  }
};
template <class Scalar> struct normalize_grad_moments_at {
  channel_statistics<computed<Scalar>> s;
  computed<Scalar> const* sums;
  Scalar const* gamma;
  computed<Scalar>* y;
  computed<Scalar> half;
  constexpr void operator()(i64 ch) const {
    computed<Scalar> const r = s.rsqrt(ch), f = gamma[ch] * s.per_count * r;
    y[ch] = f * (sums[ch] * s.mean(ch) * r - sums[s.channels + ch]);
    y[s.channels + ch] = computed<Scalar>(0) - f * sums[ch] * r * half;
  }
};
template <class Scalar> channel_statistics<Scalar> statistics_of(Scalar const* moments, tensor_block const& x, double eps) {
  return {moments, x.local[1], per_channel(x), eps};
}
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, channel_moments> {
  template <class Device> static void run(Device const& d, kernel_call const& c, channel_moments const&) {
    detail::channel_walk const w(c.in_block[0]);
    d.teams(w.channels, detail::channel_moments_at<Scalar>{w, detail::operand<Scalar>(c, 0), detail::result<computed<Scalar>>(c)});
  }
};
template <class Scalar> struct team_kernel<Scalar, channel_moments_grad> {
  template <class Device> static void run(Device const& d, kernel_call const& c, channel_moments_grad const&) {
    tensor_block const& b = c.in_block[1];
    d.each(b.elements(), detail::channel_moments_grad_at<Scalar>{detail::channel_walk(b), detail::operand<computed<Scalar>>(c, 0),
                                                                 detail::operand<Scalar>(c, 1), detail::result<Scalar>(c)});
  }
};
template <class Scalar> struct team_kernel<Scalar, normalize> {
  template <class Device> static void run(Device const& d, kernel_call const& c, normalize const& op) {
    tensor_block const& b = c.in_block[0];
    d.each(b.elements(), detail::normalize_at<Scalar>{detail::channel_walk(b),
                                                      detail::statistics_of(detail::operand<computed<Scalar>>(c, 1), b, op.eps),
                                                      detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 2),
                                                      detail::operand<Scalar>(c, 3), detail::result<Scalar>(c)});
  }
};
template <class Scalar> struct team_kernel<Scalar, normalize_sums> {
  template <class Device> static void run(Device const& d, kernel_call const& c, normalize_sums const& op) {
    tensor_block const& b = c.in_block[1];
    detail::channel_walk const w(b);
    d.teams(w.channels, detail::normalize_sums_at<Scalar>{w, detail::statistics_of(detail::operand<computed<Scalar>>(c, 2), b, op.eps),
                                                          detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1),
                                                          detail::result<computed<Scalar>>(c)});
  }
};
template <class Scalar> struct team_kernel<Scalar, normalize_grad_x> {
  template <class Device> static void run(Device const& d, kernel_call const& c, normalize_grad_x const& op) {
    tensor_block const& b = c.in_block[0];
    d.each(b.elements(), detail::normalize_grad_at<Scalar>{detail::channel_walk(b),
                                                           detail::statistics_of(detail::operand<computed<Scalar>>(c, 1), b, op.eps),
                                                           detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 2),
                                                           detail::result<Scalar>(c)});
  }
};
template <class Scalar> struct team_kernel<Scalar, normalize_grad_moments> {
  template <class Device> static void run(Device const& d, kernel_call const& c, normalize_grad_moments const& op) {
    i64 const channels = c.in_block[0].local[1];
    detail::channel_statistics<computed<Scalar>> const s(detail::operand<computed<Scalar>>(c, 1), channels, op.count, op.eps);
    d.each(channels, detail::normalize_grad_moments_at<Scalar>{s, detail::operand<computed<Scalar>>(c, 0), detail::operand<Scalar>(c, 2),
                                                               detail::result<computed<Scalar>>(c),
                                                               scalar_traits<Scalar>::reciprocal(computed<Scalar>(2))});
  }
};

}  // namespace tensorpar
