// tensorpar/exec/teams/kernels/rows.hpp - team kernels of softmax: a team for every row of the last axis
#pragma once
#include <limits>
#include <tensorpar/exec/teams/kernels/lines.hpp>
#include <tensorpar/op/kinds/reduction.hpp>

namespace tensorpar::exec {

namespace detail {
/// The largest of a set of numbers, and the sum of exp(x - top) over them; sets are put together in any order
/// (Milakov, Gimelshein 2018). Where exp is exact top is 0: see top_of (exec/cpu/kernels/reduction.hpp).
template <class Number> struct softmax_sum {
  Number top, sum;
  constexpr softmax_sum() : softmax_sum(0) {}
  /// Of nothing.
  constexpr explicit softmax_sum(int) : top(-std::numeric_limits<Number>::infinity()), sum(0) {}
  constexpr softmax_sum(Number t, Number s) : top(t), sum(s) {}
  constexpr softmax_sum& operator+=(softmax_sum const& o) {
    bool const higher = scalar_traits<Number>::greater(o.top, top);
    Number const most = higher ? o.top : top, least = higher ? top : o.top,
                 // of two infinities too
                 f = least == most ? Number(1) : scalar_traits<Number>::exp(least - most);
    sum = higher ? sum * f + o.sum : sum + o.sum * f;
    top = most;
    return *this;
  }
  friend constexpr softmax_sum operator+(softmax_sum a, softmax_sum const& b) { return a += b; }
};
/// What is subtracted before exp.
template <class Scalar, class Team>
constexpr computed<Scalar> team_top(Scalar const* x, i64 n, Team const& team) {
  if constexpr (scalar_traits<Scalar>::exact) return computed<Scalar>(0);
  else return line_top<computed<Scalar>>(team, n, x);
}
/// Of n elements, n > 0, which are read once.
template <class Scalar, class Team>
constexpr softmax_sum<computed<Scalar>> team_softmax_sum(Scalar const* x, i64 n, Team const& team) {
  using traits = scalar_traits<Scalar>;
  using number = computed<Scalar>;
  constexpr int N = neighbours<Scalar>;
  if constexpr (traits::exact) {
    return softmax_sum<number>(number(0), line_sum<number>(
                                              team, n, [](number v) { return traits::exp(v); }, x));
  } else {
    if (n % N || !at_16(x))
      return team.template sum<softmax_sum<number>>(n, [&](i64 i) {
        number const v = x[i];
        // exp(v - v): none of +infinity
        return softmax_sum<number>(v, v > std::numeric_limits<number>::max() ? v - v : number(1));
      });
    return team.template sum<softmax_sum<number>>(n / N, [&](i64 i) {
      auto const p = take<N>(x, i * N);
      number top = p.v[0], sum(0);
      for (int k = 1; k < N; ++k)
        if (number const v = p.v[k]; traits::greater(v, top)) top = v;
      // nothing but minus infinities adds nothing; that they have a largest is for others to know
      number const from = top < -std::numeric_limits<number>::max() ? number(0) : top;
      for (int k = 0; k < N; ++k) sum += traits::exp(p.v[k] - from);
      return softmax_sum<number>(top, sum);
    });
  }
}
/// softmax(x)[i] = exp(x[i] - top) * factor.
template <class Scalar> struct softmax_terms {
  computed<Scalar> top, factor;
  constexpr computed<Scalar> of(computed<Scalar> x) const {
    return scalar_traits<Scalar>::exp(x - top) * factor;
  }
};
/// y = exp(x) / sum(exp(x)) over n elements, in place allowed. The largest, and the sum beside it.
template <class From, class To, class Team>
constexpr softmax_sum<computed<From>> team_softmax(From const* x, To* y, i64 n, Team const& team) {
  auto const s = team_softmax_sum(x, n, team);
  softmax_terms<From> const p{s.top, scalar_traits<From>::reciprocal(s.sum)};
  line_map(team, n, [&](i64, computed<From> v) { return p.of(v); }, y, x);
  return s;
}
template <class Scalar> struct softmax_row_at {
  Scalar const* x;
  Scalar* y;
  i64 n;
  constexpr i64 length() const { return n; }
  template <class Team> constexpr void operator()(i64 r, Team const& team) const {
    team_softmax(x + r * n, y + r * n, n, team);
  }
};
template <class Scalar> struct softmax_grad_row_at {
  Scalar const *d, *y;
  Scalar* x;
  i64 n;
  constexpr i64 length() const { return n; }
  template <class Team> constexpr void operator()(i64 r, Team const& team) const {
    using number = computed<Scalar>;
    Scalar const *p = d + r * n, *q = y + r * n;
    number const s = line_sum<number>(team, n, [](number a, number b) { return a * b; }, p, q);
    line_map(team, n, [&](i64, number a, number b) { return b * (a - s); }, x + r * n, p, q);
  }
};
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, softmax> {
  template <class Device> static void run(Device const& d, kernel_call const& c, softmax const&) {
    d.teams(detail::row_count(c.out_block[0]),
            detail::softmax_row_at<Scalar>{detail::operand<Scalar>(c, 0), detail::result<Scalar>(c),
                                           detail::last_extent(c.out_block[0])});
  }
};
template <class Scalar> struct team_kernel<Scalar, softmax_grad> {
  template <class Device> static void run(Device const& d, kernel_call const& c, softmax_grad const&) {
    d.teams(
        detail::row_count(c.out_block[0]),
        detail::softmax_grad_row_at<Scalar>{detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1),
                                            detail::result<Scalar>(c), detail::last_extent(c.out_block[0])});
  }
};

}  // namespace tensorpar::exec
