// tensorpar/exec/eigen_gemm.hpp - one matrix product for every scalar: Eigen for reals, lazy reduction for the prime field
#pragma once
#include <concepts>
#include <tensorpar/exec/eigen_door.hpp>
#include <tensorpar/exec/kernels_gemm.hpp>

namespace tensorpar {

namespace detail {
/// Where a matrix has unit stride. Extents of one take any order.
enum class majority { row, column, neither };
template <class Element> constexpr majority majority_of(matrix_view<Element> const& a, i64 rows, i64 cols) {
  if (a.col == 1 || cols == 1) return majority::row;
  if (a.row == 1 || rows == 1) return majority::column;
  return majority::neither;
}

template <int OrderA, int OrderB, std::floating_point Real>
void multiply_eigen(i64 m, i64 n, i64 k, Real const* a, i64 lead_a, Real const* b, i64 lead_b, Real* c, i64 lead_c, bool accumulate) {
  using stride = Eigen::OuterStride<>;
  using left = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, OrderA>;
  using right = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, OrderB>;
  using result = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  Eigen::Map<left const, 0, stride> const x(a, m, k, stride(lead_a));
  Eigen::Map<right const, 0, stride> const y(b, k, n, stride(lead_b));
  Eigen::Map<result, 0, stride> z(c, m, n, stride(lead_c));
  if (!accumulate) z.setZero();
  z.noalias() += x * y;
}
}  // namespace detail

/// c (+)= a b with a: [m, k], b: [k, n], c: [m, n]; c overlaps neither operand. Fast where each has unit stride one way or the other; right for all strides.
template <class Scalar>
void multiply(i64 m, i64 n, i64 k, matrix_view<Scalar const> a, matrix_view<Scalar const> b, matrix_view<Scalar> c, bool accumulate = false) {
  if constexpr (std::same_as<Scalar, prime_field>) {
    detail::multiply_lazily(m, n, k, a, b, c, accumulate);
  } else if constexpr (std::floating_point<Scalar>) {
    using detail::majority;
    if (c.col != 1 && n != 1 && (c.row == 1 || m == 1))
      return multiply<Scalar>(n, m, k, {b.p, b.col, b.row}, {a.p, a.col, a.row}, {c.p, c.col, c.row}, accumulate);
    majority const x = detail::majority_of(a, m, k), y = detail::majority_of(b, k, n);
    if (x == majority::neither || y == majority::neither || (c.col != 1 && n != 1)) return detail::multiply_plainly<Scalar>(m, n, k, a, b, c, accumulate);
    constexpr int row = Eigen::RowMajor, col = Eigen::ColMajor;
    if (x == majority::row && y == majority::row) detail::multiply_eigen<row, row>(m, n, k, a.p, a.row, b.p, b.row, c.p, c.row, accumulate);
    else if (x == majority::row) detail::multiply_eigen<row, col>(m, n, k, a.p, a.row, b.p, b.col, c.p, c.row, accumulate);
    else if (y == majority::row) detail::multiply_eigen<col, row>(m, n, k, a.p, a.col, b.p, b.row, c.p, c.row, accumulate);
    else detail::multiply_eigen<col, col>(m, n, k, a.p, a.col, b.p, b.col, c.p, c.row, accumulate);
  } else {
    detail::multiply_plainly<Scalar>(m, n, k, a, b, c, accumulate);
  }
}

}  // namespace tensorpar
