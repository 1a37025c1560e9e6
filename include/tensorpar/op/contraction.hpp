// tensorpar/op/contraction.hpp - operators that sum over an index: matrix products, einsum
#pragma once
#include <tensorpar/op/any_op.hpp>

namespace tensorpar {

/// A product of one or two tensors summed over the letters missing on the right: "mk,kn->mn", "nhwo->o". Every letter is one axis.
/// Its notation is its only attribute (32 characters, eight to a word), and its derivative permutes the operands.
struct contraction {
  u64 text[4]{};
  static constexpr auto name = "contraction";
  static constexpr int arity = -1;
  constexpr contraction() = default;
  [[gnu::noinline]] constexpr explicit contraction(std::string_view s) {
    if (s.size() > 32) throw "contraction: at most 32 characters";
    for (std::size_t i = 0; i < s.size(); ++i) text[i / 8] |= static_cast<u64>(static_cast<unsigned char>(s[i])) << (8 * (i % 8));
  }
  static constexpr void describe(auto& s, auto&& visit) {
    visit("n0", s.text[0]);
    visit("n1", s.text[1]);
    visit("n2", s.text[2]);
    visit("n3", s.text[3]);
  }
  [[gnu::noinline]] constexpr notation_text spelled() const {
    notation_text t;
    for (int i = 0; i < 32; ++i) if (char const c = static_cast<char>(text[i / 8] >> (8 * (i % 8)) & 255)) t.put(c);
    return t;
  }
  constexpr notation_text notation_for(shapes) const { return spelled(); }
  constexpr inference infer(shapes in) const {
    loops const l = parse_notation(spelled().view());
    if (l.operands != in.n) return mismatch("contraction: wrong number of operands", in.n ? in[0] : scalar, scalar);
    shape r{};
    for (int i = 0; i < l.n; ++i) {
      dim d{};
      int first = -1;
      for (int k = 0; k < in.n; ++k) {
        if (l.l[i].in[k] < 0) continue;
        if (l.l[i].in[k] >= in[k].rank) return mismatch("contraction: rank does not fit the notation", in[k], scalar);
        dim const e = in[k].d[l.l[i].in[k]];
        if (first < 0) { d = e; first = k; }
        else if (!same_extent(d, e)) return mismatch("contraction: one letter, two extents", in[first], in[k]);
        else if (!d.name) d.name = e.name;
      }
      if (first < 0) return mismatch("contraction: a letter of the result is in no operand", in[0], scalar);
      if (!l.l[i].reduced) { r.d[l.l[i].out[0]] = d; if (l.l[i].out[0] >= r.rank) r.rank = l.l[i].out[0] + 1; }
    }
    return r;
  }
  [[gnu::cold]] void derive(auto& g) const {
    notation_text const spelling = spelled();
    std::string_view const whole = spelling.view();
    auto const arrow = whole.find("->");
    auto const comma = whole.find(',');
    std::string_view const out = whole.substr(arrow + 2);
    if (comma == whole.npos) return;   // a plain sum occurs in derivatives only
    std::string_view const a = whole.substr(0, comma), b = whole.substr(comma + 1, arrow - comma - 1);
    auto spell = [](std::string_view x, std::string_view y, std::string_view z) {
      notation_text t;
      return contraction(t.put(x).put(',').put(y).put("->").put(z).view());
    };
    if (g.wanted(0)) g.give(0, g.emit(spell(out, b, a), {g.gradient(0), g.operand(1)}));
    if (g.wanted(1)) g.give(1, g.emit(spell(out, a, b), {g.gradient(0), g.operand(0)}));
  }
};

namespace detail {
/// The letters '0', '1', ... that name leading axes in resolved notations.
[[gnu::noinline]] constexpr notation_text leads(int n) {
  notation_text t;
  for (int i = 0; i < n; ++i) t.put(static_cast<char>('0' + i));
  return t;
}
[[gnu::noinline]] constexpr contraction spell(std::string_view p, std::string_view q, std::string_view r) {
  notation_text t;
  t.put(p).put(',').put(q).put("->").put(r);
  return contraction(t.view());
}
}  // namespace detail

/// y[..., o] = sum_i x[..., i] W[o, i] + b[o]. W: [out, in]; b: [out] if bias.
struct linear {
  i64 out;
  bool bias = true;
  axis to{};
  static constexpr auto name = "linear";
  static constexpr auto notation = "...i, oi, o -> ...o";
  static constexpr void describe(auto& s, auto&& visit) { visit("out", s.out); visit("bias", s.bias); visit("to", s.to); }
  constexpr inference infer(shapes in) const {
    if (in[0].rank < 1) return mismatch("linear takes at least one axis", in[0], scalar);
    if (out < 1) return mismatch("linear: out must be positive", in[0], shape{dim(out)});
    if (!in[0].last().is_static()) return mismatch("linear: last axis must be static", in[0], scalar);
    if (is_integer(in[0].type)) return mismatch("linear takes real numbers", in[0], scalar);
    return in[0].with(-1, dim(to ? to : in[0].last().name, out, axis{}));
  }
  constexpr weight_list weights(shapes in) const {   // not const: g++ 12 takes a constructor of a const aggregate for a change of it
    weight w{{dim(out), in[0].last()}, init::fan_in}, b{{dim(out)}, init::zeros};
    return bias ? weight_list{w, b} : weight_list{w};
  }
  constexpr double flops(shapes in, shapes y) const {
    return 2.0 * static_cast<double>(y[0].elements()) * static_cast<double>(in[0].last().n);
  }
  [[gnu::cold]] void derive(auto& g) const {
    auto const lead = detail::leads(g.type(g.operand(0)).rank - 1);
    auto with = [&](char c) { notation_text t = lead; t.put(c); return t; };
    if (g.wanted(0)) g.give(0, g.emit(detail::spell(with('o').view(), "oi", with('i').view()), {g.gradient(0), g.operand(1)}));
    if (g.wanted(1)) g.give(1, g.emit(detail::spell(with('o').view(), with('i').view(), "oi"), {g.gradient(0), g.operand(0)}));
    if (bias && g.wanted(2)) { notation_text t = with('o'); t.put("->o"); g.give(2, g.emit(contraction(t.view()), {g.gradient(0)})); }
  }
};

/// Batched matrix product over equal leading axes; either operand may be given transposed.
struct matmul {
  bool transpose_a = false, transpose_b = false;
  static constexpr auto name = "matmul";
  static constexpr int arity = 2;
  static constexpr void describe(auto& s, auto&& visit) { visit("transpose_a", s.transpose_a); visit("transpose_b", s.transpose_b); }
  constexpr notation_text notation_for(shapes) const {
    notation_text t;
    t.put(transpose_a ? "...km," : "...mk,").put(transpose_b ? "...nk->...mn" : "...kn->...mn");
    return t;
  }
  constexpr inference infer(shapes in) const {
    shape const &a = in[0], &b = in[1];
    if (a.rank < 2 || b.rank != a.rank) return mismatch("ranks differ", a, b);
    dim const m = a[transpose_a ? -1 : -2], ka = a[transpose_a ? -2 : -1], kb = b[transpose_b ? -1 : -2], n = b[transpose_b ? -2 : -1];
    if (!fits(ka, kb)) return mismatch("inner dimensions differ", a, b);
    for (int i = 0; i < a.rank - 2; ++i) if (!fits(a.d[i], b.d[i])) return mismatch("batch dimensions differ", a, b);
    if (is_integer(a.type) || is_integer(b.type)) return mismatch("matmul takes real numbers", a, b);
    return a.with(-2, m).with(-1, n);
  }
  [[gnu::cold]] void derive(auto& g) const {
    auto const lead = detail::leads(g.type(g.operand(0)).rank - 2);
    auto with = [&](char const* s) { notation_text t = lead; t.put(s); return t; };
    auto const a = with(transpose_a ? "km" : "mk"), b = with(transpose_b ? "nk" : "kn"), c = with("mn");
    if (g.wanted(0)) g.give(0, g.emit(detail::spell(c.view(), b.view(), a.view()), {g.gradient(0), g.operand(1)}));
    if (g.wanted(1)) g.give(1, g.emit(detail::spell(c.view(), a.view(), b.view()), {g.gradient(0), g.operand(0)}));
  }
};

}  // namespace tensorpar
