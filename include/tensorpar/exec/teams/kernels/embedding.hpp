// tensorpar/exec/teams/kernels/embedding.hpp - team kernels that read and update rows of a table, of which a
// device may hold a part
#pragma once
#include <tensorpar/exec/teams/kernels/kernel.hpp>
#include <tensorpar/op/kinds/embedding.hpp>
#include <utility>

namespace tensorpar::exec {

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
/// The row that an index names; of one that is out of range, the first (index_check has told).
struct row_of_index {
  std::int32_t const* index;
  i64 rows;
  constexpr i64 operator()(i64 place) const {
    i64 const r = index[place];
    return r >= 0 && r < rows ? r : 0;
  }
};
/// Places of indices in the order of their rows, equal ones as they stand: first within runs of `run`, by
/// counting who comes before.
struct order_run_at {
  static constexpr i64 run = 256;
  row_of_index row;
  std::int32_t* order;
  i64 indices;
  index_check check;
  constexpr void operator()(i64 i) const {
    check(row.index[i]);
    i64 const from = i / run * run, to = from + run < indices ? from + run : indices, mine = row(i);
    i64 before = 0;
    for (i64 j = from; j < to; ++j) before += j < i ? row(j) <= mine : row(j) < mine;
    order[from + before] = static_cast<std::int32_t>(i);
  }
};
/// How many of the n places at `at`, which are in order, have rows before this one; `too`: or this one.
constexpr i64 rows_before(row_of_index const& row, std::int32_t const* at, i64 n, i64 r, bool too) {
  i64 from = 0, to = n;
  while (from < to) {
    i64 const mid = from + (to - from) / 2, other = row(at[mid]);
    if (other < r || (too && other == r)) from = mid + 1;
    else to = mid;
  }
  return from;
}
/// Two neighbouring runs become one: every place goes behind those of the other run that come before it.
struct merge_runs_at {
  row_of_index row;
  std::int32_t const* from;
  std::int32_t* to;
  i64 indices, run;
  constexpr void operator()(i64 i) const {
    i64 const begin = i / (2 * run) * (2 * run), mid = begin + run < indices ? begin + run : indices,
              end = mid + run < indices ? mid + run : indices, r = row(from[i]);
    i64 const others = i < mid ? rows_before(row, from + mid, end - mid, r, false)
                               : rows_before(row, from + begin, run, r, true);
    to[i < mid ? i + others : i - run + others] = from[i];
  }
};
/// Where the places of a row of this part of the table begin.
struct row_start_at {
  row_of_index row;
  std::int32_t const* order;
  std::int32_t* start;
  i64 indices, first_row;
  constexpr void operator()(i64 r) const {
    start[r] = static_cast<std::int32_t>(rows_before(row, order, indices, first_row + r, false));
  }
};
/// A column of a row: its places in their order, so that sums come out the same every time.
template <class Scalar> struct scatter_at {
  Scalar const* d;
  std::int32_t const *order, *start;
  computed<Scalar>* y;
  i64 columns;
  std::uint32_t length;
  constexpr void operator()(i64 at) const {
    i64 const r = at / columns, k = at % columns;
    computed<Scalar> s(0);
    for (std::int32_t i = start[r]; i < start[r + 1]; ++i)
      s += d[static_cast<std::uint32_t>(order[i]) / length * columns + k];
    y[at] = s;
  }
};
template <class Scalar, class Device>
void run_gather(Device const& d, kernel_call const& c, i64 rows, i64 length) {
  op::tensor_block const &table = c.in_block[1], &y = c.out_block[0];
  d.each(y.elements(), gather_at<Scalar>{operand<std::int32_t>(c, 0),
                                         operand<Scalar>(c, 1),
                                         result<Scalar>(c),
                                         last_extent(y),
                                         length,
                                         table.offset[0],
                                         table.local[0],
                                         {d.fault(), c.op->op, rows}});
}
template <class Scalar, class Device>
void run_scatter(Device const& d, kernel_call const& c, i64 rows, i64 length) {
  op::tensor_block const& table = c.out_block[0];
  i64 const columns = last_extent(c.in_block[0]), indices = row_count(c.in_block[0]) * length;
  row_of_index const row{operand<std::int32_t>(c, 1), rows};
  auto *from = static_cast<std::int32_t*>(c.workspace), *to = from + indices, *const start = to + indices;
  d.each(indices, order_run_at{row, from, indices, {d.fault(), c.op->op, rows}});
  for (i64 run = order_run_at::run; run < indices; run *= 2) {
    d.each(indices, merge_runs_at{row, from, to, indices, run});
    std::swap(from, to);
  }
  d.each(table.local[0] + 1, row_start_at{row, from, start, indices, table.offset[0]});
  d.each(table.elements(), scatter_at<Scalar>{operand<Scalar>(c, 0), from, start, result<computed<Scalar>>(c),
                                              columns, static_cast<std::uint32_t>(length)});
}
/// Two lists of places, and where rows begin.
template <class Scalar> i64 scatter_scratch(shape const& index, shape const& table) {
  constexpr auto each = static_cast<i64>(sizeof(computed<Scalar>));
  return ((2 * index.elements() + table[0].n + 1) * static_cast<i64>(sizeof(std::int32_t)) + each - 1) / each;
}
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, embedding> {
  template <class Device> static void run(Device const& d, kernel_call const& c, embedding const& op) {
    detail::run_gather<Scalar>(d, c, op.rows, 1);
  }
};
template <class Scalar> struct team_kernel<Scalar, embedding_grad> {
  static i64 workspace(embedding_grad const&, shapes in, shapes out) {
    return detail::scatter_scratch<Scalar>(in[1], out[0]);
  }
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
  static i64 workspace(embedding_bag_grad const&, shapes in, shapes out) {
    return detail::scatter_scratch<Scalar>(in[1], out[0]);
  }
  template <class Device>
  static void run(Device const& d, kernel_call const& c, embedding_bag_grad const& op) {
    detail::run_scatter<Scalar>(d, c, op.rows, detail::last_extent(c.in_block[1]));
  }
};

}  // namespace tensorpar::exec
