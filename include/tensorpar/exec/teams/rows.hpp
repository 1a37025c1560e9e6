// tensorpar/exec/teams/rows.hpp - team kernels of softmax, layer norm and RMS norm: a team for every row of the last axis
#pragma once
#include <tensorpar/exec/teams/kernel.hpp>
#include <tensorpar/op/reduction.hpp>
#include <tensorpar/op/rms_norm.hpp>

namespace tensorpar {

namespace detail {
/// What is subtracted before exp: see top_of (exec/kernels_reduction.hpp).
template <class Scalar, class Team> constexpr Scalar team_top(Scalar const* x, i64 n, Team const& team) {
  if constexpr (scalar_traits<Scalar>::exact) return Scalar(0);
  else return team.template top<Scalar>(n, [&](i64 i) { return x[i]; });
}
/// y = exp(x) / sum(exp(x)) over n elements, in place allowed.
template <class Scalar, class Team> constexpr void team_softmax(Scalar const* x, Scalar* y, i64 n, Team const& team) {
  using traits = scalar_traits<Scalar>;
  Scalar const top = team_top(x, n, team);
  team.each(n, [&](i64 i) { y[i] = traits::exp(x[i] - top); });
  Scalar const f = traits::reciprocal(team.template sum<Scalar>(n, [&](i64 i) { return y[i]; }));
  team.each(n, [&](i64 i) { y[i] = y[i] * f; });
}
template <class Scalar> struct softmax_row_at {
  Scalar const* x;
  Scalar* y;
  i64 n;
  template <class Team> constexpr void operator()(i64 r, Team const& team) const { team_softmax(x + r * n, y + r * n, n, team); }
};
template <class Scalar> struct softmax_grad_row_at {
  Scalar const *d, *y;
  Scalar* x;
  i64 n;
  template <class Team> constexpr void operator()(i64 r, Team const& team) const {
    Scalar const *p = d + r * n, *q = y + r * n;
    Scalar const s = team.template sum<Scalar>(n, [&](i64 i) { return p[i] * q[i]; });
    team.each(n, [&](i64 i) { x[r * n + i] = q[i] * (p[i] - s); });
  }
};

/// How the norms of a row are taken: what is subtracted, and what is multiplied. `inverse` is 1 / n.
template <class Scalar> struct row_norm {
  i64 n;
  Scalar inverse, eps;
  bool centred;                              // layer norm; else RMS norm
  struct moments {
    Scalar mean, rsqrt;
  };
  template <class Team> constexpr moments of(Scalar const* x, Team const& team) const {
    Scalar mean(0);
    if (centred) mean = team.template sum<Scalar>(n, [&](i64 i) { return x[i]; }) * inverse;
    Scalar const q = team.template sum<Scalar>(n, [&](i64 i) { return (x[i] - mean) * (x[i] - mean); });
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
  template <class Team> constexpr void operator()(i64 r, Team const& team) const {
    i64 const at = r * norm.n;
    auto const m = norm.of(x + at, team);
    team.each(norm.n, [&](i64 i) { y[at + i] = (x[at + i] - m.mean) * m.rsqrt * gamma[i] + (beta ? beta[i] : Scalar(0)); });
  }
};
/// dx = (g - mean(g) - xhat mean(g xhat)) / std with g = dy gamma; mean(g) is left out where the mean is.
template <class Scalar> struct norm_grad_at {
  row_norm<Scalar> norm;
  Scalar const *d, *x, *gamma;
  Scalar* y;
  template <class Team> constexpr void operator()(i64 r, Team const& team) const {
    i64 const n = norm.n;
    Scalar const *p = d + r * n, *v = x + r * n;
    auto const m = norm.of(v, team);
    Scalar s(0);
    if (norm.centred) s = team.template sum<Scalar>(n, [&](i64 i) { return p[i] * gamma[i]; }) * norm.inverse;
    Scalar const q = team.template sum<Scalar>(n, [&](i64 i) { return p[i] * gamma[i] * ((v[i] - m.mean) * m.rsqrt); }) * norm.inverse;
    team.each(n, [&](i64 i) { y[r * n + i] = m.rsqrt * (p[i] * gamma[i] - s - (v[i] - m.mean) * m.rsqrt * q); });
  }
};
/// The moments of every row, two scalars each.
template <class Scalar> struct moments_at {
  row_norm<Scalar> norm;
  Scalar const* x;
  Scalar* to;
  template <class Team> constexpr void operator()(i64 r, Team const& team) const {
    auto const m = norm.of(x + r * norm.n, team);
    team.alone([&] { to[2 * r] = m.mean; to[2 * r + 1] = m.rsqrt; });
  }
};
/// Sums down the columns: neighbours read neighbours.
template <class Scalar> struct norm_grad_gamma_at {
  Scalar const *d, *x, *moments;
  Scalar* y;
  i64 rows, n;
  constexpr void operator()(i64 i) const {
    Scalar s(0);
    for (i64 r = 0; r < rows; ++r) s += d[r * n + i] * ((x[r * n + i] - moments[2 * r]) * moments[2 * r + 1]);
    y[i] = s;
  }
};
template <class Scalar, class Device> void run_norm(Device const& d, kernel_call const& c, double eps, bool centred) {
  d.teams(row_count(c.out_block[0]),
          norm_at<Scalar>{norm_of<Scalar>(c.out_block[0], eps, centred), operand<Scalar>(c, 0), operand<Scalar>(c, 1),
                          centred ? operand<Scalar>(c, 2) : nullptr, result<Scalar>(c)});
}
template <class Scalar, class Device> void run_norm_grad(Device const& d, kernel_call const& c, double eps, bool centred) {
  d.teams(row_count(c.out_block[0]),
          norm_grad_at<Scalar>{norm_of<Scalar>(c.out_block[0], eps, centred), operand<Scalar>(c, 0), operand<Scalar>(c, 1),
                               operand<Scalar>(c, 2), result<Scalar>(c)});
}
template <class Scalar, class Device> void run_norm_grad_gamma(Device const& d, kernel_call const& c, double eps, bool centred) {
  i64 const rows = row_count(c.in_block[0]), n = last_extent(c.in_block[0]);
  Scalar* const moments = static_cast<Scalar*>(c.workspace);
  d.teams(rows, moments_at<Scalar>{norm_of<Scalar>(c.in_block[0], eps, centred), operand<Scalar>(c, 1), moments});
  d.each(n, norm_grad_gamma_at<Scalar>{operand<Scalar>(c, 0), operand<Scalar>(c, 1), moments, result<Scalar>(c), rows, n});
}
inline i64 two_per_row(shapes in) { return 2 * (in[0].elements() / in[0].last().n); }
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
  static i64 workspace(layernorm_grad_gamma const&, shapes in, shapes) { return detail::two_per_row(in); }
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
  static i64 workspace(rmsnorm_grad_gamma const&, shapes in, shapes) { return detail::two_per_row(in); }
};

}  // namespace tensorpar
