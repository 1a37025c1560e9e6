// tensorpar/exec/teams/product_layout.hpp - strided products as BLAS wants them: columns in memory, operands
// as they are or transposed
#pragma once
#include <tensorpar/exec/teams/kernels/device.hpp>

namespace tensorpar::detail {

/// An operand in memory as columns of `ld` numbers.
struct blas_operand {
  bool transposed;
  i64 ld;
};
/// c = x y with c: [m, n], x: [m, k], y: [k, n], all stored by columns.
struct blas_product {
  bool fits = false;                         // else a stride is not one that BLAS takes
  bool swapped = false;                      // x is b transposed, y is a transposed: c is stored by rows
  i64 m = 0, n = 0, k = 0, ldc = 0;
  blas_operand x{}, y{};
};

/// A [rows, cols] matrix with these strides, by columns as it is or transposed; ld 0: neither.
constexpr blas_operand as_columns(i64 rows, i64 cols, i64 row, i64 col) {
  if (row == 1 || rows == 1) {
    i64 const ld = cols == 1 ? rows : col;
    if (ld >= rows) return {false, ld};
  }
  if (col == 1 || cols == 1) {
    i64 const ld = rows == 1 ? cols : row;
    if (ld >= cols) return {true, ld};
  }
  return {false, 0};
}
/// The same for a result, which may not be transposed.
constexpr i64 columns_of(i64 rows, i64 cols, i64 row, i64 col) {
  i64 const ld = cols == 1 ? rows : col;
  return (row == 1 || rows == 1) && ld >= rows ? ld : 0;
}

/// Precondition: m, n, k > 0.
template <class Scalar, class Result>
constexpr blas_product blas_form(exec::matrix_products<Scalar, Result> const& p) {
  blas_product r;
  r.k = p.k;
  i64 const by_columns = columns_of(p.m, p.n, p.c.row, p.c.col),
            by_rows = columns_of(p.n, p.m, p.c.col, p.c.row);
  r.swapped = by_columns == 0;
  r.ldc = r.swapped ? by_rows : by_columns;
  if (r.swapped) {
    r.m = p.n;
    r.n = p.m;
    r.x = as_columns(p.n, p.k, p.b.col, p.b.row);
    r.y = as_columns(p.k, p.m, p.a.col, p.a.row);
  } else {
    r.m = p.m;
    r.n = p.n;
    r.x = as_columns(p.m, p.k, p.a.row, p.a.col);
    r.y = as_columns(p.k, p.n, p.b.row, p.b.col);
  }
  r.fits = r.ldc > 0 && r.x.ld > 0 && r.y.ld > 0;
  return r;
}

}  // namespace tensorpar::detail
