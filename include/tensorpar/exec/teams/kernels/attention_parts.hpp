// tensorpar/exec/teams/kernels/attention_parts.hpp - team kernels of attention over keys in parts: the states
// of every part, and their gradients
#pragma once
#include <cmath>
#include <tensorpar/exec/teams/kernels/contraction.hpp>
#include <tensorpar/exec/teams/kernels/rows.hpp>
#include <tensorpar/exec/teams/kernels/softmax_states.hpp>

namespace tensorpar::exec {

namespace detail {
/// Row i of scores becomes exp(factor * row - top), and the sum and the top go into the state.
template <class Scalar> struct part_weights_at {
  Scalar *w, *state;                         // state: column `head` of the first query's
  i64 keys, row;                             // row: distance of queries' states
  Scalar factor;
  template <class Team> constexpr void operator()(i64 i, Team const& team) const {
    using traits = scalar_traits<Scalar>;
    Scalar* x = w + i * keys;
    team.each(keys, [&](i64 j) { x[j] = x[j] * factor; });
    Scalar const top = team_top(static_cast<Scalar const*>(x), keys, team);
    Scalar const shift = shift_of(top);
    team.each(keys, [&](i64 j) { x[j] = traits::exp(x[j] - shift); });
    Scalar const s = team.template sum<Scalar>(keys, [&](i64 j) { return x[j]; });
    team.alone([&] { state[i * row] = s; state[i * row + 1] = top; });
  }
};
/// Scores w become weights, and x, the gradients of the weights by o, those of the scores: see kernel<Scalar,
/// attention_parts_grad>.
template <class Scalar> struct part_grad_at {
  Scalar *w, *x;
  Scalar const* d;                           // gradients of column `head` of the first query's state
  i64 keys, row;
  Scalar factor;
  template <class Team> constexpr void operator()(i64 i, Team const& team) const {
    using traits = scalar_traits<Scalar>;
    Scalar *weight = w + i * keys, *score = x + i * keys;
    Scalar const* g = d + i * row;
    team.each(keys, [&](i64 j) { weight[j] = weight[j] * factor; });
    i64 const place = place_of_top(weight, keys, 1);
    Scalar const shift = traits::exact ? Scalar(0) : shift_of(weight[place]);
    team.each(0, [](i64) {});                // all have looked before weights are overwritten
    team.each(keys, [&](i64 j) {
      weight[j] = traits::exp(weight[j] - shift);
      score[j] = weight[j] * (score[j] + g[0]);
    });
    Scalar const all = team.template sum<Scalar>(keys, [&](i64 j) { return score[j]; });
    team.each(keys, [&](i64 j) {
      Scalar const on_top = !traits::exact && j == place ? g[1] - all : Scalar(0);
      score[j] = (score[j] + on_top) * factor;
    });
  }
};
/// Adds a [rows, columns] block to one whose rows lie `step` apart.
template <class Scalar> struct add_rows_at {
  Scalar const* x;
  Scalar* y;
  i64 columns, step;
  constexpr void operator()(i64 i) const { y[i / columns * step + i % columns] += x[i]; }
};
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, op::attention_parts> {
  static constexpr bool multiplies = true;
  static i64 workspace(op::attention_parts const&, shapes in, shapes) { return in[0].d[1].n * in[1].d[2].n; }
  template <class Device>
  static void run(Device const& d, kernel_call const& c, op::attention_parts const& op) {
    detail::state_block<Scalar> const s(c.out_block[0], op.heads);
    i64 const keys = c.in_block[1].local[2], row = s.heads() * (s.head + 2);
    Scalar const factor = constant_of<Scalar>(1 / std::sqrt(static_cast<double>(s.head)));
    Scalar const *q = detail::operand<Scalar>(c, 0), *k = detail::operand<Scalar>(c, 1),
                 *v = detail::operand<Scalar>(c, 2);
    Scalar *y = detail::result<Scalar>(c), *w = static_cast<Scalar*>(c.workspace);
    s.each_part_and_head([&](i64 at_q, i64 b, i64 p, i64 h) {
      i64 const at_k = (b * s.parts + p) * keys * s.width + h * s.head, at = s.at(b, p, 0, h);
      d.product(detail::one_product<Scalar>(s.queries, keys, s.head, {q + at_q, s.width, 1},
                                            {k + at_k, 1, s.width}, {w, keys, 1}));
      d.teams(s.queries, detail::part_weights_at<Scalar>{w, y + at + s.head, keys, row, factor});
      d.product(detail::one_product<Scalar>(s.queries, s.head, keys, {w, keys, 1}, {v + at_k, s.width, 1},
                                            {y + at, row, 1}));
    });
  }
};
template <class Scalar> struct team_kernel<Scalar, op::attention_parts_grad> {
  static constexpr bool multiplies = true;
  static i64 workspace(op::attention_parts_grad const&, shapes in, shapes) {
    return in[1].d[1].n * (2 * in[2].d[2].n + in[1].d[2].n);
  }
  template <class Device>
  static void run(Device const& d, kernel_call const& c, op::attention_parts_grad const& op) {
    detail::state_block<Scalar> const s(c.in_block[0], op.heads);
    i64 const keys = c.in_block[2].local[2], row = s.heads() * (s.head + 2);
    Scalar const factor = constant_of<Scalar>(1 / std::sqrt(static_cast<double>(s.head)));
    Scalar const *g = detail::operand<Scalar>(c, 0), *q = detail::operand<Scalar>(c, 1),
                 *k = detail::operand<Scalar>(c, 2), *v = detail::operand<Scalar>(c, 3);
    Scalar *dq = detail::result<Scalar>(c, 0), *dk = detail::result<Scalar>(c, 1),
           *dv = detail::result<Scalar>(c, 2);
    Scalar *w = static_cast<Scalar*>(c.workspace), *x = w + s.queries * keys, *one = x + s.queries * keys;
    d.each(c.out_block[0].elements(), detail::fill_at<Scalar>{dq, Scalar(0)});
    auto const multiply_on = [&](i64 m, i64 n, i64 l, matrix_view<Scalar const> a,
                                 matrix_view<Scalar const> b, matrix_view<Scalar> to) {
      d.product(detail::one_product<Scalar>(m, n, l, a, b, to));
    };
    s.each_part_and_head([&](i64 at_q, i64 b, i64 p, i64 h) {
      i64 const at_k = (b * s.parts + p) * keys * s.width + h * s.head, at = s.at(b, p, 0, h);
      multiply_on(s.queries, keys, s.head, {q + at_q, s.width, 1}, {k + at_k, 1, s.width}, {w, keys, 1});
      multiply_on(s.queries, keys, s.head, {g + at, row, 1}, {v + at_k, 1, s.width}, {x, keys, 1});
      d.teams(s.queries, detail::part_grad_at<Scalar>{w, x, g + at + s.head, keys, row, factor});
      multiply_on(keys, s.head, s.queries, {w, 1, keys}, {g + at, row, 1}, {dv + at_k, s.width, 1});
      multiply_on(keys, s.head, s.queries, {x, 1, keys}, {q + at_q, s.width, 1}, {dk + at_k, s.width, 1});
      multiply_on(s.queries, s.head, keys, {x, keys, 1}, {k + at_k, s.width, 1}, {one, s.head, 1});
      d.each(s.queries * s.head, detail::add_rows_at<Scalar>{one, dq + at_q, s.head, s.width});
    });
  }
};

}  // namespace tensorpar::exec
