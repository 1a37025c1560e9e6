// tensorpar/op/kinds/axis_sum.hpp - the sum over one axis, and its derivative: the same values again along a
// new one
#pragma once
#include <tensorpar/op/core/any_op.hpp>
#include <tensorpar/op/kinds/structural.hpp>

namespace tensorpar::op {

namespace detail {
/// "01s3": one letter per axis, and `c` for axis a; nothing there if c is zero.
constexpr notation_text letters_with(int rank, int a, char c) {
  notation_text t;
  for (int i = 0; i < rank; ++i)
    if (i != a || c) t.put(i == a ? c : static_cast<char>('0' + i));
  return t;
}
}  // namespace detail

struct repeat_axis;
/// [.., a, ..] -> [.., ..]: sums over axis `axis_no`. Linear; an axis that is split leaves partial sums.
struct sum_axis {
  i64 axis_no;
  static constexpr auto name = "sum";
  static constexpr void describe(auto& s, auto&& visit) { visit("axis", s.axis_no); }
  constexpr notation_text notation_for(shapes in) const {
    int const r = in[0].rank, a = tensorpar::detail::axis_number(axis_no, r);
    notation_text t = detail::letters_with(r, a, 's');
    return t.put("->").put(detail::letters_with(r, a, '\0').view());
  }
  constexpr inference infer(shapes in) const {
    shape const& x = in[0];
    int const a = tensorpar::detail::axis_number(axis_no, x.rank);
    if (a < 0 || a >= x.rank) return mismatch("sum: no such axis", x, scalar);
    if (!x.d[a].is_static()) return mismatch("sum: the axis must be static", x, scalar);
    if (is_integer(x.type)) return mismatch("sum takes real numbers", x, scalar);
    shape r = x;
    for (int i = a; i + 1 < x.rank; ++i) r.d[i] = x.d[i + 1];
    r.d[--r.rank] = dim{};
    return r;
  }
  constexpr double flops(shapes in, shapes) const { return static_cast<double>(in[0].elements()); }
  [[gnu::cold]] void derive(auto& g) const;
};
/// [.., ..] -> [.., count, ..]: the same values at every position of a new axis `axis_no` of the result.
struct repeat_axis {
  i64 axis_no, count;
  static constexpr auto name = "repeat";
  static constexpr void describe(auto& s, auto&& visit) { visit("axis", s.axis_no); visit("count", s.count); }
  constexpr notation_text notation_for(shapes in) const {
    int const r = in[0].rank + 1, a = tensorpar::detail::axis_number(axis_no, r);
    notation_text t = detail::letters_with(r, a, '\0');
    return t.put("->").put(detail::letters_with(r, a, 's').view());
  }
  constexpr inference infer(shapes in) const {
    shape const& x = in[0];
    int const a = tensorpar::detail::axis_number(axis_no, x.rank + 1);
    if (a < 0 || a > x.rank || x.rank == shape::max_rank) return mismatch("repeat: no such axis", x, scalar);
    if (count < 1) return mismatch("repeat: a count below 1", x, shape{dim(count)});
    if (is_integer(x.type)) return mismatch("repeat takes real numbers", x, scalar);
    shape r = x;
    for (int i = x.rank; i > a; --i) r.d[i] = x.d[i - 1];
    r.d[a] = dim(count);
    ++r.rank;
    return r;
  }
  constexpr double flops(shapes, shapes) const { return 0; }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(0))
      g.give(0,
             g.emit(sum_axis{tensorpar::detail::axis_number(axis_no, g.type(g.operand(0)).rank + 1)},
                    {g.gradient(0)}));
  }
};
void sum_axis::derive(auto& g) const {
  shape const x = g.type(g.operand(0));
  int const a = tensorpar::detail::axis_number(axis_no, x.rank);
  if (g.wanted(0)) g.give(0, g.emit(repeat_axis{a, x.d[a].n}, {g.gradient(0)}));
}

}  // namespace tensorpar::op
