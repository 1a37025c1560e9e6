// tensorpar/exec/teams/kernels/structural.hpp - team kernels of operators that move elements, and of sums
// along an axis
#pragma once
#include <tensorpar/exec/cpu/kernels/structural.hpp>
#include <tensorpar/exec/teams/kernels/kernel.hpp>

namespace tensorpar::exec {

namespace detail {
/// A tensor seen as [outer, extent of one axis, inner], inner in elements.
struct axis_sharding {
  i64 outer, extent, inner;
  axis_sharding(op::tensor_block const& b, int a) : outer(1), extent(b.local[a]), inner(stride_of(b, a)) {
    for (int i = 0; i < a; ++i) outer *= b.local[i];
  }
};
/// Copies `run` elements of every outer position, which lie `x_step` and `y_step` apart.
template <class Element> struct copy_runs_at {
  Element const* x;
  Element* y;
  i64 run, x_step, y_step;
  constexpr void operator()(i64 i) const { y[i / run * y_step + i % run] = x[i / run * x_step + i % run]; }
};
template <class Element> struct unslice_at {
  Element const* x;
  Element* y;
  i64 y_extent, x_extent, begin, inner;
  constexpr void operator()(i64 i) const {
    i64 const o = i / inner / y_extent, k = i / inner % y_extent - begin;
    y[i] = k >= 0 && k < x_extent ? x[(o * x_extent + k) * inner + i % inner] : Element(0);
  }
};
/// [outer, n, middle, m, inner] -> [outer, m, middle, n, inner].
template <class Element> struct transpose_at {
  Element const* x;
  Element* y;
  i64 n, middle, m, inner;
  constexpr void operator()(i64 i) const {
    i64 const e = i % inner, p = i / inner % n, k = i / inner / n % middle, q = i / inner / n / middle % m,
              o = i / inner / n / middle / m;
    y[i] = x[(((o * n + p) * middle + k) * m + q) * inner + e];
  }
};
/// The same for inner = 1, by squares of as many rows as 16 bytes have elements, turned in registers. Of 32
/// neighbours, a warp's, 4 lie side by side in x and 8 in y: they read 64 bytes of every row and write 128.
template <class Element> struct transpose_squares_at {
  static constexpr int side = 16 / sizeof(Element), reads = 4, writes = 8;
  Element const* x;
  Element* y;
  i64 n, middle, m;
  static constexpr i64 groups(i64 extent, int together) { return (extent / side + together - 1) / together; }
  constexpr i64 count(i64 outer) const {
    return outer * middle * groups(n, writes) * groups(m, reads) * (reads * writes);
  }
  bool fits() const { return side > 1 && n % side == 0 && m % side == 0 && at_16(x, y); }
  constexpr void operator()(i64 i) const {
    i64 const of_m = groups(m, reads), of_n = groups(n, writes), g = i / (reads * writes);
    i64 const q = (g % of_m * reads + i % reads) * side,
              p = (g / of_m % of_n * writes + i / reads % writes) * side;
    if (p >= n || q >= m) return;
    i64 const k = g / of_m / of_n % middle, o = g / of_m / of_n / middle;
    pack<Element, side> from[std::size_t{side}]{};
    for (int r = 0; r < side; ++r) from[r] = take<side>(x, ((o * n + p + r) * middle + k) * m + q);
    for (int c = 0; c < side; ++c) {
      pack<Element, side> to{};
      for (int r = 0; r < side; ++r) to.v[r] = from[r].v[c];
      put(y, ((o * m + q + c) * middle + k) * n + p, to);
    }
  }
};
template <class Element> struct repeat_at {
  Element const* x;
  Element* y;
  i64 extent, inner;
  constexpr void operator()(i64 i) const { y[i] = x[i / inner / extent * inner + i % inner]; }
};
template <class Scalar> struct sum_axis_at {
  Scalar const* x;
  Scalar* y;
  i64 extent, inner;
  constexpr void operator()(i64 i) const {
    computed<Scalar> s(0);
    Scalar const* p = x + i / inner * extent * inner + i % inner;
    for (i64 k = 0; k < extent; ++k) s += p[k * inner];
    y[i] = s;
  }
  template <class Team> constexpr void operator()(i64 i, Team const& team) const {        // where inner is 1
    computed<Scalar> const s =
        team.template sum<computed<Scalar>>(extent, [&](i64 k) { return x[i * extent + k]; });
    team.alone([&] { y[i] = s; });
  }
};
/// Calls visit(a pointer of the tensor's element type), which says by its type whether the tensor is of
/// integers.
template <class Scalar, class Visit> void by_element(op::tensor_block const& b, Visit&& visit) {
  if (is_integer(b.type)) visit(static_cast<std::int32_t*>(nullptr));
  else visit(static_cast<Scalar*>(nullptr));
}
/// Copies positions [from, from + n) of operand k's axis to [to, to + n) of result r's.
template <class Scalar, class Device>
void copy_part(Device const& d, kernel_call const& c, int a, int k, i64 from, int r, i64 to, i64 n) {
  axis_sharding const x(c.in_block[k], a), y(c.out_block[r], a);
  by_element<Scalar>(c.in_block[k], [&]<class E>(E*) {
    d.each(x.outer * n * x.inner,
           copy_runs_at<E>{operand<E>(c, k) + from * x.inner, result<E>(c, r) + to * y.inner, n * x.inner,
                           x.extent * x.inner, y.extent * y.inner});
  });
}
template <class Scalar, class Device> void copy_whole(Device const& d, kernel_call const& c) {
  by_element<Scalar>(c.in_block[0], [&]<class E>(E*) {
    d.each(c.out_block[0].elements(), copy_at<E>{operand<E>(c, 0), result<E>(c)});
  });
}
}  // namespace detail

template <class Scalar, class Op>
  requires detail::keeps_order<Op>
struct team_kernel<Scalar, Op> {
  template <class Device> static void run(Device const& d, kernel_call const& c, Op const&) {
    detail::copy_whole<Scalar>(d, c);
  }
};
template <class Scalar> struct team_kernel<Scalar, slice_axis> {
  template <class Device> static void run(Device const& d, kernel_call const& c, slice_axis const& op) {
    detail::copy_part<Scalar>(d, c, tensorpar::detail::axis_number(op.axis_no, c.in_block[0].rank), 0,
                              op.begin, 0, 0, op.length);
  }
};
template <class Scalar> struct team_kernel<Scalar, unslice_axis> {
  template <class Device> static void run(Device const& d, kernel_call const& c, unslice_axis const& op) {
    int const a = tensorpar::detail::axis_number(op.axis_no, c.in_block[0].rank);
    detail::axis_sharding const x(c.in_block[0], a), y(c.out_block[0], a);
    detail::by_element<Scalar>(c.in_block[0], [&]<class E>(E*) {
      d.each(c.out_block[0].elements(), detail::unslice_at<E>{detail::operand<E>(c, 0), detail::result<E>(c),
                                                              y.extent, x.extent, op.begin, y.inner});
    });
  }
};
template <class Scalar> struct team_kernel<Scalar, concat> {
  template <class Device> static void run(Device const& d, kernel_call const& c, concat const& op) {
    int const a = tensorpar::detail::axis_number(op.axis_no, c.out_block[0].rank);
    i64 at = 0;
    for (int k = 0; k < c.inputs; at += c.in_block[k++].local[a])
      detail::copy_part<Scalar>(d, c, a, k, 0, 0, at, c.in_block[k].local[a]);
  }
};
template <class Scalar> struct team_kernel<Scalar, split_axes> {
  template <class Device> static void run(Device const& d, kernel_call const& c, split_axes const& op) {
    int const a = tensorpar::detail::axis_number(op.axis_no, c.in_block[0].rank);
    for (int k = 0; k < c.outputs; ++k) {
      i64 const n = c.out_block[k].local[a];
      detail::copy_part<Scalar>(d, c, a, 0, k * n, k, 0, n);
    }
  }
};
template <class Scalar> struct team_kernel<Scalar, op::sum_axis> {
  template <class Device> static void run(Device const& d, kernel_call const& c, op::sum_axis const& op) {
    detail::axis_sharding const x(c.in_block[0], tensorpar::detail::axis_number(op.axis_no,
                                                                                c.in_block[0].rank));
    detail::sum_axis_at<Scalar> const f{detail::operand<Scalar>(c, 0), detail::result<Scalar>(c), x.extent,
                                        x.inner};
    if (x.inner == 1) d.teams(x.outer, f);
    else d.each(x.outer * x.inner, f);
  }
};
template <class Scalar> struct team_kernel<Scalar, op::repeat_axis> {
  template <class Device> static void run(Device const& d, kernel_call const& c, op::repeat_axis const& op) {
    detail::axis_sharding const y(c.out_block[0], tensorpar::detail::axis_number(op.axis_no,
        c.out_block[0].rank));
    detail::by_element<Scalar>(c.in_block[0], [&]<class E>(E*) {
      d.each(c.out_block[0].elements(),
             detail::repeat_at<E>{detail::operand<E>(c, 0), detail::result<E>(c), y.extent, y.inner});
    });
  }
};
template <class Scalar> struct team_kernel<Scalar, op::sum_heads> {
  template <class Device> static void run(Device const& d, kernel_call const& c, op::sum_heads const& op) {
    d.each(c.out_block[0].elements(),
           detail::sum_axis_at<Scalar>{detail::operand<Scalar>(c, 0), detail::result<Scalar>(c), op.count,
                                       detail::head_width(c.out_block[0], op.heads)});
  }
};
template <class Scalar> struct team_kernel<Scalar, op::repeat_heads> {
  template <class Device> static void run(Device const& d, kernel_call const& c, op::repeat_heads const& op) {
    d.each(c.out_block[0].elements(),
           detail::repeat_at<Scalar>{detail::operand<Scalar>(c, 0), detail::result<Scalar>(c), op.count,
                                     detail::head_width(c.in_block[0], op.heads)});
  }
};
template <class Scalar> struct team_kernel<Scalar, transpose> {
  template <class Device> static void run(Device const& d, kernel_call const& c, transpose const& op) {
    op::tensor_block const& b = c.in_block[0];
    int i = tensorpar::detail::axis_number(op.a, b.rank), j = tensorpar::detail::axis_number(op.b, b.rank);
    if (i == j) return detail::copy_whole<Scalar>(d, c);
    if (i > j) std::swap(i, j);
    i64 middle = 1;
    for (int k = i + 1; k < j; ++k) middle *= b.local[k];
    i64 const n = b.local[i], m = b.local[j], inner = detail::stride_of(b, j);
    detail::by_element<Scalar>(b, [&]<class E>(E*) {
      E const* const x = detail::operand<E>(c, 0);
      E* const y = detail::result<E>(c);
      detail::transpose_squares_at<E> const squares{x, y, n, middle, m};
      if (inner == 1 && squares.fits())
        return d.each(squares.count(b.elements() / (n * middle * m)), squares);
      d.each(b.elements(), detail::transpose_at<E>{x, y, n, middle, m, inner});
    });
  }
};

}  // namespace tensorpar::exec
