// tensorpar/exec/cpu/kernels/embedding.hpp - kernels that read and update rows of a table, of which a device
// may hold a part
#pragma once
#include <tensorpar/exec/cpu/common/kernels.hpp>
#include <tensorpar/op/kinds/embedding.hpp>

namespace tensorpar::exec {

namespace detail {
/// Row of the local part, or -1 where another device has it. Indices outside the whole table are the user's
/// error.
inline i64 local_row(std::int32_t index, i64 rows, op::tensor_block const& table, kernel_call const& c) {
  i64 const r = checked_index(index, rows, "index", c) - table.offset[0];
  return r >= 0 && r < table.local[0] ? r : -1;
}
/// y[i] = sum over the i-th bag of `length` indices of their rows.
template <class Scalar> void gather(kernel_call const& c, i64 rows, i64 length) {
  Scalar const* table = operand<Scalar>(c, 1);
  std::int32_t const* index = operand<std::int32_t>(c, 0);
  Scalar* y = result<Scalar>(c);
  i64 const e = last_extent(c.out_block[0]), bags = row_count(c.out_block[0]);
  for (i64 i = 0; i < bags; ++i, y += e) {
    for (i64 k = 0; k < e; ++k) y[k] = Scalar(0);
    for (i64 l = 0; l < length; ++l) {
      i64 const r = local_row(index[i * length + l], rows, c.in_block[1], c);
      if (r >= 0) for (i64 k = 0; k < e; ++k) y[k] += table[r * e + k];
    }
  }
}
template <class Scalar> void scatter(kernel_call const& c, i64 rows, i64 length) {
  Scalar const* d = operand<Scalar>(c, 0);
  std::int32_t const* index = operand<std::int32_t>(c, 1);
  Scalar* y = result<Scalar>(c);
  i64 const e = last_extent(c.in_block[0]), bags = row_count(c.in_block[0]), all = c.out_block[0].elements();
  for (i64 k = 0; k < all; ++k) y[k] = Scalar(0);
  for (i64 i = 0; i < bags; ++i, d += e)
    for (i64 l = 0; l < length; ++l) {
      i64 const r = local_row(index[i * length + l], rows, c.out_block[0], c);
      if (r >= 0) for (i64 k = 0; k < e; ++k) y[r * e + k] += d[k];
    }
}
}  // namespace detail

template <class Scalar> struct kernel<Scalar, embedding> {
  static void run(kernel_call const& c, embedding const& op) { detail::gather<Scalar>(c, op.rows, 1); }
};
template <class Scalar> struct kernel<Scalar, embedding_grad> {
  static void run(kernel_call const& c, embedding_grad const& op) { detail::scatter<Scalar>(c, op.rows, 1); }
};
template <class Scalar> struct kernel<Scalar, embedding_bag> {
  static void run(kernel_call const& c, embedding_bag const& op) {
    detail::gather<Scalar>(c, op.rows, detail::last_extent(c.in_block[0]));
  }
};
template <class Scalar> struct kernel<Scalar, embedding_bag_grad> {
  static void run(kernel_call const& c, embedding_bag_grad const& op) {
    detail::scatter<Scalar>(c, op.rows, detail::last_extent(c.in_block[1]));
  }
};

}  // namespace tensorpar::exec
