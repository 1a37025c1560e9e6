// tensorpar/op/kinds/head_repeat.hpp - heads of keys and values once for every head of queries that reads
// them, and the sum that is its derivative
#pragma once
#include <tensorpar/op/core/any_op.hpp>

namespace tensorpar::op {

namespace detail {
/// A last axis of `heads` heads, each of `parts` equal parts.
constexpr inference of_heads(shape const& x, i64 heads, i64 parts, i64 count) {
  if (is_integer(x.type)) return mismatch("takes real numbers", x, scalar);
  if (heads < 1 || count < 1 || x.rank < 1 || !x.last().is_static() || x.last().n % (heads * parts))
    return mismatch("the last axis is no multiple of the heads", x, shape{dim(heads), dim(count)});
  return x;
}
}  // namespace detail

struct repeat_heads;
/// [.., heads * count * w] -> [.., heads * w]: of each head the sum of its `count` copies side by side.
struct sum_heads {
  i64 heads, count;
  static constexpr auto name = "sum_heads";
  static constexpr auto notation = "...e -> ...e";
  static constexpr void describe(auto& s, auto&& visit) { visit("heads", s.heads); visit("count", s.count); }
  constexpr i64 units(char letter, shapes) const { return letter == 'e' ? heads : 0; }
  constexpr inference infer(shapes in) const {
    inference r = detail::of_heads(in[0], heads, count, count);
    if (r.ok()) r.out[0].d[in[0].rank - 1] = dim(in[0].last().n / count);
    return r;
  }
  constexpr double flops(shapes in, shapes) const { return static_cast<double>(in[0].elements()); }
  [[gnu::cold]] void derive(auto& g) const;
};
/// [.., heads * w] -> [.., heads * count * w]: each head `count` times in a row. Grouped queries (Ainslie et
/// al. 2023) read keys and values so: query heads h count to h count + count - 1 read head h.
struct repeat_heads {
  i64 heads, count;
  static constexpr auto name = "repeat_heads";
  static constexpr auto notation = "...e -> ...e";
  static constexpr void describe(auto& s, auto&& visit) { visit("heads", s.heads); visit("count", s.count); }
  constexpr i64 units(char letter, shapes) const { return letter == 'e' ? heads : 0; }
  constexpr inference infer(shapes in) const {
    inference r = detail::of_heads(in[0], heads, 1, count);
    if (r.ok()) r.out[0].d[in[0].rank - 1] = dim(in[0].last().n * count);
    return r;
  }
  constexpr double flops(shapes, shapes) const { return 0; }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(0)) g.give(0, g.emit(sum_heads{heads, count}, {g.gradient(0)}));
  }
};
void sum_heads::derive(auto& g) const {
  if (g.wanted(0)) g.give(0, g.emit(repeat_heads{heads, count}, {g.gradient(0)}));
}

}  // namespace tensorpar::op
