// tensorpar/exec/teams/rows.hpp - team kernels of softmax, layer norm and RMS norm: a team for every row of the last axis
#pragma once
#include <tensorpar/exec/teams/columns.hpp>
#include <tensorpar/exec/teams/lines.hpp>
#include <tensorpar/op/reduction.hpp>
#include <tensorpar/op/rms_norm.hpp>

namespace tensorpar {

namespace detail {
/// What is subtracted before exp: see top_of (exec/kernels_reduction.hpp).
template <class Scalar, class Team> constexpr computed<Scalar> team_top(Scalar const* x, i64 n, Team const& team) {
  if constexpr (scalar_traits<Scalar>::exact) return computed<Scalar>(0);
  else return line_top<computed<Scalar>>(team, n, x);
}
/// softmax(x)[i] = exp(x[i] - top) * factor.
template <class Scalar> struct softmax_terms {
  computed<Scalar> top, factor;
  constexpr computed<Scalar> of(computed<Scalar> x) const { return scalar_traits<Scalar>::exp(x - top) * factor; }
};
template <class Scalar, class Team> constexpr softmax_terms<Scalar> team_softmax_terms(Scalar const* x, i64 n, Team const& team) {
  using traits = scalar_traits<Scalar>;
  using number = computed<Scalar>;
  number const top = team_top(x, n, team);
  return {top, traits::reciprocal(line_sum<number>(team, n, [&](number v) { return traits::exp(v - top); }, x))};
}
/// y = exp(x) / sum(exp(x)) over n elements, in place allowed.
template <class From, class To, class Team> constexpr softmax_terms<From> team_softmax(From const* x, To* y, i64 n, Team const& team) {
  softmax_terms<From> const p = team_softmax_terms(x, n, team);
  line_map(team, n, [&](i64, computed<From> v) { return p.of(v); }, y, x);
  return p;
}
template <class Scalar> struct softmax_row_at {
  Scalar const* x;
  Scalar* y;
  i64 n;
  constexpr i64 length() const { return n; }
  template <class Team> constexpr void operator()(i64 r, Team const& team) const { team_softmax(x + r * n, y + r * n, n, team); }
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

/// How the norms of a row are taken: what is subtracted, and what is multiplied. `inverse` is 1 / n.
template <class Scalar> struct row_norm {
  using number = computed<Scalar>;
  i64 n;
  number inverse, eps;
  bool centred;                              // layer norm; else RMS norm
  struct moments {
    number mean, rsqrt;
  };
  template <class Team> constexpr moments of(Scalar const* x, Team const& team) const {
    number mean(0);
    if (centred) mean = line_sum<number>(team, n, [](number v) { return v; }, x) * inverse;
    number const q = line_sum<number>(team, n, [&](number v) { return (v - mean) * (v - mean); }, x);
    return {mean, scalar_traits<Scalar>::rsqrt(q * inverse + eps)};
  }
};
template <class Scalar> row_norm<Scalar> norm_of(tensor_block const& x, double eps, bool centred) {
  using traits = scalar_traits<Scalar>;
  i64 const n = last_extent(x);
  return {n, traits::reciprocal(traits::from_integer(n)), traits::from_double(eps), centred};
}
template <class Scalar> struct norm_at {
  row_norm<Scalar> norm;
  Scalar const *x, *gamma, *beta;            // beta: null where there is none
  Scalar* y;
  constexpr i64 length() const { return norm.n; }
  template <class Team> constexpr void operator()(i64 r, Team const& team) const {
    using number = computed<Scalar>;
    i64 const at = r * norm.n;
    auto const m = norm.of(x + at, team);
    auto const with_beta = [&](i64, number v, number g, number b) { return (v - m.mean) * m.rsqrt * g + b; };
    auto const without = [&](i64, number v, number g) { return (v - m.mean) * m.rsqrt * g; };
    if (beta) line_map(team, norm.n, with_beta, y + at, x + at, gamma, beta);
    else line_map(team, norm.n, without, y + at, x + at, gamma);
  }
};
/// dx = (g - mean(g) - xhat mean(g xhat)) / std with g = dy gamma; mean(g) is left out where the mean is.
template <class Scalar> struct norm_grad_at {
  row_norm<Scalar> norm;
  Scalar const *d, *x, *gamma, *plus;        // plus: added to dx; or null
  Scalar* y;
  constexpr i64 length() const { return norm.n; }
  template <class Team> constexpr void operator()(i64 r, Team const& team) const {
    using number = computed<Scalar>;
    i64 const n = norm.n;
    Scalar const *p = d + r * n, *v = x + r * n;
    auto const m = norm.of(v, team);
    number s(0);
    if (norm.centred) s = line_sum<number>(team, n, [](number a, number g) { return a * g; }, p, gamma) * norm.inverse;
    auto const term = [&](number a, number g, number b) { return a * g * ((b - m.mean) * m.rsqrt); };
    number const q = line_sum<number>(team, n, term, p, gamma, v) * norm.inverse;
    auto const alone = [&](i64, number a, number g, number b) { return m.rsqrt * (a * g - s - (b - m.mean) * m.rsqrt * q); };
    auto const added = [&](i64 i, number a, number g, number b, number o) { return alone(i, a, g, b) + o; };
    if (plus) line_map(team, n, added, y + r * n, p, gamma, v, plus + r * n);
    else line_map(team, n, alone, y + r * n, p, gamma, v);
  }
};
/// The moments of every row, two scalars each.
template <class Scalar> struct moments_at {
  row_norm<Scalar> norm;
  Scalar const* x;
  computed<Scalar>* to;
  constexpr i64 length() const { return norm.n; }
  template <class Team> constexpr void operator()(i64 r, Team const& team) const {
    auto const m = norm.of(x + r * norm.n, team);
    team.alone([&] { to[2 * r] = m.mean; to[2 * r + 1] = m.rsqrt; });
  }
};
template <class Scalar> struct norm_grad_gamma_term {
  Scalar const *d, *x;
  computed<Scalar> const* moments;
  i64 n;
  constexpr computed<Scalar> operator()(i64 r, i64 i) const {
    return d[r * n + i] * ((x[r * n + i] - moments[2 * r]) * moments[2 * r + 1]);
  }
  static constexpr int at_once = 16 / sizeof(Scalar);
  bool aligned() const { return at_16(d, x); }
  template <int N> constexpr numbers<computed<Scalar>, N> several(i64 r, i64 i) const {
    auto const p = take<N>(d, r * n + i), q = take<N>(x, r * n + i);
    computed<Scalar> const mean = moments[2 * r], rsqrt = moments[2 * r + 1];
    numbers<computed<Scalar>, N> to{};
    for (int k = 0; k < N; ++k) to.v[k] = p.v[k] * ((q.v[k] - mean) * rsqrt);
    return to;
  }
};
template <class Scalar, class Device> void run_norm(Device const& d, kernel_call const& c, double eps, bool centred) {
  d.teams(row_count(c.out_block[0]),
          norm_at<Scalar>{norm_of<Scalar>(c.out_block[0], eps, centred), operand<Scalar>(c, 0), operand<Scalar>(c, 1),
                          centred ? operand<Scalar>(c, 2) : nullptr, result<Scalar>(c)});
}
template <class Scalar, class Device>
void run_norm_grad(Device const& d, kernel_call const& c, double eps, bool centred, Scalar const* plus = nullptr) {
  d.teams(row_count(c.out_block[0]),
          norm_grad_at<Scalar>{norm_of<Scalar>(c.out_block[0], eps, centred), operand<Scalar>(c, 0), operand<Scalar>(c, 1),
                               operand<Scalar>(c, 2), plus, result<Scalar>(c)});
}
template <class Scalar, class Device> void run_norm_grad_gamma(Device const& d, kernel_call const& c, double eps, bool centred) {
  i64 const rows = row_count(c.in_block[0]), n = last_extent(c.in_block[0]);
  computed<Scalar>* const moments = static_cast<computed<Scalar>*>(c.workspace);
  d.teams(rows, moments_at<Scalar>{norm_of<Scalar>(c.in_block[0], eps, centred), operand<Scalar>(c, 1), moments});
  by_result<Scalar>(c, [&](auto* y) {
    sum_columns(d, rows, n, norm_grad_gamma_term<Scalar>{operand<Scalar>(c, 0), operand<Scalar>(c, 1), moments, n}, moments + 2 * rows, y);
  });
}
/// Two per row, and what sums of columns take.
inline i64 norm_grad_gamma_scratch(shapes in) {
  i64 const n = in[0].last().n, rows = n ? in[0].elements() / n : 0;
  return 2 * rows + column_scratch(rows, n);
}
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, softmax> {
  template <class Device> static void run(Device const& d, kernel_call const& c, softmax const&) {
    d.teams(detail::row_count(c.out_block[0]), detail::softmax_row_at<Scalar>{detail::operand<Scalar>(c, 0), detail::result<Scalar>(c),
                                                                              detail::last_extent(c.out_block[0])});
  }
};
template <class Scalar> struct team_kernel<Scalar, softmax_grad> {
  template <class Device> static void run(Device const& d, kernel_call const& c, softmax_grad const&) {
    d.teams(detail::row_count(c.out_block[0]),
            detail::softmax_grad_row_at<Scalar>{detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1), detail::result<Scalar>(c),
                                                detail::last_extent(c.out_block[0])});
  }
};
template <class Scalar> struct team_kernel<Scalar, layernorm> {
  template <class Device> static void run(Device const& d, kernel_call const& c, layernorm const& op) {
    detail::run_norm<Scalar>(d, c, op.eps, true);
  }
};
template <class Scalar> struct team_kernel<Scalar, layernorm_grad_x> {
  template <class Device> static void run(Device const& d, kernel_call const& c, layernorm_grad_x const& op) {
    detail::run_norm_grad<Scalar>(d, c, op.eps, true);
  }
};
template <class Scalar> struct team_kernel<Scalar, layernorm_grad_gamma> {
  template <class Device> static void run(Device const& d, kernel_call const& c, layernorm_grad_gamma const& op) {
    detail::run_norm_grad_gamma<Scalar>(d, c, op.eps, true);
  }
  static i64 workspace(layernorm_grad_gamma const&, shapes in, shapes) { return detail::norm_grad_gamma_scratch(in); }
};
template <class Scalar> struct team_kernel<Scalar, rmsnorm> {
  template <class Device> static void run(Device const& d, kernel_call const& c, rmsnorm const& op) {
    detail::run_norm<Scalar>(d, c, op.eps, false);
  }
};
template <class Scalar> struct team_kernel<Scalar, rmsnorm_grad_x> {
  template <class Device> static void run(Device const& d, kernel_call const& c, rmsnorm_grad_x const& op) {
    detail::run_norm_grad<Scalar>(d, c, op.eps, false);
  }
};
template <class Scalar> struct team_kernel<Scalar, rmsnorm_grad_gamma> {
  template <class Device> static void run(Device const& d, kernel_call const& c, rmsnorm_grad_gamma const& op) {
    detail::run_norm_grad_gamma<Scalar>(d, c, op.eps, false);
  }
  static i64 workspace(rmsnorm_grad_gamma const&, shapes in, shapes) { return detail::norm_grad_gamma_scratch(in); }
};

}  // namespace tensorpar
