// tensorpar/op/kinds/structural.hpp - operators that move indices and compute nothing
#pragma once
#include <tensorpar/op/core/any_op.hpp>

namespace tensorpar {

namespace detail {
constexpr int axis_number(i64 a, int rank) { return static_cast<int>(a < 0 ? a + rank : a); }
/// "01E3->01E3": every axis a splittable loop but axis `fixed`; `times` operand terms.
constexpr op::notation_text all_but(int rank, int fixed) {
  op::notation_text one;
  for (int i = 0; i < rank; ++i) one.put(i == fixed ? 'E' : static_cast<char>('0' + i));
  op::notation_text t = one;
  return t.put("->").put(one.view());
}
}  // namespace detail

/// A window of one axis: [begin, begin + length). Its derivative puts the gradient back into zeros.
struct slice_axis;
struct unslice_axis {
  i64 axis_no, begin, total;
  static constexpr auto name = "unslice";
  static constexpr void describe(auto& s, auto&& visit) {
    visit("axis", s.axis_no);
    visit("begin", s.begin);
    visit("total", s.total);
  }
  constexpr op::notation_text notation_for(shapes in) const {
    return detail::all_but(in[0].rank, detail::axis_number(axis_no, in[0].rank));
  }
  constexpr op::inference infer(shapes in) const {
    int const a = detail::axis_number(axis_no, in[0].rank);
    if (a < 0 || a >= in[0].rank || begin < 0 || begin > total || in[0].d[a].n > total - begin)
      return op::mismatch("unslice: window outside the axis", in[0], shape{dim(begin), dim(total)});
    return in[0].with(a, dim(in[0].d[a].name, total, axis{}));
  }
  constexpr double flops(shapes, shapes) const { return 0; }
};
struct slice_axis {
  i64 axis_no, begin, length;
  static constexpr auto name = "slice";
  static constexpr void describe(auto& s, auto&& visit) {
    visit("axis", s.axis_no);
    visit("begin", s.begin);
    visit("length", s.length);
  }
  constexpr op::notation_text notation_for(shapes in) const {
    return detail::all_but(in[0].rank, detail::axis_number(axis_no, in[0].rank));
  }
  constexpr op::inference infer(shapes in) const {
    int const a = detail::axis_number(axis_no, in[0].rank);
    if (a < 0 || a >= in[0].rank || begin < 0 || length < 1 || begin > in[0].d[a].n ||
        length > in[0].d[a].n - begin)
      return op::mismatch("slice: window outside the axis", in[0], shape{dim(begin), dim(length)});
    return in[0].with(a, dim(in[0].d[a].name, length, axis{}));
  }
  constexpr double flops(shapes, shapes) const { return 0; }
  [[gnu::cold]] void derive(auto& g) const {
    shape const x = g.type(g.operand(0));
    if (g.wanted(0))
      g.give(0, g.emit(unslice_axis{axis_no, begin, x[detail::axis_number(axis_no, x.rank)].n},
                       {g.gradient(0)}));
  }
};

/// Tensors side by side along one axis; their other axes must fit.
struct concat {
  i64 axis_no = -1;
  static constexpr auto name = "concat";
  static constexpr int arity = -1;
  static constexpr void describe(auto& s, auto&& visit) { visit("axis", s.axis_no); }
  constexpr op::notation_text notation_for(shapes in) const {
    return detail::all_but(in[0].rank, detail::axis_number(axis_no, in[0].rank));
  }
  constexpr op::inference infer(shapes in) const {
    if (in.n < 1) return op::mismatch("concat: no operands", scalar, scalar);
    shape r = in[0];
    int const a = detail::axis_number(axis_no, r.rank);
    if (a < 0 || a >= r.rank) return op::mismatch("concat: no such axis", in[0], scalar);
    for (int k = 1; k < in.size(); ++k) {
      if (in[k].rank != r.rank) return op::mismatch("ranks differ", in[0], in[k]);
      if (in[k].type != r.type) return op::mismatch("element types differ", in[0], in[k]);
      for (int i = 0; i < r.rank; ++i)
        if (i != a && !fits(r.d[i], in[k].d[i]))
          return op::mismatch("dimensions off the concat axis differ", in[0], in[k]);
      if (!r.d[a].is_static() || !in[k].d[a].is_static())
        return op::mismatch("concat: the joined axis must be static", in[0], in[k]);
      r.d[a].n = core::saturating_add(r.d[a].n, in[k].d[a].n);
    }
    return r;
  }
  constexpr double flops(shapes, shapes) const { return 0; }
  [[gnu::cold]] void derive(auto& g) const {
    i64 at = 0;
    for (int k = 0; k < g.operands(); ++k) {
      shape const x = g.type(g.operand(k));
      i64 const n = x[detail::axis_number(axis_no, x.rank)].n;
      if (g.wanted(k)) g.give(k, g.emit(slice_axis{axis_no, at, n}, {g.gradient(0)}));
      at += n;
    }
  }
};

/// One tensor in equal parts along one axis; as many results as parts (at most 8).
struct split_axes {
  i64 parts;
  i64 axis_no = -1;
  static constexpr auto name = "split";
  static constexpr void describe(auto& s, auto&& visit) { visit("parts", s.parts); visit("axis", s.axis_no); }
  constexpr op::notation_text notation_for(shapes in) const {
    return detail::all_but(in[0].rank, detail::axis_number(axis_no, in[0].rank));
  }
  constexpr op::inference infer(shapes in) const {
    int const a = detail::axis_number(axis_no, in[0].rank);
    if (a < 0 || a >= in[0].rank) return op::mismatch("split: no such axis", in[0], scalar);
    if (parts < 1 || parts > op::inference::max_out)
      return op::mismatch("split: between 1 and 8 parts", in[0], shape{dim(parts)});
    dim d = in[0].d[a];
    if (!d.is_static() || d.n % parts)
      return op::mismatch("dimension not divisible by the number of parts", in[0], shape{dim(parts)});
    d.n /= parts;
    return op::inference(static_cast<int>(parts), in[0].with(a, d));
  }
  constexpr double flops(shapes, shapes) const { return 0; }
  [[gnu::cold]] void derive(auto& g) const {
    if (!g.wanted(0)) return;
    op::gradient_builder::tensor t[op::inference::max_out];
    for (int i = 0; i < parts; ++i) t[i] = g.gradient(i);
    g.give(0, g.emit(concat{axis_no}, t, static_cast<int>(parts)));
  }
};

/// Exchanges two axes.
struct transpose {
  i64 a = -2, b = -1;
  static constexpr auto name = "transpose";
  static constexpr void describe(auto& s, auto&& visit) { visit("a", s.a); visit("b", s.b); }
  constexpr op::notation_text notation_for(shapes in) const {
    int const r = in[0].rank, i = detail::axis_number(a, r), j = detail::axis_number(b, r);
    op::notation_text t;
    for (int k = 0; k < r; ++k) t.put(static_cast<char>('0' + k));
    t.put("->");
    for (int k = 0; k < r; ++k) t.put(static_cast<char>('0' + (k == i ? j : k == j ? i : k)));
    return t;
  }
  constexpr op::inference infer(shapes in) const {
    int const r = in[0].rank, i = detail::axis_number(a, r), j = detail::axis_number(b, r);
    if (i < 0 || j < 0 || i >= r || j >= r) return op::mismatch("transpose: no such axis", in[0], scalar);
    return in[0].with(i, in[0].d[j]).with(j, in[0].d[i]);
  }
  constexpr double flops(shapes, shapes) const { return 0; }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(0)) g.give(0, g.emit(transpose{a, b}, {g.gradient(0)}));
  }
};

/// New extents for the axes after the first `keep`; row-major order of elements is kept. The kept axes may be
/// split, and where the first changed axis is only cut or joined at whole multiples, so may that one ("a"
/// below).
struct reshape {
  i64 keep = 1;
  i64 rank = 1;       // number of new axes
  i64 d[6]{};
  static constexpr auto name = "reshape";
  static constexpr void describe(auto& s, auto&& visit) {
    visit("keep", s.keep); visit("rank", s.rank);
    visit("d0", s.d[0]);
    visit("d1", s.d[1]);
    visit("d2", s.d[2]);
    visit("d3", s.d[3]);
    visit("d4", s.d[4]);
    visit("d5", s.d[5]);
  }
  constexpr op::notation_text notation_for(shapes in) const {
    op::notation_text t;
    int const r = in[0].rank, k = static_cast<int>(keep);
    for (int i = 0; i < r; ++i)
      t.put(i < k ? static_cast<char>('0' + i) : i == k && rank > 0 ? 'a' : static_cast<char>('A' + i));
    t.put("->");
    for (int i = 0; i < k; ++i) t.put(static_cast<char>('0' + i));
    for (int i = 0; i < rank; ++i) t.put(i == 0 && r > k ? 'a' : static_cast<char>('P' + i));
    return t;
  }
  constexpr op::inference infer(shapes in) const {
    shape const& x = in[0];
    if (keep < 0 || keep > x.rank || rank < 0 || keep + rank > shape::max_rank)
      return op::mismatch("reshape: axes kept or made are out of range", x, scalar);
    shape r{};
    r.type = x.type;
    i64 from = 1, to = 1;
    for (int i = 0; i < keep; ++i) r.d[r.rank++] = x.d[i];
    for (int i = static_cast<int>(keep); i < x.rank; ++i) {
      if (!x.d[i].is_static()) return op::mismatch("reshape: a changed axis must be static", x, scalar);
      from = core::saturating_mul(from, x.d[i].n);
    }
    for (int i = 0; i < rank; ++i) {
      if (d[i] < 1) return op::mismatch("reshape: an extent below 1", x, scalar);
      r.d[r.rank++] = dim(d[i]);
      to = core::saturating_mul(to, d[i]);
    }
    if (from != to) return op::mismatch("reshape: element counts differ", x, r);
    return r;
  }
  constexpr double flops(shapes, shapes) const { return 0; }
  [[gnu::cold]] void derive(auto& g) const {
    if (!g.wanted(0)) return;
    shape const x = g.type(g.operand(0));
    reshape back{keep, x.rank - keep, {}};
    for (int i = static_cast<int>(keep); i < x.rank; ++i) back.d[i - keep] = x.d[i].n;
    g.give(0, g.emit(back, {g.gradient(0)}));
  }
};

/// All axes after the first `keep` joined into one; with its axis named.
struct flatten {
  i64 keep = 1;
  axis to{};
  static constexpr auto name = "flatten";
  static constexpr void describe(auto& s, auto&& visit) { visit("keep", s.keep); visit("to", s.to); }
  constexpr op::notation_text notation_for(shapes in) const {
    op::notation_text t, lead;
    int const k = static_cast<int>(keep);
    for (int i = 0; i < k; ++i) lead.put(static_cast<char>('0' + i));
    t.put(lead.view());
    for (int i = k; i < in[0].rank; ++i) t.put(i == k ? 'a' : static_cast<char>('A' + i));
    return t.put("->").put(lead.view()).put('a');
  }
  constexpr op::inference infer(shapes in) const {
    shape const& x = in[0];
    if (keep < 0 || keep >= x.rank) return op::mismatch("flatten: nothing to flatten", x, scalar);
    shape r{};
    r.type = x.type;
    i64 e = 1;
    for (int i = 0; i < x.rank; ++i) {
      if (i < keep) { r.d[r.rank++] = x.d[i]; continue; }
      if (!x.d[i].is_static()) return op::mismatch("flatten: a joined axis must be static", x, scalar);
      e = core::saturating_mul(e, x.d[i].n);
    }
    r.d[r.rank++] = dim(to, e, axis{});
    return r;
  }
  constexpr double flops(shapes, shapes) const { return 0; }
  [[gnu::cold]] void derive(auto& g) const {
    if (!g.wanted(0)) return;
    shape const x = g.type(g.operand(0));
    reshape back{keep, x.rank - keep, {}};
    for (int i = static_cast<int>(keep); i < x.rank; ++i) back.d[i - keep] = x.d[i].n;
    g.give(0, g.emit(back, {g.gradient(0)}));
  }
};

/// [.., a, b, ..] -> [.., a * b, ..]
struct merge_axes {
  i64 first;
  axis to{};
  static constexpr auto name = "merge_axes";
  static constexpr void describe(auto& s, auto&& visit) { visit("first", s.first); visit("to", s.to); }
  constexpr op::notation_text notation_for(shapes in) const {
    int const r = in[0].rank, f = detail::axis_number(first, r);
    op::notation_text t;
    for (int i = 0; i < r; ++i) t.put(i == f + 1 ? 'M' : static_cast<char>('0' + i));
    t.put("->");
    for (int i = 0; i < r; ++i) if (i != f + 1) t.put(static_cast<char>('0' + i));
    return t;
  }
  constexpr op::inference infer(shapes in) const {
    shape const& x = in[0];
    int const f = detail::axis_number(first, x.rank);
    if (f < 0 || f + 1 >= x.rank) return op::mismatch("no such pair of axes", x, scalar);
    if (x.d[f].sym && x.d[f + 1].sym) return op::mismatch("two symbolic extents cannot be merged", x, scalar);
    shape r = x;
    r.d[f] = dim(to, core::saturating_mul(x.d[f].n, x.d[f + 1].n), x.d[f].sym ? x.d[f].sym : x.d[f + 1].sym);
    for (int i = f + 1; i + 1 < x.rank; ++i) r.d[i] = x.d[i + 1];
    --r.rank;
    return r;
  }
  constexpr double flops(shapes, shapes) const { return 0; }
  [[gnu::cold]] void derive(auto& g) const;
};

/// [.., a * b, ..] -> [.., a, b, ..] with b = inner
struct split_axis {
  i64 which;
  i64 inner;
  axis outer_name{};
  axis inner_name{};
  static constexpr auto name = "split_axis";
  static constexpr void describe(auto& s, auto&& visit) {
    visit("which", s.which);
    visit("inner", s.inner);
    visit("outer_name", s.outer_name);
    visit("inner_name", s.inner_name);
  }
  constexpr op::notation_text notation_for(shapes in) const {
    int const r = in[0].rank, f = detail::axis_number(which, r);
    op::notation_text t;
    for (int i = 0; i < r; ++i) t.put(static_cast<char>('0' + i));
    t.put("->");
    for (int i = 0; i < r; ++i) { t.put(static_cast<char>('0' + i)); if (i == f) t.put('M'); }
    return t;
  }
  constexpr op::inference infer(shapes in) const {
    shape const& x = in[0];
    int const f = detail::axis_number(which, x.rank);
    if (f < 0 || f >= x.rank) return op::mismatch("no such axis", x, scalar);
    if (x.rank == shape::max_rank || inner < 1 || x.d[f].n % inner)
      return op::mismatch("extent not divisible by the inner extent", x, shape{dim(inner)});
    shape r = x;
    for (int i = x.rank; i > f + 1; --i) r.d[i] = x.d[i - 1];
    r.d[f] = dim(outer_name, x.d[f].n / inner, x.d[f].sym);
    r.d[f + 1] = dim(inner_name, inner, axis{});
    ++r.rank;
    return r;
  }
  constexpr double flops(shapes, shapes) const { return 0; }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(0))
      g.give(
          0,
          g.emit(merge_axes{detail::axis_number(which, g.type(g.operand(0)).rank),
                            g.type(g.operand(0))[detail::axis_number(which, g.type(g.operand(0)).rank)].name},
                 {g.gradient(0)}));
  }
};
void merge_axes::derive(auto& g) const {
  shape const x = g.type(g.operand(0));
  int const f = detail::axis_number(first, x.rank);
  if (g.wanted(0))
    g.give(0, g.emit(split_axis{f, x.d[f + 1].n, x.d[f].name, x.d[f + 1].name}, {g.gradient(0)}));
}

}  // namespace tensorpar
