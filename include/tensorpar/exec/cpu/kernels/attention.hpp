// tensorpar/exec/cpu/kernels/attention.hpp - kernels of multi-head attention: whole heads, any range of
// queries
#pragma once
#include <tensorpar/exec/cpu/common/attention_heads.hpp>
#include <tensorpar/exec/cpu/common/eigen_gemm.hpp>
#include <tensorpar/exec/cpu/kernels/reduction.hpp>

namespace tensorpar::exec {

namespace detail {
/// p[queries, keys] = softmax(factor * q k^T) with zeros where a key is not seen.
template <class Scalar>
void attention_weights(attention_heads<Scalar> const& a, Scalar const* q, Scalar const* k, Scalar* p) {
  multiply<Scalar>(a.queries, a.keys, a.head, {q, a.row, 1}, {k, 1, a.row}, {p, a.keys, 1});
  for (i64 i = 0; i < a.queries; ++i) {
    Scalar* row = p + i * a.keys;
    i64 const n = a.seen(i);
    for (i64 j = 0; j < n; ++j) row[j] = row[j] * a.factor;
    softmax_row(row, row, n);
    for (i64 j = n; j < a.keys; ++j) row[j] = Scalar(0);
  }
}
/// p: room for a head's weights.
template <class Scalar>
void attend(attention_heads<Scalar> const& a, attention_operands<Scalar const> const& x, Scalar* y,
            Scalar* p) {
  a.each_head([&](head_place const& at) {
    attention_weights(a, x.q + at.q, x.k + at.k, p);
    multiply<Scalar>(a.queries, a.head, a.keys, {p, a.keys, 1}, {x.v + at.k, a.row, 1},
                     {y + at.y, a.width, 1});
  });
}
/// The weights are computed again rather than kept. dP = dY V^T, dS = P (dP - sum(dP P)), dQ = dS K f, dK =
/// dS^T Q f, dV = P^T dY. p: room for a head's weights and their gradients.
template <class Scalar>
void attend_back(attention_heads<Scalar> const& a, Scalar const* dy,
                 attention_operands<Scalar const> const& x, attention_operands<Scalar> const& dx, Scalar* p) {
  Scalar* const s = p + a.queries * a.keys;
  a.each_head([&](head_place const& at) {
    Scalar const* const d = dy + at.y;
    attention_weights(a, x.q + at.q, x.k + at.k, p);
    multiply<Scalar>(a.keys, a.head, a.queries, {p, 1, a.keys}, {d, a.width, 1}, {dx.v + at.k, a.row, 1});
    multiply<Scalar>(a.queries, a.keys, a.head, {d, a.width, 1}, {x.v + at.k, 1, a.row}, {s, a.keys, 1});
    for (i64 i = 0; i < a.queries; ++i) {
      Scalar *g = s + i * a.keys, *w = p + i * a.keys;
      Scalar const sum = sum_of<Scalar>(a.keys, [g, w](i64 j) { return g[j] * w[j]; });
      for (i64 j = 0; j < a.keys; ++j) g[j] = w[j] * (g[j] - sum) * a.factor;
    }
    multiply<Scalar>(a.queries, a.head, a.keys, {s, a.keys, 1}, {x.k + at.k, a.row, 1},
                     {dx.q + at.q, a.row, 1});
    multiply<Scalar>(a.keys, a.head, a.queries, {s, 1, a.keys}, {x.q + at.q, a.row, 1},
                     {dx.k + at.k, a.row, 1});
  });
}
}  // namespace detail

template <class Scalar, class Op>
  requires detail::one_of<Op, attention, packed_attention>
struct kernel<Scalar, Op> {
  using form = detail::attention_form<Op>;
  static i64 workspace(Op const&, shapes in, shapes) { return in[form::q].d[1].n * in[form::k].d[1].n; }
  static void run(kernel_call const& c, Op const& op) {
    detail::attention_heads<Scalar> const a(c, op);
    detail::attend(a, a.template three<Scalar const>(c.in), detail::result<Scalar>(c),
                   static_cast<Scalar*>(c.workspace));
  }
};
template <class Scalar, class Op>
  requires detail::one_of<Op, attention_grad, packed_attention_grad>
struct kernel<Scalar, Op> {
  using form = detail::attention_form<Op>;
  static i64 workspace(Op const&, shapes in, shapes) { return 2 * in[form::q].d[1].n * in[form::k].d[1].n; }
  static void run(kernel_call const& c, Op const& op) {
    detail::attention_heads<Scalar> const a(c, op);
    detail::attend_back(a, detail::operand<Scalar>(c, 0), a.template three<Scalar const>(c.in + form::q),
                        a.template three<Scalar>(c.out), static_cast<Scalar*>(c.workspace));
  }
};

}  // namespace tensorpar::exec
