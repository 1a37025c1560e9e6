// tensorpar/exec/cpu/common/eigen_gemm.hpp - one matrix product for every scalar: packed panels for reals,
// lazy reduction for the prime field
#pragma once
#include <concepts>
#include <tensorpar/exec/cpu/common/eigen_packed.hpp>

namespace tensorpar::exec {

/// c (+)= a b with a: [m, k], b: [k, n], c: [m, n]; c overlaps neither operand. Any strides; a unit stride
/// one way or the other is faster. The order of summation follows from sizes and strides alone. O(m n k).
template <class Scalar>
void multiply(i64 m, i64 n, i64 k, matrix_view<Scalar const> a, matrix_view<Scalar const> b,
              matrix_view<Scalar> c, bool accumulate = false) {
  if constexpr (std::same_as<Scalar, prime_field>) {
    detail::multiply_lazily(m, n, k, a, b, c, accumulate);
  } else if constexpr (std::same_as<Scalar, float> || std::same_as<Scalar, double>) {
    // below that, packing costs more than it brings
    constexpr i64 thin = 2;
    if (n <= thin && n <= m) {
      for (i64 j = 0; j < n; ++j)
        detail::multiply_column<Scalar>(m, k, a, b.p + j * b.col, b.row, c.p + j * c.col, c.row, accumulate);
    } else if (m <= thin) {
      for (i64 i = 0; i < m; ++i)
        detail::multiply_column<Scalar>(n, k, {b.p, b.col, b.row}, a.p + i * a.row, a.col, c.p + i * c.row,
                                        c.col, accumulate);
    } else {
      detail::packed_product<Scalar>::run(m, n, k, a, b, c, accumulate);
    }
  } else {
    detail::multiply_plainly<Scalar>(m, n, k, a, b, c, accumulate);
  }
}

}  // namespace tensorpar::exec
