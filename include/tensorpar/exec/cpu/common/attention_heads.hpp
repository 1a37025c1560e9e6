// tensorpar/exec/cpu/common/attention_heads.hpp - how the heads of a block of attention lie in memory
#pragma once
#include <cmath>
#include <tensorpar/exec/device/kernel.hpp>
#include <tensorpar/exec/device/scalar.hpp>
#include <tensorpar/op/attention/packed.hpp>

namespace tensorpar::exec::detail {

/// Which of its kinds an operator of attention is. packed: q, k and v are one tensor, and so are their
/// gradients; kept: with log-sum-exps.
template <class Op> struct attention_form {
  static constexpr bool kept = one_of<Op, op::attention_with_lse, op::attention_grad_from_lse,
                                      packed_attention_with_lse, packed_attention_grad_from_lse>;
  static constexpr bool gradient = one_of<Op, attention_grad, op::attention_grad_from_lse,
                                          packed_attention_grad, packed_attention_grad_from_lse>;
  static constexpr bool packed = one_of<Op, packed_attention, packed_attention_grad,
                                        packed_attention_with_lse, packed_attention_grad_from_lse>;
  static constexpr bool known = packed || gradient || one_of<Op, attention, op::attention_with_lse>;
  /// Which operand q is, k, and what follows the values: y and log-sum-exps, if kept.
  static constexpr int q = gradient ? 1 : 0, k = packed ? q : q + 1, more = packed ? q + 1 : q + 3;
};

/// q, k and v, or their gradients.
template <class T> struct attention_operands {
  T *q, *k, *v;
};
/// Where a head of one batch element begins: in q and its gradient, in those of k and v, in y and its
/// gradient.
struct head_place {
  i64 q, k, y;
};

/// One head of one batch element at a time; the block may hold some heads and some queries.
template <class Scalar> struct attention_heads {
  i64 batches, queries, keys, width, head, first_query;
  // of q, k and v: from a row to the next, and from a head to the next; of y that is width and head
  i64 row, next;
  Scalar factor;               // 1 / sqrt(head width)
  bool causal, packed;

  /// in_one: q and k are the one block of queries, keys and values.
  attention_heads(op::tensor_block const& q, op::tensor_block const& k, i64 heads, bool masked,
                  bool in_one = false)
      : batches(q.local[0]),
        queries(q.local[1]),
        keys(k.local[1]),
        width(q.local[2] / (in_one ? 3 : 1)),
        head(q.global[2] / (in_one ? 3 : 1) / heads),
        first_query(q.offset[1]),
        row(q.local[2]),
        next(in_one ? 3 * head : head),
        factor(constant_of<Scalar>(1 / std::sqrt(static_cast<double>(head)))),
        causal(masked),
        packed(in_one) {}
  template <class Op, class Form = attention_form<Op>>
  attention_heads(kernel_call const& c, Op const& op)
      : attention_heads(c.in_block[Form::q], c.in_block[Form::k], op.heads, op.causal, Form::packed) {}

  constexpr i64 heads() const { return head ? width / head : 0; }
  /// Keys that query i sees.
  constexpr i64 seen(i64 i) const {
    return causal && first_query + i + 1 < keys ? first_query + i + 1 : keys;
  }
  /// Three tensors of a call (operands or results), or the one that holds them.
  template <class T, class P> attention_operands<T> three(P const* tensors) const {
    T* const q = static_cast<T*>(tensors[0]);
    if (packed) return {q, q + head, q + 2 * head};
    return {q, static_cast<T*>(tensors[1]), static_cast<T*>(tensors[2])};
  }
  constexpr head_place place(i64 b, i64 h) const {
    return {b * queries * row + h * next, b * keys * row + h * next, b * queries * width + h * head};
  }
  /// Calls visit(head_place) for every head of every batch element.
  template <class Visit> void each_head(Visit&& visit) const {
    for (i64 b = 0; b < batches; ++b)
      for (i64 h = 0; h < heads(); ++h) visit(place(b, h));
  }
};

}  // namespace tensorpar::exec::detail
