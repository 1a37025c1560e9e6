// tensorpar/exec/teams/kernels/columns.hpp - sums down the columns of a matrix: stretches of rows side by
// side, then their sums
#pragma once
#include <tensorpar/exec/teams/kernels/kernel.hpp>

namespace tensorpar::exec::detail {

/// How many stretches of rows are added up side by side: enough lanes for any device, each with some rows to
/// add.
constexpr i64 stretches_of(i64 rows, i64 columns) {
  i64 const lanes = i64{1} << 19, few = (rows + 15) / 16,
            want = columns > 0 ? (lanes + columns - 1) / columns : 1;
  return want < 1 ? 1 : want > few ? (few < 1 ? 1 : few) : want;
}
/// Many stretches of many columns are put together in so many groups first, by lanes whose neighbours read
/// neighbours; 0: they are not.
constexpr i64 groups_of(i64 stretches, i64 columns) { return stretches > 64 && columns >= 256 ? 16 : 0; }
/// Scratch of `sum_columns`, in scalars.
constexpr i64 column_scratch(i64 rows, i64 columns) {
  i64 const n = stretches_of(rows, columns);
  return (n + groups_of(n, columns)) * columns;
}

/// Neighbours read neighbours, and several columns at once where the term can: `Term::at_once`,
/// `term.aligned()`, and `term.template several<N>(row, column)`, a pack of the terms of N columns.
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
  static constexpr int at_once = Term::at_once;
  bool aligned() const { return columns % at_once == 0 && term.aligned() && at_16(y); }
  template <int N> constexpr void several(i64 i) const {
    i64 const column = i % columns, p = i / columns;
    Number s[std::size_t{N}]{};
    for (i64 r = rows * p / stretches, end = rows * (p + 1) / stretches; r < end; ++r) {
      auto const terms = term.template several<N>(r, column);
      for (int k = 0; k < N; ++k) s[k] += terms.v[k];
    }
    constexpr int part = 16 / sizeof(Number) < N ? 16 / sizeof(Number) : N;
    for (int k = 0; k < N; k += part) {
      pack<Number, part> to{};
      for (int j = 0; j < part; ++j) to.v[j] = s[k + j];
      put(y, i + k, to);
    }
  }
};
/// The terms are a matrix.
template <class Scalar> struct matrix_term {
  Scalar const* x;
  i64 columns;
  constexpr computed<Scalar> operator()(i64 r, i64 i) const { return x[r * columns + i]; }
  static constexpr int at_once = 16 / sizeof(Scalar);
  bool aligned() const { return at_16(x); }
  template <int N> constexpr numbers<computed<Scalar>, N> several(i64 r, i64 i) const {
    auto const from = take<N>(x, r * columns + i);
    numbers<computed<Scalar>, N> to{};
    for (int k = 0; k < N; ++k) to.v[k] = from.v[k];
    return to;
  }
};
/// Numbers in the stretches of a group, added up.
template <class Number> struct group_sum_at {
  Number const* x;
  Number* y;
  i64 columns, stretches, groups;
  constexpr void operator()(i64 i) const {
    i64 const column = i % columns, g = i / columns;
    Number s(0);
    for (i64 p = stretches * g / groups, end = stretches * (g + 1) / groups; p < end; ++p)
      s += x[p * columns + column];
    y[i] = s;
  }
};
/// To: where the sums go, by index.
template <class Number, class To> struct add_stretches_at {
  Number const* x;
  To y;
  i64 columns, stretches;
  constexpr void operator()(i64 i) const {
    Number s(0);
    for (i64 p = 0; p < stretches; ++p) s += x[p * columns + i];
    y[i] = s;
  }
  constexpr i64 length() const { return stretches; }
  template <class Team> constexpr void operator()(i64 i, Team const& team) const {
    Number const s = team.template sum<Number>(stretches, [&](i64 p) { return x[p * columns + i]; });
    team.alone([&] { y[i] = s; });
  }
};
/// y[c] = term(0, c) + ... + term(rows - 1, c), by a constexpr call operator. Sums have an order that rows
/// and columns alone say.
template <class Number, class Device, class Term, class To>
void sum_columns(Device const& d, i64 rows, i64 columns, Term const& term, Number* scratch, To y) {
  i64 const n = stretches_of(rows, columns), groups = groups_of(n, columns);
  d.each(n * columns, stretch_sum_at<Number, Term>{term, scratch, rows, columns, n});
  if (groups > 0) {
    d.each(groups * columns, group_sum_at<Number>{scratch, scratch + n * columns, columns, n, groups});
    return d.each(columns, add_stretches_at<Number, To>{scratch + n * columns, y, columns, groups});
  }
  add_stretches_at<Number, To> const last{scratch, y, columns, n};
  if (n >= 32) d.teams(columns, last);
  else d.each(columns, last);
}

}  // namespace tensorpar::exec::detail
