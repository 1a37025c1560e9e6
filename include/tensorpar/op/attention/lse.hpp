// tensorpar/op/attention/lse.hpp - attention that leaves its log-sum-exp behind, and the gradient that starts
// from it
#pragma once
#include <tensorpar/op/attention/attention.hpp>

namespace tensorpar::op {

/// attention, and for every query of every head the logarithm of the sum of its weights, e to the scores: lse
/// [b, heads, q] in f32. With it and y at hand no gradient computes softmax's sums again (Dao 2023, section
/// 3.1). Programs have these two where a backend gains by them (program/keep_lse.hpp); graphs do not.
struct attention_with_lse {
  i64 heads;
  bool causal = false;
  static constexpr auto name = "attention_with_lse";
  static constexpr auto work = op::work_kind::attention;
  static constexpr auto notation = "bqe, bKe, bKe -> bqe, beq";
  static constexpr int arity = 3;
  static constexpr void describe(auto& s, auto&& visit) {
    visit("heads", s.heads);
    visit("causal", s.causal);
  }
  constexpr i64 units(char letter, shapes) const { return letter == 'e' ? heads : 0; }
  constexpr inference infer(shapes in) const {
    inference r = attention{heads, causal}.infer(in);
    if (r.ok()) r.out[r.n++] = {in[0].d[0], dim(heads), in[0].d[1]};
    return r;
  }
  constexpr double flops(shapes in, shapes y) const { return attention{heads, causal}.flops(in, y); }
};
/// Operands dy, q, k, v, y, lse; results dq, dk, dv.
struct attention_grad_from_lse : attention_grad {
  static constexpr auto name = "attention_grad_from_lse";
  static constexpr auto notation = "bqe, bqe, bKe, bKe, bqe, beq -> bqe, bKe, bKe";
  static constexpr int arity = 6;
};

}  // namespace tensorpar::op
