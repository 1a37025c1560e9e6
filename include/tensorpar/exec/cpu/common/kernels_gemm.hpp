// tensorpar/exec/cpu/common/kernels_gemm.hpp - sums in a fixed order; matrix products over any scalar, and a
// fast one over the prime field
#pragma once
#include <concepts>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/prime_field.hpp>
#include <tensorpar/exec/device/scalar.hpp>

namespace tensorpar::exec {

/// A matrix in memory: element (i, j) is p[i * row + j * col].
template <class Element> struct matrix_view {
  Element* p;
  i64 row, col;
};

namespace detail {
/// Sum of f(0) ... f(n - 1) in a fixed order that vectorises and keeps rounding small: 8 lanes, emptied every
/// 4096 terms.
template <class Scalar, class Term> Scalar sum_of(i64 n, Term&& f) {
  constexpr i64 lanes = 8, block = 4096;
  Scalar total(0);
  for (i64 from = 0; from < n; from += block) {
    i64 const to = n - from < block ? n : from + block;
    Scalar lane[lanes]{};
    i64 i = from;
    for (; i + lanes <= to; i += lanes)
      for (i64 j = 0; j < lanes; ++j) lane[j] += f(i + j);
    for (i64 j = 0; i < to; ++i, ++j) lane[j] += f(i);
    for (i64 j = 1; j < lanes; ++j) lane[0] += lane[j];
    total += lane[0];
  }
  return total;
}

/// The largest of `top` and the numbers that each(visit) visits, by scalar_traits::greater.
template <class Scalar, class Each> [[gnu::noinline]] Scalar largest_by_order(Scalar top, Each const& each) {
  each([&](Scalar x) { if (scalar_traits<Scalar>::greater(x, top)) top = x; });
  return top;
}
/// The same, where real numbers take one maximum and one sum each, which processors need no branch for; only
/// where the sum is NaN they are looked at again, and NaN is the largest.
template <class Scalar, class Each> Scalar largest_of(Scalar top, Each const& each) {
  if constexpr (std::floating_point<Scalar>) {
    Scalar const first = top;
    Scalar sum = top;
    each([&](Scalar x) {
      top = x > top ? x : top;
      sum += x;
    });
    if (sum == sum) return top;
    top = first;
  }
  return largest_by_order(top, each);
}

/// c (+)= a b with a: [m, k], b: [k, n], c: [m, n], summed in the order of k. O(m n k).
template <class Scalar>
void multiply_plainly(i64 m, i64 n, i64 k, matrix_view<Scalar const> a, matrix_view<Scalar const> b,
                      matrix_view<Scalar> c, bool accumulate) {
  for (i64 i = 0; i < m; ++i)
    for (i64 j = 0; j < n; ++j) {
      Scalar& to = c.p[i * c.row + j * c.col];
      Scalar s = accumulate ? to : Scalar(0);
      for (i64 l = 0; l < k; ++l) s += a.p[i * a.row + l * a.col] * b.p[l * b.row + j * b.col];
      to = s;
    }
}

/// The same over the prime field: panels are packed on the stack, 2 x 2 sums are kept in 128 bits and reduced
/// once per panel.
inline void multiply_lazily(i64 m, i64 n, i64 k, matrix_view<prime_field const> a,
                            matrix_view<prime_field const> b, matrix_view<prime_field> c, bool accumulate) {
  constexpr i64 depth = 2 * field_sum::batch, high = 32;
  u64 left[high][depth], right[2][depth];
  if (!accumulate)
    for (i64 i = 0; i < m; ++i)
      for (i64 j = 0; j < n; ++j) c.p[i * c.row + j * c.col] = prime_field();
  for (i64 l0 = 0; l0 < k; l0 += depth) {
    i64 const d = k - l0 < depth ? k - l0 : depth, half = d < field_sum::batch ? d : field_sum::batch;
    for (i64 i0 = 0; i0 < m; i0 += high) {
      i64 const h = m - i0 < high ? m - i0 : high, h2 = (h + 1) / 2 * 2;
      for (i64 i = 0; i < h2; ++i)
        for (i64 l = 0; l < d; ++l) left[i][l] = i < h ? a.p[(i0 + i) * a.row + (l0 + l) * a.col].v : 0;
      for (i64 j0 = 0; j0 < n; j0 += 2) {
        i64 const w = n - j0 < 2 ? 1 : 2;
        for (i64 j = 0; j < 2; ++j)
          for (i64 l = 0; l < d; ++l) right[j][l] = j < w ? b.p[(l0 + l) * b.row + (j0 + j) * b.col].v : 0;
        for (i64 i = 0; i < h; i += 2) {
          u64 const *x = left[i], *y = left[i + 1];
          tensorpar::detail::u128 s[4] = {0, 0, 0, 0};
          auto run = [&](i64 from, i64 to) {
            for (i64 l = from; l < to; ++l) {
              s[0] += static_cast<tensorpar::detail::u128>(x[l]) * right[0][l];
              s[1] += static_cast<tensorpar::detail::u128>(x[l]) * right[1][l];
              s[2] += static_cast<tensorpar::detail::u128>(y[l]) * right[0][l];
              s[3] += static_cast<tensorpar::detail::u128>(y[l]) * right[1][l];
            }
          };
          run(0, half);
          for (tensorpar::detail::u128& t : s) t = field_sum::fold(t);
          run(half, d);
          for (i64 e = 0; e < 4; ++e)
            if (i + e / 2 < h && e % 2 < w)
              c.p[(i0 + i + e / 2) * c.row + (j0 + e % 2) * c.col] += prime_field::reduced(s[e]);
        }
      }
    }
  }
}
}  // namespace detail

}  // namespace tensorpar::exec
