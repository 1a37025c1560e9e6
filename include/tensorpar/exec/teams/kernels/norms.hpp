// tensorpar/exec/teams/kernels/norms.hpp - team kernels of layer norm and RMS norm, and of all their
// gradients in one pass
#pragma once
#include <tensorpar/exec/teams/kernels/columns.hpp>
#include <tensorpar/exec/teams/kernels/lines.hpp>
#include <tensorpar/op/kinds/fused.hpp>

namespace tensorpar::exec {

namespace detail {
/// How the norms of a row are taken: what is subtracted, and what is multiplied. `inverse` is 1 / n.
template <class Scalar> struct row_norm {
  using number = computed<Scalar>;
  i64 n;
  number inverse, eps;
  bool centred;                              // layer norm; else RMS norm
  struct moments {
    number mean, rsqrt;
  };
  /// Of the first of some rows.
  template <class Rows> constexpr moments of(Rows const& x) const {
    number mean(0);
    if (centred) mean = x.template sum<number>([](number v, auto...) { return v; }) * inverse;
    number const q = x.template sum<number>([&](number v, auto...) { return (v - mean) * (v - mean); });
    return {mean, scalar_traits<Scalar>::rsqrt(q * inverse + eps)};
  }
};
template <class Scalar> row_norm<Scalar> norm_of(op::tensor_block const& x, double eps, bool centred) {
  using traits = scalar_traits<Scalar>;
  i64 const n = last_extent(x);
  return {n, traits::reciprocal(traits::from_integer(n)), constant_of<Scalar>(eps), centred};
}
template <class Scalar> struct norm_at {
  row_norm<Scalar> norm;
  Scalar const *x, *gamma, *beta;            // beta: null where there is none
  Scalar* y;
  constexpr i64 length() const { return norm.n; }
  // one row: few registers, and no other warp to wait for
  static constexpr int holds = turns_held<Scalar, 8>, by_warps = holds;
  constexpr i64 stretches() const {
    return stretches_in(norm.n, {x, gamma, beta, static_cast<Scalar const*>(y)});
  }
  template <class Team, int Turns>
  constexpr void operator()(i64 r, Team const& team, std::integral_constant<int, Turns>) const {
    using number = computed<Scalar>;
    i64 const at = r * norm.n;
    auto const row = rows_in<Turns>(loose_rows<Team, Scalar, 1>{team, norm.n, {x + at}});
    auto const m = norm.of(row);
    auto const with_beta = [&](number v, number g, number b) { return (v - m.mean) * m.rsqrt * g + b; };
    auto const without = [&](number v, number g) { return (v - m.mean) * m.rsqrt * g; };
    if (beta) row.map(with_beta, y + at, gamma, beta);
    else row.map(without, y + at, gamma);
  }
};
/// dx = (g - mean(g) - xhat mean(g xhat)) / std with g = dy gamma; mean(g) is left out where the mean is.
template <class Scalar> struct norm_grad_at {
  row_norm<Scalar> norm;
  Scalar const *d, *x, *gamma, *plus;        // plus: added to dx; or null
  Scalar* y;
  constexpr i64 length() const { return norm.n; }
  static constexpr int holds = numbers_held<Scalar, 32>;
  constexpr i64 stretches() const {
    return stretches_in(norm.n, {d, x, gamma, plus, static_cast<Scalar const*>(y)});
  }
  /// One row; seen(rows, moments) before dx is written, which may be where dy is.
  template <int Turns, class Team, class Seen>
  constexpr void row(i64 r, Team const& team, Seen const& seen) const {
    using number = computed<Scalar>;
    i64 const at = r * norm.n;
    auto const rows = rows_in<Turns>(loose_rows<Team, Scalar, 2>{team, norm.n, {x + at, d + at}});
    auto const m = norm.of(rows);
    auto const terms = [&](number b, number a, number g) {
      return two<number>(norm.centred ? a * g : number(0), a * g * ((b - m.mean) * m.rsqrt));
    };
    auto const sums = rows.template sum<two<number>>(terms, gamma);
    number const s = sums.a * norm.inverse, q = sums.b * norm.inverse;
    seen(rows, m);
    auto const alone = [&](number b, number a, number g) {
      return m.rsqrt * (a * g - s - (b - m.mean) * m.rsqrt * q);
    };
    auto const added = [&](number b, number a, number g, number o) { return alone(b, a, g) + o; };
    if (plus) rows.map(added, y + at, gamma, plus + at);
    else rows.map(alone, y + at, gamma);
  }
  template <class Team, int Turns>
  constexpr void operator()(i64 r, Team const& team, std::integral_constant<int, Turns>) const {
    row<Turns>(r, team, [](auto const&, auto const&) {});
  }
};
/// Each team has a stretch of rows, and leaves the sums that are gradients of gamma and beta, columns after
/// columns.
template <class Scalar> struct norm_grads_at {
  norm_grad_at<Scalar> one;
  computed<Scalar>* sums;
  i64 rows, teams;
  bool gamma, beta;
  constexpr i64 length() const { return one.norm.n; }
  static constexpr int holds = numbers_held<Scalar, 16>, blocks = 4;
  constexpr i64 stretches() const { return one.stretches(); }
  template <class Team, int Turns>
  constexpr void operator()(i64 p, Team const& team, std::integral_constant<int, Turns>) const {
    using number = computed<Scalar>;
    i64 const n = one.norm.n, from = rows * p / teams, to = rows * (p + 1) / teams;
    number *const g = sums + p * n * (gamma + beta), *const b = g + (gamma ? n : 0);
    if constexpr (Turns > 0) {
      constexpr int N = neighbours<Scalar>;
      constexpr std::size_t slots{Team::template slots<Turns>};
      number of_gamma[slots][std::size_t{N}]{}, of_beta[slots][std::size_t{N}]{};
      for (i64 r = from; r < to; ++r)
        one.template row<Turns>(r, team, [&](auto const& held, auto const& m) {
          held.each([&](int slot, int j, number x, number d) {
            of_gamma[slot][j] += d * ((x - m.mean) * m.rsqrt);
            of_beta[slot][j] += d;
          });
        });
      team.template turns<Turns>(n / N, [&](i64 i, int slot) {
        for (int j = 0; j < N; ++j) {
          if (gamma) g[i * N + j] = of_gamma[slot][j];
          if (beta) b[i * N + j] = of_beta[slot][j];
        }
      });
    } else {
      team.each(n * (gamma + beta), [&](i64 i) { g[i] = number(0); });
      for (i64 r = from; r < to; ++r)
        one.template row<0>(r, team, [&](auto const&, auto const& m) {
          team.each(n, [&](i64 i) {
            number const x = one.x[r * n + i], d = one.d[r * n + i];
            if (gamma) g[i] += d * ((x - m.mean) * m.rsqrt);
            if (beta) b[i] += d;
          });
        });
    }
  }
};
/// Numbers in two places, one after the other.
template <class To> struct two_places {
  To *first, *second;
  i64 n;                                     // in the first
  constexpr To& operator[](i64 i) const { return i < n ? first[i] : second[i - n]; }
};
/// The moments of every row, two scalars each.
template <class Scalar> struct moments_at {
  row_norm<Scalar> norm;
  Scalar const* x;
  computed<Scalar>* to;
  constexpr i64 length() const { return norm.n; }
  template <class Team> constexpr void operator()(i64 r, Team const& team) const {
    auto const m = norm.of(loose_rows<Team, Scalar, 1>{team, norm.n, {x + r * norm.n}});
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
template <class Scalar, class Device>
void run_norm(Device const& d, kernel_call const& c, double eps, bool centred) {
  teams_on_rows(
      d, row_count(c.out_block[0]),
      norm_at<Scalar>{norm_of<Scalar>(c.out_block[0], eps, centred), operand<Scalar>(c, 0),
                      operand<Scalar>(c, 1), centred ? operand<Scalar>(c, 2) : nullptr, result<Scalar>(c)});
}
template <class Scalar, class Device>
void run_norm_grad_gamma(Device const& d, kernel_call const& c, double eps, bool centred) {
  i64 const rows = row_count(c.in_block[0]), n = last_extent(c.in_block[0]);
  computed<Scalar>* const moments = static_cast<computed<Scalar>*>(c.workspace);
  d.teams(rows,
          moments_at<Scalar>{norm_of<Scalar>(c.in_block[0], eps, centred), operand<Scalar>(c, 1), moments});
  by_result<Scalar>(c, [&](auto* y) {
    sum_columns(d, rows, n,
                norm_grad_gamma_term<Scalar>{operand<Scalar>(c, 0), operand<Scalar>(c, 1), moments, n},
                moments + 2 * rows, y);
  });
}
/// How many teams have the rows of a norm's gradients.
constexpr i64 norm_teams(i64 rows) { return rows < 16 ? 1 : rows / 8 < 512 ? rows / 8 : 512; }
inline i64 norm_grads_scratch(shapes in, int sums) {
  i64 const n = in[0].last().n, teams = norm_teams(n ? in[0].elements() / n : 0);
  return sums ? teams * n * sums + column_scratch(teams, n * sums) : 0;
}
template <class Scalar, class Device>
void run_norm_grads(Device const& d, kernel_call const& c, op::norm_grads const& op) {
  i64 const rows = row_count(c.out_block[0]), n = last_extent(c.out_block[0]), teams = norm_teams(rows),
            columns = n * (op.gamma + op.beta);
  norm_grad_at<Scalar> const one{norm_of<Scalar>(c.out_block[0], op.eps, op.centred),
                                 operand<Scalar>(c, 0),
                                 operand<Scalar>(c, 1),
                                 operand<Scalar>(c, 2),
                                 op.plus ? operand<Scalar>(c, 3) : nullptr,
                                 result<Scalar>(c)};
  if (!columns) return teams_on_rows(d, rows, one);
  using number = computed<Scalar>;
  number* const sums = static_cast<number*>(c.workspace);
  teams_on_rows(d, teams, norm_grads_at<Scalar>{one, sums, rows, teams, op.gamma, op.beta});
  auto const last = [&]<class To>(To*) {
    two_places<To> const to{result<To>(c, 1), op.gamma && op.beta ? result<To>(c, 2) : nullptr, n};
    sum_columns(d, teams, columns, matrix_term<number>{sums, columns}, sums + teams * columns, to);
  };
  if (std::same_as<Scalar, number> || !is_narrow(c.out_block[1].type)) last(static_cast<number*>(nullptr));
  else last(static_cast<Scalar*>(nullptr));
}
/// Two per row, and what sums of columns take.
inline i64 norm_grad_gamma_scratch(shapes in) {
  i64 const n = in[0].last().n, rows = n ? in[0].elements() / n : 0;
  return 2 * rows + column_scratch(rows, n);
}
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, layernorm> {
  template <class Device> static void run(Device const& d, kernel_call const& c, layernorm const& op) {
    detail::run_norm<Scalar>(d, c, op.eps, true);
  }
};
template <class Scalar> struct team_kernel<Scalar, layernorm_grad_x> {
  template <class Device> static void run(Device const& d, kernel_call const& c, layernorm_grad_x const& op) {
    detail::run_norm_grads<Scalar>(d, c, {op.eps, true});
  }
};
template <class Scalar> struct team_kernel<Scalar, layernorm_grad_gamma> {
  template <class Device>
  static void run(Device const& d, kernel_call const& c, layernorm_grad_gamma const& op) {
    detail::run_norm_grad_gamma<Scalar>(d, c, op.eps, true);
  }
  static i64 workspace(layernorm_grad_gamma const&, shapes in, shapes) {
    return detail::norm_grad_gamma_scratch(in);
  }
};
template <class Scalar> struct team_kernel<Scalar, rmsnorm> {
  template <class Device> static void run(Device const& d, kernel_call const& c, rmsnorm const& op) {
    detail::run_norm<Scalar>(d, c, op.eps, false);
  }
};
template <class Scalar> struct team_kernel<Scalar, rmsnorm_grad_x> {
  template <class Device> static void run(Device const& d, kernel_call const& c, rmsnorm_grad_x const& op) {
    detail::run_norm_grads<Scalar>(d, c, {op.eps, false});
  }
};
template <class Scalar> struct team_kernel<Scalar, rmsnorm_grad_gamma> {
  template <class Device>
  static void run(Device const& d, kernel_call const& c, rmsnorm_grad_gamma const& op) {
    detail::run_norm_grad_gamma<Scalar>(d, c, op.eps, false);
  }
  static i64 workspace(rmsnorm_grad_gamma const&, shapes in, shapes) {
    return detail::norm_grad_gamma_scratch(in);
  }
};
template <class Scalar> struct team_kernel<Scalar, op::norm_grads> {
  static i64 workspace(op::norm_grads const& op, shapes in, shapes) {
    return detail::norm_grads_scratch(in, op.gamma + op.beta);
  }
  template <class Device> static void run(Device const& d, kernel_call const& c, op::norm_grads const& op) {
    detail::run_norm_grads<Scalar>(d, c, op);
  }
};

}  // namespace tensorpar::exec
