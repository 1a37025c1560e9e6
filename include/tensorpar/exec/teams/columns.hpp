// tensorpar/exec/teams/columns.hpp - sums down the columns of a matrix: stretches of rows side by side, then their sums
#pragma once
#include <tensorpar/exec/teams/kernel.hpp>

namespace tensorpar::detail {

/// How many stretches of rows are added up side by side: enough lanes for any device, each with some rows to add.
constexpr i64 stretches_of(i64 rows, i64 columns) {
  i64 const lanes = i64{1} << 18, few = (rows + 15) / 16, want = columns > 0 ? (lanes + columns - 1) / columns : 1;
  return want < 1 ? 1 : want > few ? (few < 1 ? 1 : few) : want;
}
/// Scratch of `sum_columns`, in scalars.
constexpr i64 column_scratch(i64 rows, i64 columns) { return stretches_of(rows, columns) * columns; }

/// Neighbours read neighbours.
template <class Number, class Term> struct stretch_sum_at {
  Term term;
  Number* y;
  i64 rows, columns, stretches;
  constexpr void operator()(i64 i) const {
    i64 const column = i % columns, p = i / columns;
    Number s(0);
    for (i64 r = rows * p / stretches, end = rows * (p + 1) / stretches; r < end; ++r) s += term(r, column);
    y[i] = s;
  }
};
template <class Number, class To> struct add_stretches_at {
  Number const* x;
  To* y;
  i64 columns, stretches;
  constexpr void operator()(i64 i) const {
    Number s(0);
    for (i64 p = 0; p < stretches; ++p) s += x[p * columns + i];
    y[i] = s;
  }
};
/// y[c] = term(0, c) + ... + term(rows - 1, c), by a constexpr call operator. Sums have an order that rows and columns alone say.
template <class Number, class Device, class Term, class To>
void sum_columns(Device const& d, i64 rows, i64 columns, Term const& term, Number* scratch, To* y) {
  i64 const n = stretches_of(rows, columns);
  d.each(n * columns, stretch_sum_at<Number, Term>{term, scratch, rows, columns, n});
  d.each(columns, add_stretches_at<Number, To>{scratch, y, columns, n});
}

}  // namespace tensorpar::detail
