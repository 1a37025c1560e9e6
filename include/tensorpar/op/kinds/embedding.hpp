// tensorpar/op/kinds/embedding.hpp - rows of a table by index: a contraction with one-hot vectors that nobody
// writes down
#pragma once
#include <tensorpar/op/core/any_op.hpp>

namespace tensorpar {

namespace detail {
constexpr op::inference embed(shapes in, i64 rows, i64 width, bool bag, axis to) {
  if (!is_integer(in[0].type)) return op::mismatch("embedding takes integer indices", in[0], scalar);
  if (rows < 1 || width < 1)
    return op::mismatch("embedding: rows and width must be positive", in[0], shape{dim(rows), dim(width)});
  if (bag ? in[0].rank < 1 : in[0].rank == shape::max_rank)
    return op::mismatch("embedding: rank out of range", in[0], scalar);
  shape r = in[0].of(dtype::f32);
  if (bag) --r.rank;
  r.d[r.rank++] = dim(to, width, axis{});
  return r;
}
constexpr op::weight_list table(i64 rows, i64 width, axis to) {
  return {{{dim(rows), dim(to, width, axis{})}, op::init::normal_02}};
}
}  // namespace detail

/// Operands dy [..., e], indices [...]; result [rows, e]: dy added into the rows that were read.
struct embedding_grad {
  i64 rows;
  static constexpr auto name = "embedding_grad";
  static constexpr auto notation = "...e, ... -> ve";
  static constexpr int arity = 2;
  static constexpr void describe(auto& s, auto&& visit) { visit("rows", s.rows); }
  constexpr i64 units(char letter, shapes) const { return letter == 'v' ? rows : 0; }
  constexpr op::inference infer(shapes in) const { return shape{dim(rows), in[0].last()}; }
  constexpr i64 index_extent(int k, shapes) const { return k == 1 ? rows : 0; }
  constexpr double flops(shapes in, shapes) const { return static_cast<double>(in[0].elements()); }
};
/// y[..., e] = table[x[...], e]. A part of a table that was split by rows contributes zeros for the rows it
/// lacks: partial sums.
struct embedding {
  i64 rows;
  i64 width;
  axis to{};
  static constexpr auto name = "embedding";
  static constexpr auto notation = "..., ve -> ...e";
  static constexpr void describe(auto& s, auto&& visit) {
    visit("rows", s.rows);
    visit("width", s.width);
    visit("to", s.to);
  }
  constexpr op::inference infer(shapes in) const { return detail::embed(in, rows, width, false, to); }
  constexpr op::weight_list weights(shapes) const { return detail::table(rows, width, to); }
  constexpr i64 index_extent(int k, shapes) const { return k == 0 ? rows : 0; }
  constexpr double flops(shapes, shapes) const { return 0; }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(1)) g.give(1, g.emit(embedding_grad{rows}, {g.gradient(0), g.operand(0)}));
  }
};

/// Operands dy [..., e], indices [..., l]; result [rows, e].
struct embedding_bag_grad {
  i64 rows;
  static constexpr auto name = "embedding_bag_grad";
  static constexpr auto notation = "...e, ...l -> ve";
  static constexpr int arity = 2;
  static constexpr void describe(auto& s, auto&& visit) { visit("rows", s.rows); }
  constexpr i64 units(char letter, shapes) const { return letter == 'v' ? rows : 0; }
  constexpr op::inference infer(shapes in) const { return shape{dim(rows), in[0].last()}; }
  constexpr i64 index_extent(int k, shapes) const { return k == 1 ? rows : 0; }
  constexpr double flops(shapes in, shapes) const {
    return static_cast<double>(in[1].elements()) * static_cast<double>(in[0].last().n);
  }
};
/// y[..., e] = sum_l table[x[..., l], e].
struct embedding_bag {
  i64 rows;
  i64 width;
  axis to{};
  static constexpr auto name = "embedding_bag";
  static constexpr auto notation = "...l, ve -> ...e";
  static constexpr void describe(auto& s, auto&& visit) {
    visit("rows", s.rows);
    visit("width", s.width);
    visit("to", s.to);
  }
  constexpr op::inference infer(shapes in) const { return detail::embed(in, rows, width, true, to); }
  constexpr op::weight_list weights(shapes) const { return detail::table(rows, width, to); }
  constexpr i64 index_extent(int k, shapes) const { return k == 0 ? rows : 0; }
  constexpr double flops(shapes in, shapes out) const {
    return static_cast<double>(out[0].elements()) * static_cast<double>(in[0].last().n);
  }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(1)) g.give(1, g.emit(embedding_bag_grad{rows}, {g.gradient(0), g.operand(0)}));
  }
};

}  // namespace tensorpar
