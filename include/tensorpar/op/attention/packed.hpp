// tensorpar/op/attention/packed.hpp - attention of a tensor to itself, whose queries, keys and values one
// linear operator makes
#pragma once
#include <tensorpar/op/attention/lse.hpp>

namespace tensorpar {

/// Operands dy, x; result dx.
struct packed_attention_grad {
  i64 heads;
  bool causal = false;
  static constexpr auto name = "packed_attention_grad";
  static constexpr auto work = op::work_kind::attention;
  static constexpr auto notation = "bSe, bSe -> bSe";
  static constexpr int arity = 2;
  static constexpr void describe(auto& s, auto&& visit) {
    visit("heads", s.heads);
    visit("causal", s.causal);
  }
  constexpr i64 units(char letter, shapes) const { return letter == 'e' ? heads : 0; }
  constexpr op::inference infer(shapes in) const { return in[1]; }
  constexpr double flops(shapes in, shapes) const {
    return (causal ? 5.0 : 10.0) * static_cast<double>(in[0].elements()) * static_cast<double>(in[0].d[1].n);
  }
};
/// attention{heads, causal} of q, k and v side by side: [b, s, 3e] -> [b, s, e], e = heads * head width.
/// Columns of a head are its queries, then its keys, then its values: so whole heads, by which it splits
/// (Shoeybi et al. 2019, section 3), are equal blocks of them. Three linear operators' work is one product,
/// `linear{3 * e} | packed_attention{.heads = h}`, and so is each of its gradients. Weights from elsewhere
/// often have all queries first, then all keys: with w = head width, row (3 h + n) w + i is theirs of n e + h
/// w + i.
struct packed_attention {
  i64 heads;
  bool causal = false;
  static constexpr auto name = "packed_attention";
  static constexpr auto work = op::work_kind::attention;
  static constexpr auto notation = "bSe -> bSe";
  static constexpr void describe(auto& s, auto&& visit) {
    visit("heads", s.heads);
    visit("causal", s.causal);
  }
  constexpr i64 units(char letter, shapes) const { return letter == 'e' ? heads : 0; }
  constexpr op::inference infer(shapes in) const {
    shape r = in[0];
    if (r.rank != 3) return op::mismatch("packed_attention takes [batch,seq,3 hidden]", r, scalar);
    if (heads < 1 || r.last().n % (3 * heads))
      return op::mismatch("width not divisible by three times the heads", r, shape{dim(3 * heads)});
    r.d[2] = dim(r.d[2].n / 3);
    return r;
  }
  constexpr double flops(shapes in, shapes y) const {
    return (causal ? 2.0 : 4.0) * static_cast<double>(y[0].elements()) * static_cast<double>(in[0].d[1].n);
  }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(0)) g.give(0, g.emit(packed_attention_grad{heads, causal}, {g.gradient(0), g.operand(0)}));
  }
};

/// As attention_with_lse (op/attention/lse.hpp): results y and lse [b, heads, s].
struct packed_attention_with_lse {
  i64 heads;
  bool causal = false;
  static constexpr auto name = "packed_attention_with_lse";
  static constexpr auto notation = "bSe -> bSe, beS";
  static constexpr void describe(auto& s, auto&& visit) {
    visit("heads", s.heads);
    visit("causal", s.causal);
  }
  constexpr i64 units(char letter, shapes) const { return letter == 'e' ? heads : 0; }
  constexpr op::inference infer(shapes in) const {
    op::inference r = packed_attention{heads, causal}.infer(in);
    if (r.ok()) r.out[r.n++] = {in[0].d[0], dim(heads), in[0].d[1]};
    return r;
  }
  constexpr double flops(shapes in, shapes y) const { return packed_attention{heads, causal}.flops(in, y); }
};
/// Operands dy, x, y, lse; result dx.
struct packed_attention_grad_from_lse : packed_attention_grad {
  static constexpr auto name = "packed_attention_grad_from_lse";
  static constexpr auto notation = "bSe, bSe, bSe, beS -> bSe";
  static constexpr int arity = 4;
};

/// Of three tensors or of one?
inline bool is_attention(op::any_op const& o) { return o.is<attention>() || o.is<packed_attention>(); }
inline bool is_attention_grad(op::any_op const& o) {
  return o.is<attention_grad>() || o.is<packed_attention_grad>();
}
/// Does it leave log-sum-exps, or start from them?
inline bool has_lse(op::any_op const& o) {
  return o.is<op::attention_with_lse>() || o.is<op::attention_grad_from_lse>() ||
      o.is<packed_attention_with_lse>() || o.is<packed_attention_grad_from_lse>();
}

}  // namespace tensorpar
