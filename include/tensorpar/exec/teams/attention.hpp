// tensorpar/exec/teams/attention.hpp - team kernels of multi-head attention: whole heads, any range of queries, one head at a time
#pragma once
#include <tensorpar/exec/attention_heads.hpp>
#include <tensorpar/exec/teams/contraction.hpp>
#include <tensorpar/exec/teams/rows.hpp>
#include <tensorpar/op/attention.hpp>

namespace tensorpar {

namespace detail {
/// Row i of scores becomes softmax(factor * row) over the keys that query i sees, zeros elsewhere.
template <class Scalar> struct masked_softmax_at {
  attention_heads<Scalar> a;
  Scalar* p;
  template <class Team> constexpr void operator()(i64 i, Team const& team) const {
    Scalar* row = p + i * a.keys;
    i64 const n = a.seen(i);
    team.each(a.keys, [&](i64 j) { row[j] = j < n ? row[j] * a.factor : Scalar(0); });
    team_softmax(row, row, n, team);
  }
};
/// With weights p and their gradients s: s = p (s - sum(s p)) factor.
template <class Scalar> struct score_grad_at {
  Scalar const* p;
  Scalar* s;
  i64 keys;
  Scalar factor;
  template <class Team> constexpr void operator()(i64 i, Team const& team) const {
    Scalar const* w = p + i * keys;
    Scalar* x = s + i * keys;
    Scalar const sum = team.template sum<Scalar>(keys, [&](i64 j) { return x[j] * w[j]; });
    team.each(keys, [&](i64 j) { x[j] = w[j] * (x[j] - sum) * factor; });
  }
};
template <class Scalar, class Device>
void attention_weights(Device const& d, attention_heads<Scalar> const& a, Scalar const* q, Scalar const* k, Scalar* p) {
  d.template product<Scalar>(one_product<Scalar>(a.queries, a.keys, a.head, {q, a.width, 1}, {k, 1, a.width}, {p, a.keys, 1}));
  d.teams(a.queries, masked_softmax_at<Scalar>{a, p});
}
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, attention> {
  static i64 workspace(attention const&, shapes in, shapes) { return in[0].d[1].n * in[1].d[1].n; }
  template <class Device> static void run(Device const& d, kernel_call const& c, attention const& op) {
    detail::attention_heads<Scalar> const a(c.in_block[0], c.in_block[1], op.heads, op.causal);
    Scalar const *q = detail::operand<Scalar>(c, 0), *k = detail::operand<Scalar>(c, 1), *v = detail::operand<Scalar>(c, 2);
    Scalar *y = detail::result<Scalar>(c), *p = static_cast<Scalar*>(c.workspace);
    a.each_head([&](i64 at_q, i64 at_k) {
      detail::attention_weights(d, a, q + at_q, k + at_k, p);
      d.template product<Scalar>(
          detail::one_product<Scalar>(a.queries, a.head, a.keys, {p, a.keys, 1}, {v + at_k, a.width, 1}, {y + at_q, a.width, 1}));
    });
  }
};
/// The weights are computed again rather than kept. dP = dY V^T, dS = P (dP - sum(dP P)), dQ = dS K f, dK = dS^T Q f, dV = P^T dY.
template <class Scalar> struct team_kernel<Scalar, attention_grad> {
  static i64 workspace(attention_grad const&, shapes in, shapes) { return 2 * in[1].d[1].n * in[2].d[1].n; }
  template <class Device> static void run(Device const& d, kernel_call const& c, attention_grad const& op) {
    detail::attention_heads<Scalar> const a(c.in_block[1], c.in_block[2], op.heads, op.causal);
    Scalar const *dy = detail::operand<Scalar>(c, 0), *q = detail::operand<Scalar>(c, 1), *k = detail::operand<Scalar>(c, 2),
                 *v = detail::operand<Scalar>(c, 3);
    Scalar *dq = detail::result<Scalar>(c, 0), *dk = detail::result<Scalar>(c, 1), *dv = detail::result<Scalar>(c, 2);
    Scalar *p = static_cast<Scalar*>(c.workspace), *s = p + a.queries * a.keys;
    auto const multiply_on = [&](i64 m, i64 n, i64 l, matrix_view<Scalar const> x, matrix_view<Scalar const> y, matrix_view<Scalar> to) {
      d.template product<Scalar>(detail::one_product<Scalar>(m, n, l, x, y, to));
    };
    a.each_head([&](i64 at_q, i64 at_k) {
      detail::attention_weights(d, a, q + at_q, k + at_k, p);
      multiply_on(a.keys, a.head, a.queries, {p, 1, a.keys}, {dy + at_q, a.width, 1}, {dv + at_k, a.width, 1});
      multiply_on(a.queries, a.keys, a.head, {dy + at_q, a.width, 1}, {v + at_k, 1, a.width}, {s, a.keys, 1});
      d.teams(a.queries, detail::score_grad_at<Scalar>{p, s, a.keys, a.factor});
      multiply_on(a.queries, a.head, a.keys, {s, a.keys, 1}, {k + at_k, a.width, 1}, {dq + at_q, a.width, 1});
      multiply_on(a.keys, a.head, a.queries, {s, 1, a.keys}, {q + at_q, a.width, 1}, {dk + at_k, a.width, 1});
    });
  }
};

}  // namespace tensorpar
