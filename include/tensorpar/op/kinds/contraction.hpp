// tensorpar/op/kinds/contraction.hpp - operators that sum over an index: matrix products, einsum
#pragma once
#include <tensorpar/op/core/any_op.hpp>

namespace tensorpar {

namespace detail {
// What derivatives of several operators share: each operator of a model brings its own into the unit that
// lowers it.

/// Of a product of operands 0 and 1, spelled a and b, as `out`: the product of the gradient and the other
/// operand.
template <class G>
[[gnu::noinline, gnu::cold]] void derive_product(G& g, std::string_view a, std::string_view b,
                                                 std::string_view out);
/// Of operand i, which is added to (or scales) every position of the leading axes: the sum over those.
/// `rest`: "o->o".
template <class G> [[gnu::noinline, gnu::cold]] void derive_over_leads(G& g, int i, std::string_view rest);
}  // namespace detail

/// A product of one or two tensors summed over the letters missing on the right: "mk,kn->mn", "nhwo->o".
/// Every letter is one axis. Its notation is its only attribute (32 characters, eight to a word), and its
/// derivative permutes the operands.
struct contraction {
  u64 text[4]{};
  static constexpr auto name = "contraction";
  static constexpr auto work = op::work_kind::product;
  static constexpr bool sums_wide = true;
  static constexpr int arity = -1;
  constexpr contraction() = default;
  [[gnu::noinline]] constexpr explicit contraction(std::string_view s) {
    if (s.size() > 32)
      detail::refuse("a notation of more than 32 characters", "contraction", "at most 32 characters");
    for (std::size_t i = 0; i < s.size(); ++i)
      text[i / 8] |= static_cast<u64>(static_cast<unsigned char>(s[i])) << (8 * (i % 8));
  }
  static constexpr void describe(auto& s, auto&& visit) {
    visit("n0", s.text[0]);
    visit("n1", s.text[1]);
    visit("n2", s.text[2]);
    visit("n3", s.text[3]);
  }
  [[gnu::noinline]] constexpr op::notation_text spelled() const {
    op::notation_text t;
    for (u64 word : text) for (; word; word >>= 8) t.put(static_cast<char>(word & 255));
    return t;
  }
  constexpr op::notation_text notation_for(shapes) const { return spelled(); }
  constexpr op::inference infer(shapes in) const {
    op::loops const l = op::parse_notation(spelled().view());
    if (in.n < 1 || l.operands != in.n)
      return op::mismatch("contraction: wrong number of operands", in.n ? in[0] : scalar, scalar);
    if (l.results != 1) return op::mismatch("contraction: its notation has one result", in[0], scalar);
    for (int k = 0; k < in.n; ++k) {
      int letters = 0;
      for (int i = 0; i < l.n; ++i) letters += l.l[i].in[k] >= 0;
      if (letters != in[k].rank)
        return op::mismatch("contraction: every axis of an operand has one letter of its own", in[k], scalar);
    }
    shape r{};
    r.type = in[0].type;
    int letters = 0;
    for (int i = 0; i < l.n; ++i) {
      dim d{};
      int first = -1;
      for (int k = 0; k < in.n; ++k) {
        if (l.l[i].in[k] < 0) continue;
        if (l.l[i].in[k] >= in[k].rank)
          return op::mismatch("contraction: rank does not fit the notation", in[k], scalar);
        dim const e = in[k].d[l.l[i].in[k]];
        if (first < 0) { d = e; first = k;
        } else if (!same_extent(d, e))
          return op::mismatch("contraction: one letter, two extents", in[first], in[k]);
        else if (!d.name) d.name = e.name;
      }
      if (first < 0)
        return op::mismatch("contraction: a letter of the result is in no operand", in[0], scalar);
      if (l.l[i].reduced) continue;
      ++letters;
      int const a = l.l[i].out[0];
      if (a < 0 || a >= shape::max_rank)
        return op::mismatch("contraction: rank does not fit the notation", in[first], scalar);
      r.d[a] = d;
      if (a >= r.rank) r.rank = a + 1;
    }
    if (letters != r.rank)
      return op::mismatch("contraction: every axis of the result has one letter of its own", r, scalar);
    return r;
  }
  /// A multiplication, and where a letter is summed an addition, for every value of all letters.
  constexpr double flops(shapes in, shapes out) const {
    op::notation_text const spelling = spelled();
    std::string_view const whole = spelling.view();
    auto const arrow = whole.find("->");
    double points = out.n ? static_cast<double>(out[0].elements()) : 1, each = 1;
    int operand = 0, place = 0;
    for (std::size_t i = 0; i < arrow; ++i) {
      if (whole[i] == ' ') continue;
      if (whole[i] == ',') { ++operand; place = 0; continue; }
      int const axis = place++;
      if (whole.find(whole[i]) < i || whole.find(whole[i], arrow) != whole.npos) continue;
      each = 2;
      if (operand < in.n) points *= static_cast<double>(in[operand].d[axis].n);
    }
    return each * points;
  }
  [[gnu::cold]] void derive(auto& g) const {
    op::notation_text const spelling = spelled();
    std::string_view const whole = spelling.view();
    auto const arrow = whole.find("->");
    auto const comma = whole.find(',');
    if (comma == whole.npos) return;   // a plain sum occurs in derivatives only
    char const* const s = whole.data();
    detail::derive_product(g, {s, comma}, {s + comma + 1, arrow - comma - 1},
                           {s + arrow + 2, whole.size() - arrow - 2});
  }
};

namespace detail {
/// The letters '0', '1', ... that name leading axes in resolved notations.
[[gnu::noinline]] constexpr op::notation_text leads(int n) {
  op::notation_text t;
  for (int i = 0; i < n; ++i) t.put(static_cast<char>('0' + i));
  return t;
}
[[gnu::noinline]] constexpr contraction spell(std::string_view p, std::string_view q, std::string_view r) {
  op::notation_text t;
  t.put(p).put(",").put(q).put("->").put(r);
  return contraction(t.view());
}
template <class G> void derive_product(G& g, std::string_view a, std::string_view b, std::string_view out) {
  for (int i = 0; i < 2; ++i)
    if (g.wanted(i)) g.give(i, g.emit(spell(out, i ? a : b, i ? b : a), {g.gradient(0), g.operand(1 - i)}));
}
template <class G> void derive_over_leads(G& g, int i, std::string_view rest) {
  if (!g.wanted(i)) return;
  op::notation_text t = leads(g.type(g.operand(0)).rank - 1);
  t.put(rest);
  g.give(i, g.emit(contraction(t.view()), {g.gradient(0)}));
}
}  // namespace detail

/// y[..., o] = sum_i x[..., i] W[o, i] + b[o]. W: [out, in]; b: [out] if bias.
struct linear {
  i64 out;
  bool bias = true;
  axis to{};
  static constexpr auto name = "linear";
  static constexpr auto work = op::work_kind::product;
  static constexpr auto notation = "...i, oi, o -> ...o";
  static constexpr void describe(auto& s, auto&& visit) {
    visit("out", s.out);
    visit("bias", s.bias);
    visit("to", s.to);
  }
  constexpr op::inference infer(shapes in) const {
    shape const& x = in[0];
    if (x.rank < 1) return op::mismatch("linear takes at least one axis", x, scalar);
    if (out < 1) return op::mismatch("linear: out must be positive", x, shape{dim(out)});
    dim const& last = x.d[x.rank - 1];
    if (!last.is_static()) return op::mismatch("linear: last axis must be static", x, scalar);
    if (is_integer(x.type)) return op::mismatch("linear takes real numbers", x, scalar);
    return x.with(-1, dim(to ? to : last.name, out, axis{}));
  }
  constexpr op::weight_list weights(shapes in) const {
    op::weight_list r{};
    r.add(op::init::fan_in, dim(out), in[0].last());
    if (bias) r.add(op::init::zeros, dim(out));
    return r;
  }
  constexpr double flops(shapes in, shapes y) const {
    return 2.0 * static_cast<double>(y[0].elements()) * static_cast<double>(in[0].last().n);
  }
  [[gnu::cold]] void derive(auto& g) const {
    op::notation_text x = detail::leads(g.type(g.operand(0)).rank - 1), y = x;
    detail::derive_product(g, x.put('i').view(), "oi", y.put('o').view());
    if (bias) detail::derive_over_leads(g, 2, "o->o");
  }
};

/// Batched matrix product over equal leading axes; either operand may be given transposed.
struct matmul {
  bool transpose_a = false, transpose_b = false;
  static constexpr auto name = "matmul";
  static constexpr auto work = op::work_kind::product;
  static constexpr int arity = 2;
  static constexpr void describe(auto& s, auto&& visit) {
    visit("transpose_a", s.transpose_a);
    visit("transpose_b", s.transpose_b);
  }
  constexpr op::notation_text notation_for(shapes) const {
    op::notation_text t;
    t.put(transpose_a ? "...km," : "...mk,").put(transpose_b ? "...nk->...mn" : "...kn->...mn");
    return t;
  }
  constexpr op::inference infer(shapes in) const {
    shape const &a = in[0], &b = in[1];
    if (a.rank < 2 || b.rank != a.rank) return op::mismatch("ranks differ", a, b);
    dim const m = a[transpose_a ? -1 : -2], ka = a[transpose_a ? -2 : -1], kb = b[transpose_b ? -1 : -2],
              n = b[transpose_b ? -2 : -1];
    if (!fits(ka, kb)) return op::mismatch("inner dimensions differ", a, b);
    for (int i = 0; i < a.rank - 2; ++i)
      if (!fits(a.d[i], b.d[i])) return op::mismatch("batch dimensions differ", a, b);
    if (is_integer(a.type) || is_integer(b.type)) return op::mismatch("matmul takes real numbers", a, b);
    return a.with(-2, m).with(-1, n);
  }
  [[gnu::cold]] void derive(auto& g) const {
    auto const lead = detail::leads(g.type(g.operand(0)).rank - 2);
    auto with = [&](char const* s) { op::notation_text t = lead; t.put(s); return t; };
    auto const a = with(transpose_a ? "km" : "mk"), b = with(transpose_b ? "nk" : "kn"), c = with("mn");
    detail::derive_product(g, a.view(), b.view(), c.view());
  }
};

}  // namespace tensorpar
