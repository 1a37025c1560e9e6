// tensorpar/exec/kernels_attention.hpp - kernels of multi-head attention: whole heads, any range of queries
#pragma once
#include <tensorpar/exec/eigen_gemm.hpp>
#include <tensorpar/exec/kernels_reduction.hpp>
#include <tensorpar/op/attention.hpp>

namespace tensorpar {

namespace detail {
/// One head of one batch element at a time; the block may hold some heads and some queries.
template <class Scalar> struct attention_block {
  i64 batches, queries, keys, width, head, first_query;
  Scalar factor;                                               // 1 / sqrt(head width)
  bool causal;
  attention_block(tensor_block const& q, tensor_block const& k, i64 heads, bool masked)
      : batches(q.local[0]), queries(q.local[1]), keys(k.local[1]), width(q.local[2]), head(q.global[2] / heads), first_query(q.offset[1]),
        factor(scalar_traits<Scalar>::from_double(1 / std::sqrt(static_cast<double>(head)))), causal(masked) {}
  i64 q_at(i64 b, i64 h) const { return b * queries * width + h * head; }
  i64 k_at(i64 b, i64 h) const { return b * keys * width + h * head; }
  /// Keys that query i sees.
  i64 seen(i64 i) const { return causal && first_query + i + 1 < keys ? first_query + i + 1 : keys; }
  /// p[queries, keys] = softmax(factor * q k^T) with zeros where a key is not seen.
  void weights(Scalar const* q, Scalar const* k, Scalar* p) const {
    multiply<Scalar>(queries, keys, head, {q, width, 1}, {k, 1, width}, {p, keys, 1});
    for (i64 i = 0; i < queries; ++i) {
      Scalar* row = p + i * keys;
      i64 const n = seen(i);
      for (i64 j = 0; j < n; ++j) row[j] = row[j] * factor;
      softmax_row(row, row, n);
      for (i64 j = n; j < keys; ++j) row[j] = Scalar(0);
    }
  }
};
}  // namespace detail

template <class Scalar> struct kernel<Scalar, attention> {
  static i64 workspace(attention const&, shapes in, shapes) { return in[0].d[1].n * in[1].d[1].n; }
  static void run(kernel_call const& c, attention const& op) {
    detail::attention_block<Scalar> const a(c.in_block[0], c.in_block[1], op.heads, op.causal);
    Scalar const *q = detail::operand<Scalar>(c, 0), *k = detail::operand<Scalar>(c, 1), *v = detail::operand<Scalar>(c, 2);
    Scalar *y = detail::result<Scalar>(c), *p = static_cast<Scalar*>(c.workspace);
    for (i64 b = 0; b < a.batches; ++b)
      for (i64 h = 0; h * a.head < a.width; ++h) {
        i64 const at_q = a.q_at(b, h), at_k = a.k_at(b, h);
        a.weights(q + at_q, k + at_k, p);
        multiply<Scalar>(a.queries, a.head, a.keys, {p, a.keys, 1}, {v + at_k, a.width, 1}, {y + at_q, a.width, 1});
      }
  }
};
/// The weights are computed again rather than kept. dP = dY V^T, dS = P (dP - sum(dP P)), dQ = dS K f, dK = dS^T Q f, dV = P^T dY.
template <class Scalar> struct kernel<Scalar, attention_grad> {
  static i64 workspace(attention_grad const&, shapes in, shapes) { return 2 * in[1].d[1].n * in[2].d[1].n; }
  static void run(kernel_call const& c, attention_grad const& op) {
    detail::attention_block<Scalar> const a(c.in_block[1], c.in_block[2], op.heads, op.causal);
    Scalar const *d = detail::operand<Scalar>(c, 0), *q = detail::operand<Scalar>(c, 1), *k = detail::operand<Scalar>(c, 2),
                 *v = detail::operand<Scalar>(c, 3);
    Scalar *dq = detail::result<Scalar>(c, 0), *dk = detail::result<Scalar>(c, 1), *dv = detail::result<Scalar>(c, 2);
    Scalar *p = static_cast<Scalar*>(c.workspace), *s = p + a.queries * a.keys;
    for (i64 b = 0; b < a.batches; ++b)
      for (i64 h = 0; h * a.head < a.width; ++h) {
        i64 const at_q = a.q_at(b, h), at_k = a.k_at(b, h);
        a.weights(q + at_q, k + at_k, p);
        multiply<Scalar>(a.keys, a.head, a.queries, {p, 1, a.keys}, {d + at_q, a.width, 1}, {dv + at_k, a.width, 1});
        multiply<Scalar>(a.queries, a.keys, a.head, {d + at_q, a.width, 1}, {v + at_k, 1, a.width}, {s, a.keys, 1});
        for (i64 i = 0; i < a.queries; ++i) {
          Scalar *x = s + i * a.keys, *w = p + i * a.keys;
          Scalar const sum = detail::sum_of<Scalar>(a.keys, [x, w](i64 j) { return x[j] * w[j]; });
          for (i64 j = 0; j < a.keys; ++j) x[j] = w[j] * (x[j] - sum) * a.factor;
        }
        multiply<Scalar>(a.queries, a.head, a.keys, {s, a.keys, 1}, {k + at_k, a.width, 1}, {dq + at_q, a.width, 1});
        multiply<Scalar>(a.keys, a.head, a.queries, {s, 1, a.keys}, {q + at_q, a.width, 1}, {dk + at_k, a.width, 1});
      }
  }
};

}  // namespace tensorpar
