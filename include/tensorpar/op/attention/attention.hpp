// tensorpar/op/attention/attention.hpp - multi-head scaled dot-product attention as one operator
#pragma once
#include <tensorpar/op/core/any_op.hpp>

namespace tensorpar {

/// Operands dy, q, k, v; results dq, dk, dv.
struct attention_grad {
  i64 heads;
  bool causal = false;
  static constexpr auto name = "attention_grad";
  static constexpr auto work = op::work_kind::attention;
  static constexpr auto notation = "bqe, bqe, bKe, bKe -> bqe, bKe, bKe";
  static constexpr int arity = 4;
  static constexpr void describe(auto& s, auto&& visit) {
    visit("heads", s.heads);
    visit("causal", s.causal);
  }
  constexpr i64 units(char letter, shapes) const { return letter == 'e' ? heads : 0; }
  constexpr op::inference infer(shapes in) const { return {in[1], in[2], in[3]}; }
  constexpr double flops(shapes in, shapes) const {
    return (causal ? 5.0 : 10.0) * static_cast<double>(in[0].elements()) * static_cast<double>(in[2].d[1].n);
  }
};
/// softmax(q k^T / sqrt(width / heads)) v per head. q: [b, q, e]; k, v: [b, k, e]; e = heads * head width, so
/// e splits by whole heads; queries split freely. causal: query i sees keys up to i (logical index).
struct attention {
  i64 heads;
  bool causal = false;
  static constexpr auto name = "attention";
  static constexpr auto work = op::work_kind::attention;
  static constexpr auto notation = "bqe, bKe, bKe -> bqe";
  static constexpr int arity = 3;
  static constexpr void describe(auto& s, auto&& visit) {
    visit("heads", s.heads);
    visit("causal", s.causal);
  }
  constexpr i64 units(char letter, shapes) const { return letter == 'e' ? heads : 0; }
  constexpr op::inference infer(shapes in) const {
    if (in[0].rank != 3) return op::mismatch("attention takes [batch,seq,hidden]", in[0], in[1]);
    if (in[1].rank != 3 || !fits(in[0].d[0], in[1].d[0]))
      return op::mismatch("query and key batches differ", in[0], in[1]);
    if (!fits(in[0].last(), in[1].last())) return op::mismatch("query and key widths differ", in[0], in[1]);
    if (!fits(in[1], in[2])) return op::mismatch("key and value differ", in[1], in[2]);
    if (heads < 1 || in[0].last().n % heads)
      return op::mismatch("width not divisible by heads", in[0], shape{dim(heads)});
    return in[0];
  }
  constexpr double flops(shapes in, shapes) const {
    return (causal ? 2.0 : 4.0) * static_cast<double>(in[0].elements()) * static_cast<double>(in[1].d[1].n);
  }
  [[gnu::cold]] void derive(auto& g) const {
    if (!g.wanted(0) && !g.wanted(1) && !g.wanted(2)) return;
    auto const d =
        g.emit(attention_grad{heads, causal}, {g.gradient(0), g.operand(0), g.operand(1), g.operand(2)});
    for (int i = 0; i < 3; ++i) if (g.wanted(i)) g.give(i, d + i);
  }
};

}  // namespace tensorpar
