// tensorpar/exec/kernels_attention.hpp - kernels of multi-head attention: whole heads, any range of queries
#pragma once
#include <tensorpar/exec/attention_heads.hpp>
#include <tensorpar/exec/eigen_gemm.hpp>
#include <tensorpar/exec/kernels_reduction.hpp>
#include <tensorpar/op/attention.hpp>

namespace tensorpar {

namespace detail {
/// p[queries, keys] = softmax(factor * q k^T) with zeros where a key is not seen.
template <class Scalar> void attention_weights(attention_heads<Scalar> const& a, Scalar const* q, Scalar const* k, Scalar* p) {
  multiply<Scalar>(a.queries, a.keys, a.head, {q, a.width, 1}, {k, 1, a.width}, {p, a.keys, 1});
  for (i64 i = 0; i < a.queries; ++i) {
    Scalar* row = p + i * a.keys;
    i64 const n = a.seen(i);
    for (i64 j = 0; j < n; ++j) row[j] = row[j] * a.factor;
    softmax_row(row, row, n);
    for (i64 j = n; j < a.keys; ++j) row[j] = Scalar(0);
  }
}
}  // namespace detail

template <class Scalar> struct kernel<Scalar, attention> {
  static i64 workspace(attention const&, shapes in, shapes) { return in[0].d[1].n * in[1].d[1].n; }
  static void run(kernel_call const& c, attention const& op) {
    detail::attention_heads<Scalar> const a(c.in_block[0], c.in_block[1], op.heads, op.causal);
    Scalar const *q = detail::operand<Scalar>(c, 0), *k = detail::operand<Scalar>(c, 1), *v = detail::operand<Scalar>(c, 2);
    Scalar *y = detail::result<Scalar>(c), *p = static_cast<Scalar*>(c.workspace);
    a.each_head([&](i64 at_q, i64 at_k) {
      detail::attention_weights(a, q + at_q, k + at_k, p);
      multiply<Scalar>(a.queries, a.head, a.keys, {p, a.keys, 1}, {v + at_k, a.width, 1}, {y + at_q, a.width, 1});
    });
  }
};
/// The weights are computed again rather than kept. dP = dY V^T, dS = P (dP - sum(dP P)), dQ = dS K f, dK = dS^T Q f, dV = P^T dY.
template <class Scalar> struct kernel<Scalar, attention_grad> {
  static i64 workspace(attention_grad const&, shapes in, shapes) { return 2 * in[1].d[1].n * in[2].d[1].n; }
  static void run(kernel_call const& c, attention_grad const& op) {
    detail::attention_heads<Scalar> const a(c.in_block[1], c.in_block[2], op.heads, op.causal);
    Scalar const *d = detail::operand<Scalar>(c, 0), *q = detail::operand<Scalar>(c, 1), *k = detail::operand<Scalar>(c, 2),
                 *v = detail::operand<Scalar>(c, 3);
    Scalar *dq = detail::result<Scalar>(c, 0), *dk = detail::result<Scalar>(c, 1), *dv = detail::result<Scalar>(c, 2);
    Scalar *p = static_cast<Scalar*>(c.workspace), *s = p + a.queries * a.keys;
    a.each_head([&](i64 at_q, i64 at_k) {
      detail::attention_weights(a, q + at_q, k + at_k, p);
      multiply<Scalar>(a.keys, a.head, a.queries, {p, 1, a.keys}, {d + at_q, a.width, 1}, {dv + at_k, a.width, 1});
      multiply<Scalar>(a.queries, a.keys, a.head, {d + at_q, a.width, 1}, {v + at_k, 1, a.width}, {s, a.keys, 1});
      for (i64 i = 0; i < a.queries; ++i) {
        Scalar *x = s + i * a.keys, *w = p + i * a.keys;
        Scalar const sum = detail::sum_of<Scalar>(a.keys, [x, w](i64 j) { return x[j] * w[j]; });
        for (i64 j = 0; j < a.keys; ++j) x[j] = w[j] * (x[j] - sum) * a.factor;
      }
      multiply<Scalar>(a.queries, a.head, a.keys, {s, a.keys, 1}, {k + at_k, a.width, 1}, {dq + at_q, a.width, 1});
      multiply<Scalar>(a.keys, a.head, a.queries, {s, 1, a.keys}, {q + at_q, a.width, 1}, {dk + at_k, a.width, 1});
    });
  }
};

}  // namespace tensorpar
