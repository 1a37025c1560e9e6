// tensorpar/exec/teams/embedding.hpp - team kernels that read and update rows of a table, of which a device may hold a part
#pragma once
#include <tensorpar/exec/teams/kernel.hpp>
#include <tensorpar/op/embedding.hpp>

namespace tensorpar {

namespace detail {
/// Bags of `length` indices; columns side by side.
template <class Scalar> struct gather_at {
  std::int32_t const* index;
  Scalar const* table;
  Scalar* y;
  i64 columns, length, first_row, rows_here;
  index_check check;
  constexpr void operator()(i64 i) const {
    i64 const bag = i / columns, k = i % columns;
    computed<Scalar> s(0);
    for (i64 l = 0; l < length; ++l) {
      i64 const r = check(index[bag * length + l]) - first_row;
      if (r >= 0 && r < rows_here) s += table[r * columns + k];
    }
    y[i] = s;
  }
};
/// A column of some rows of the table: indices in their order, so that sums have the same order every time. Neighbours look at the same
/// indices, for the same rows.
template <class Scalar> struct scatter_at {
  Scalar const* d;
  std::int32_t const* index;
  computed<Scalar>* y;
  i64 columns, indices, length, first_row, rows_here, parts;
  index_check check;
  constexpr void operator()(i64 at) const {
    i64 const k = at % columns, p = at / columns, from = rows_here * p / parts, to = rows_here * (p + 1) / parts;
    for (i64 i = 0; i < indices; ++i) {
      i64 const r = check(index[i]) - first_row;
      if (r >= from && r < to) y[r * columns + k] += d[i / length * columns + k];
    }
  }
};
template <class Scalar, class Device> void run_gather(Device const& d, kernel_call const& c, i64 rows, i64 length) {
  tensor_block const &table = c.in_block[1], &y = c.out_block[0];
  d.each(y.elements(), gather_at<Scalar>{operand<std::int32_t>(c, 0), operand<Scalar>(c, 1), result<Scalar>(c), last_extent(y), length,
                                         table.offset[0], table.local[0], {d.fault(), c.op->op, rows}});
}
template <class Scalar, class Device> void run_scatter(Device const& d, kernel_call const& c, i64 rows, i64 length) {
  tensor_block const& table = c.out_block[0];
  i64 const columns = last_extent(c.in_block[0]);
  d.each(table.elements(), fill_at<computed<Scalar>>{result<computed<Scalar>>(c), computed<Scalar>(0)});
  i64 const parts = table.local[0] < 1 ? 1 : table.local[0] < 64 ? table.local[0] : 64;
  d.each(parts * columns, scatter_at<Scalar>{operand<Scalar>(c, 0), operand<std::int32_t>(c, 1), result<computed<Scalar>>(c), columns,
                                             row_count(c.in_block[0]) * length, length, table.offset[0], table.local[0], parts,
                                             {d.fault(), c.op->op, rows}});
}
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, embedding> {
  template <class Device> static void run(Device const& d, kernel_call const& c, embedding const& op) {
    detail::run_gather<Scalar>(d, c, op.rows, 1);
  }
};
template <class Scalar> struct team_kernel<Scalar, embedding_grad> {
  template <class Device> static void run(Device const& d, kernel_call const& c, embedding_grad const& op) {
    detail::run_scatter<Scalar>(d, c, op.rows, 1);
  }
};
template <class Scalar> struct team_kernel<Scalar, embedding_bag> {
  template <class Device> static void run(Device const& d, kernel_call const& c, embedding_bag const& op) {
    detail::run_gather<Scalar>(d, c, op.rows, detail::last_extent(c.in_block[0]));
  }
};
template <class Scalar> struct team_kernel<Scalar, embedding_bag_grad> {
  template <class Device> static void run(Device const& d, kernel_call const& c, embedding_bag_grad const& op) {
    detail::run_scatter<Scalar>(d, c, op.rows, detail::last_extent(c.in_block[1]));
  }
};

}  // namespace tensorpar
