// tensorpar/exec/teams/kernels/batch_norm.hpp - team kernels of batch normalisation: teams for every
// channel's sums, and what follows from them
#pragma once
#include <tensorpar/exec/cpu/kernels/batch_norm.hpp>
#include <tensorpar/exec/teams/kernels/lines.hpp>

namespace tensorpar::exec {

namespace detail {
/// Where the elements of a channel lie in a [n,c,h,w] block.
struct channel_walk {
  i64 images, channels, plane;
  explicit channel_walk(op::tensor_block const& b)
      : images(b.local[0]), channels(b.local[1]), plane(b.local[2] * b.local[3]) {}
  explicit channel_walk(shape const& s) : images(s[0].n), channels(s[1].n), plane(s[2].n * s[3].n) {}
  constexpr i64 terms() const { return images * plane; }
  constexpr i64 channel_of(i64 element) const { return element / plane % channels; }
  /// Teams of a channel: as many as its terms ask for, some 2,048 in all, and none with more than 2^30 terms.
  constexpr i64 parts() const {
    i64 const want = (terms() + 4095) / 4096, most = channels < 2048 ? 2048 / channels : 1,
              least = (terms() >> 30) + 1;
    i64 const some = want < most ? want : most;
    return some > least ? some : least;
  }
  constexpr i64 scratch() const { return 2 * channels * parts(); }
};
/// Both sums of a part of a channel. Term: `of(channel)` gives what is called with an element. Precondition:
/// planes of less than 2^31.
template <class Scalar, class Term> struct channel_parts_at {
  using number = computed<Scalar>;
  channel_walk w;
  Term term;
  number* y;
  i64 parts;
  template <class Team> constexpr void operator()(i64 at, Team const& team) const {
    i64 const ch = at % w.channels, part = at / w.channels, from = w.terms() * part / parts,
              to = w.terms() * (part + 1) / parts;
    auto const of = term.of(ch);
    // divisions of 32 bits, for they take most of the time
    auto const plane = static_cast<std::uint32_t>(w.plane),
               first = static_cast<std::uint32_t>(from % w.plane);
    i64 const image = from / w.plane;
    two<number> const s = team.template sum<two<number>>(to - from, [&](i64 i) {
      std::uint32_t const k = first + static_cast<std::uint32_t>(i);
      return of(((image + k / plane) * w.channels + ch) * w.plane + k % plane);
    });
    team.alone([&] { y[2 * part * w.channels + ch] = s.a; y[(2 * part + 1) * w.channels + ch] = s.b; });
  }
};
/// Last: what becomes of the first sum.
template <class Number, class Last> struct channel_sums_at {
  Number const* part;
  Number* y;
  i64 channels, parts;
  Last last;
  constexpr void operator()(i64 ch) const {
    two<Number> s(0);
    for (i64 p = 0; p < parts; ++p) s += {part[2 * p * channels + ch], part[(2 * p + 1) * channels + ch]};
    y[ch] = last(ch, s.a);
    y[channels + ch] = s.b;
  }
};
template <class Scalar, class Device, class Term, class Last>
void channel_sums(Device const& d, kernel_call const& c, channel_walk const& w, Term const& term,
                  Last const& last) {
  using number = computed<Scalar>;
  i64 const parts = w.parts();
  auto* const room = static_cast<number*>(c.workspace);
  d.teams(w.channels * parts, channel_parts_at<Scalar, Term>{w, term, room, parts});
  d.each(w.channels, channel_sums_at<number, Last>{room, result<number>(c), w.channels, parts, last});
}
template <class Scalar> struct moment_terms {
  Scalar const* x;
  constexpr moment_terms of(i64) const { return *this; }
  constexpr two<computed<Scalar>> operator()(i64 at) const {
    computed<Scalar> const v = x[at];
    return {v, v * v};
  }
};
template <class Scalar> struct normalize_terms {
  channel_statistics<computed<Scalar>> s;
  Scalar const *d, *x;
  computed<Scalar> mean;
  constexpr normalize_terms of(i64 ch) const { return {s, d, x, s.mean(ch)}; }
  constexpr two<computed<Scalar>> operator()(i64 at) const {
    computed<Scalar> const g = d[at];
    return {g * (x[at] - mean), g};
  }
};
struct as_it_is {
  template <class Number> constexpr Number operator()(i64, Number x) const { return x; }
};
template <class Number> struct times_rsqrt {
  channel_statistics<Number> s;
  constexpr Number operator()(i64 ch, Number x) const { return x * s.rsqrt(ch); }
};

/// What becomes of every element of a channel: (x - from) * by + then.
template <class Number> struct channel_line {
  Number from, by, then;
  constexpr Number operator()(Number x) const { return (x - from) * by + then; }
};
template <class Scalar> struct moments_grad_lines {
  computed<Scalar> const* d;
  i64 channels;
  constexpr channel_line<computed<Scalar>> operator()(i64 ch) const {
    return {computed<Scalar>(0), d[channels + ch] * computed<Scalar>(2), d[ch]};
  }
};
/// beta null: the gradient by x, whose numbers it is given.
template <class Scalar> struct normalize_lines {
  channel_statistics<computed<Scalar>> s;
  Scalar const *gamma, *beta;
  constexpr channel_line<computed<Scalar>> operator()(i64 ch) const {
    computed<Scalar> const zero(0), by = s.rsqrt(ch) * gamma[ch];
    if (!beta) return {zero, by, zero};
    return {s.mean(ch), by, beta[ch]};
  }
};
/// Neighbours in a plane have the same line.
template <class Scalar, class Lines> struct along_channels_at {
  channel_walk w;
  Lines lines;
  Scalar const* x;
  Scalar* y;
  static constexpr int at_once = 16 / sizeof(Scalar);
  bool aligned() const { return w.plane % at_once == 0 && at_16(x, y); }
  constexpr void operator()(i64 i) const { y[i] = lines(w.channel_of(i))(x[i]); }
  template <int N> constexpr void several(i64 i) const {
    auto const line = lines(w.channel_of(i));
    auto const from = take<N>(x, i);
    pack<Scalar, N> to{};
    for (int k = 0; k < N; ++k) to.v[k] = line(from.v[k]);
    put(y, i, to);
  }
};
template <class Scalar, class Device, class Lines>
void along_channels(Device const& d, op::tensor_block const& b, Lines const& lines, Scalar const* x,
                    Scalar* y) {
  d.each(b.elements(), along_channels_at<Scalar, Lines>{channel_walk(b), lines, x, y});
}
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
template <class Scalar>
channel_statistics<Scalar> statistics_of(Scalar const* moments, op::tensor_block const& x, double eps) {
  return {moments, x.local[1], per_channel(x), eps};
}
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, op::channel_moments> {
  static i64 workspace(op::channel_moments const&, shapes in, shapes) {
    return detail::channel_walk(in[0]).scratch();
  }
  template <class Device> static void run(Device const& d, kernel_call const& c, op::channel_moments const&) {
    detail::channel_sums<Scalar>(d, c, detail::channel_walk(c.in_block[0]),
                                 detail::moment_terms<Scalar>{detail::operand<Scalar>(c, 0)},
                                 detail::as_it_is{});
  }
};
template <class Scalar> struct team_kernel<Scalar, op::channel_moments_grad> {
  template <class Device>
  static void run(Device const& d, kernel_call const& c, op::channel_moments_grad const&) {
    op::tensor_block const& b = c.in_block[1];
    detail::along_channels(
        d, b, detail::moments_grad_lines<Scalar>{detail::operand<computed<Scalar>>(c, 0), b.local[1]},
        detail::operand<Scalar>(c, 1), detail::result<Scalar>(c));
  }
};
template <class Scalar> struct team_kernel<Scalar, op::normalize> {
  template <class Device> static void run(Device const& d, kernel_call const& c, op::normalize const& op) {
    op::tensor_block const& b = c.in_block[0];
    auto const s = detail::statistics_of(detail::operand<computed<Scalar>>(c, 1), b, op.eps);
    detail::along_channels(
        d, b,
        detail::normalize_lines<Scalar>{s, detail::operand<Scalar>(c, 2), detail::operand<Scalar>(c, 3)},
        detail::operand<Scalar>(c, 0), detail::result<Scalar>(c));
  }
};
template <class Scalar> struct team_kernel<Scalar, op::normalize_sums> {
  static i64 workspace(op::normalize_sums const&, shapes in, shapes) {
    return detail::channel_walk(in[1]).scratch();
  }
  template <class Device>
  static void run(Device const& d, kernel_call const& c, op::normalize_sums const& op) {
    using number = computed<Scalar>;
    op::tensor_block const& b = c.in_block[1];
    auto const s = detail::statistics_of(detail::operand<number>(c, 2), b, op.eps);
    detail::normalize_terms<Scalar> const terms{s, detail::operand<Scalar>(c, 0),
                                                detail::operand<Scalar>(c, 1), number(0)};
    detail::channel_sums<Scalar>(d, c, detail::channel_walk(b), terms, detail::times_rsqrt<number>{s});
  }
};
template <class Scalar> struct team_kernel<Scalar, op::normalize_grad_x> {
  template <class Device>
  static void run(Device const& d, kernel_call const& c, op::normalize_grad_x const& op) {
    op::tensor_block const& b = c.in_block[0];
    auto const s = detail::statistics_of(detail::operand<computed<Scalar>>(c, 1), b, op.eps);
    detail::along_channels(d, b, detail::normalize_lines<Scalar>{s, detail::operand<Scalar>(c, 2), nullptr},
                           detail::operand<Scalar>(c, 0), detail::result<Scalar>(c));
  }
};
template <class Scalar> struct team_kernel<Scalar, op::normalize_grad_moments> {
  template <class Device>
  static void run(Device const& d, kernel_call const& c, op::normalize_grad_moments const& op) {
    i64 const channels = c.in_block[0].local[1];
    detail::channel_statistics<computed<Scalar>> const s(detail::operand<computed<Scalar>>(c, 1), channels,
                                                         op.count, op.eps);
    d.each(channels,
           detail::normalize_grad_moments_at<Scalar>{
               s, detail::operand<computed<Scalar>>(c, 0), detail::operand<Scalar>(c, 2),
               detail::result<computed<Scalar>>(c), scalar_traits<Scalar>::reciprocal(computed<Scalar>(2))});
  }
};

}  // namespace tensorpar::exec
