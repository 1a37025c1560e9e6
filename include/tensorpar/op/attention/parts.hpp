// tensorpar/op/attention/parts.hpp - attention over keys and values in parts, and the monoid that puts the
// parts together
#pragma once
#include <tensorpar/op/core/any_op.hpp>

namespace tensorpar::op {

/// Attention to a set of keys leaves a state (o, l, m) per query and head of width w. o holds w sums of
/// weighted values, l the sum of the weights, and m the largest score. Every weight was divided by the
/// exponential of m. Two sets make
///   (o, l, m) (+) (o', l', m') = (o e^(m-n) + o' e^(m'-n), l e^(m-n) + l' e^(m'-n), n), n = max(m, m'),
/// which is associative and commutative. So sets may be put together in any order and any place. o / l is the
/// attention to all of them (Milakov and Gimelshein 2018; Dao et al. 2022, section 3).
/// A state tensor is [batch, part, query, heads * (w + 2)], the columns of a head being o, then l, then m.
namespace detail {
constexpr i64 state_width(i64 width, i64 heads) { return width + 2 * heads; }
constexpr i64 value_width(i64 state, i64 heads) { return state - 2 * heads; }
/// A complaint about a state; ok() where there is none.
constexpr inference state_of(char const* operators, shape const& x, i64 heads) {
  if (x.rank != 4) return mismatch(operators, x, scalar);
  if (heads < 1 || x.last().n % heads || x.last().n / heads < 3)
    return mismatch("not a state of that many heads", x, shape{dim(heads)});
  return x;
}
}  // namespace detail

/// Operands dstate, q, k, v; results dq, dk, dv.
struct attention_parts_grad {
  i64 heads;
  static constexpr auto name = "attention_parts_grad";
  static constexpr auto work = op::work_kind::attention;
  static constexpr auto notation = "bpqe, bqe, bpKe, bpKe -> bqe, bpKe, bpKe";
  static constexpr int arity = 4;
  static constexpr void describe(auto& s, auto&& visit) { visit("heads", s.heads); }
  constexpr i64 units(char letter, shapes) const { return letter == 'e' ? heads : 0; }
  constexpr inference infer(shapes in) const { return {in[1], in[2], in[3]}; }
  constexpr double flops(shapes in, shapes) const {
    return 10.0 * static_cast<double>(in[1].elements()) * static_cast<double>(in[2].d[1].n * in[2].d[2].n);
  }
};
/// The states of attention (not causal) to each part of the keys. q: [batch, query, e]; k, v: [batch, part,
/// key, e]; parts and heads split freely, queries too.
struct attention_parts {
  i64 heads;
  static constexpr auto name = "attention_parts";
  static constexpr auto work = op::work_kind::attention;
  static constexpr auto notation = "bqe, bpKe, bpKe -> bpqe";
  static constexpr int arity = 3;
  static constexpr void describe(auto& s, auto&& visit) { visit("heads", s.heads); }
  constexpr i64 units(char letter, shapes) const { return letter == 'e' ? heads : 0; }
  constexpr inference infer(shapes in) const {
    shape const &q = in[0], &k = in[1];
    if (q.rank != 3) return mismatch("attention_parts takes [batch,seq,hidden]", q, k);
    if (k.rank != 4 || !fits(q.d[0], k.d[0]))
      return mismatch("keys and values are [batch,part,seq,hidden]", q, k);
    if (!fits(q.last(), k.last())) return mismatch("query and key widths differ", q, k);
    if (!fits(k, in[2])) return mismatch("key and value differ", k, in[2]);
    if (heads < 1 || q.last().n % heads)
      return mismatch("width not divisible by heads", q, shape{dim(heads)});
    shape r{q.d[0], k.d[1], q.d[1], dim(detail::state_width(q.last().n, heads))};
    r.type = q.type;
    return r;
  }
  constexpr double flops(shapes in, shapes) const {
    return 4.0 * static_cast<double>(in[0].elements()) * static_cast<double>(in[1].d[1].n * in[1].d[2].n);
  }
  [[gnu::cold]] void derive(auto& g) const {
    if (!g.wanted(0) && !g.wanted(1) && !g.wanted(2)) return;
    auto const d =
        g.emit(attention_parts_grad{heads}, {g.gradient(0), g.operand(0), g.operand(1), g.operand(2)});
    for (int i = 0; i < 3; ++i) if (g.wanted(i)) g.give(i, d + i);
  }
};

/// Operands dy, x; result dx.
struct softmax_merge_grad {
  i64 heads, parts;
  static constexpr auto name = "softmax_merge_grad";
  static constexpr auto notation = "bpqe, bpqe -> bpqe";
  static constexpr int arity = 2;
  static constexpr void describe(auto& s, auto&& visit) { visit("heads", s.heads); visit("parts", s.parts); }
  constexpr i64 units(char letter, shapes) const { return letter == 'e' ? heads : letter == 'p' ? parts : 0; }
  constexpr inference infer(shapes in) const { return in[1]; }
  constexpr double flops(shapes in, shapes) const { return 2.0 * static_cast<double>(in[1].elements()); }
};
/// Puts states together until `parts` are left, neighbours first.
struct softmax_merge {
  i64 heads, parts = 1;
  static constexpr auto name = "softmax_merge";
  static constexpr auto notation = "bpqe -> bpqe";
  static constexpr void describe(auto& s, auto&& visit) { visit("heads", s.heads); visit("parts", s.parts); }
  constexpr i64 units(char letter, shapes) const { return letter == 'e' ? heads : letter == 'p' ? parts : 0; }
  constexpr inference infer(shapes in) const {
    inference const bad = detail::state_of("softmax_merge takes [batch,part,seq,state]", in[0], heads);
    if (!bad.ok()) return bad;
    if (parts < 1 || in[0].d[1].n % parts)
      return mismatch("parts left do not divide the parts", in[0], shape{dim(parts)});
    return in[0].with(1, dim(parts));
  }
  constexpr double flops(shapes in, shapes) const { return 2.0 * static_cast<double>(in[0].elements()); }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(0)) g.give(0, g.emit(softmax_merge_grad{heads, parts}, {g.gradient(0), g.operand(0)}));
  }
};

/// Operands dy, x, y; result dx.
struct attention_finish_grad {
  i64 heads;
  static constexpr auto name = "attention_finish_grad";
  static constexpr auto notation = "bqe, bPqe, bqe -> bPqe";
  static constexpr int arity = 3;
  static constexpr void describe(auto& s, auto&& visit) { visit("heads", s.heads); }
  constexpr i64 units(char letter, shapes) const { return letter == 'e' ? heads : 0; }
  constexpr inference infer(shapes in) const { return in[1]; }
  constexpr double flops(shapes in, shapes) const { return 5.0 * static_cast<double>(in[1].elements()); }
};
/// Puts all states together and gives o / l: [batch, part, query, heads * (w + 2)] -> [batch, query, heads *
/// w].
struct attention_finish {
  i64 heads;
  static constexpr auto name = "attention_finish";
  static constexpr auto notation = "bPqe -> bqe";
  static constexpr void describe(auto& s, auto&& visit) { visit("heads", s.heads); }
  constexpr i64 units(char letter, shapes) const { return letter == 'e' ? heads : 0; }
  constexpr inference infer(shapes in) const {
    inference const bad = detail::state_of("attention_finish takes [batch,part,seq,state]", in[0], heads);
    if (!bad.ok()) return bad;
    shape r{in[0].d[0], in[0].d[2], dim(detail::value_width(in[0].last().n, heads))};
    r.type = in[0].type;
    return r;
  }
  constexpr double flops(shapes in, shapes) const { return 3.0 * static_cast<double>(in[0].elements()); }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(0))
      g.give(0, g.emit(attention_finish_grad{heads}, {g.gradient(0), g.operand(0), g.result(0)}));
  }
};

}  // namespace tensorpar::op
