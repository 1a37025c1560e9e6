// tensorpar/exec/cpu/kernels/structural.hpp - kernels of operators that move elements: any element type of
// any size
#pragma once
#include <algorithm>
#include <cstring>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/cpu/common/kernels.hpp>
#include <tensorpar/op/kinds/head_repeat.hpp>
#include <tensorpar/op/kinds/parallel.hpp>
#include <tensorpar/op/kinds/axis_sum.hpp>
#include <tensorpar/op/kinds/structural.hpp>

namespace tensorpar::exec {

namespace detail {
template <class Scalar> std::size_t element_size(op::tensor_block const& b) {
  return is_integer(b.type) ? sizeof(std::int32_t) : sizeof(Scalar);
}

/// Row-major order is kept.
template <class Scalar> void copy_all(kernel_call const& c) {
  i64 const n = c.out_block[0].elements();
  if (n) std::memcpy(c.out[0], c.in[0], idx(n) * element_size<Scalar>(c.out_block[0]));
}

/// A tensor seen as [outer, extent of one axis, inner], inner in bytes.
struct axis_view {
  i64 outer, extent;
  std::size_t inner;
};
template <class Scalar> axis_view view_along(op::tensor_block const& b, int a) {
  i64 outer = 1;
  for (int i = 0; i < a; ++i) outer *= b.local[i];
  return {outer, b.local[a], idx(stride_of(b, a)) * element_size<Scalar>(b)};
}
/// Copies positions [from, from + n) of one tensor's axis to [to, to + n) of another's.
inline void copy_along(void const* x, axis_view const& xv, i64 from, void* y, axis_view const& yv, i64 to,
                       i64 n) {
  auto const* p = static_cast<char const*>(x);
  auto* q = static_cast<char*>(y);
  for (i64 o = 0; o < xv.outer; ++o)
    std::memcpy(q + idx(o * yv.extent + to) * yv.inner,
                p + idx(o * xv.extent + from) * xv.inner,
                idx(n) * xv.inner);
}

/// Local blocks of these hold the same elements in the same order on both sides: what changes is the shape,
/// or the sharding.
template <class Op>
inline constexpr bool keeps_order =
    one_of<Op, reshape, flatten, merge_axes, split_axis, parallel::partition, parallel::combine,
           parallel::replicate, parallel::reduce, parallel::pipeline, parallel::batch>;
}  // namespace detail

template <class Scalar, class Op>
  requires detail::keeps_order<Op>
struct kernel<Scalar, Op> {
  static void run(kernel_call const& c, Op const&) { detail::copy_all<Scalar>(c); }
};

template <class Scalar> struct kernel<Scalar, slice_axis> {
  static void run(kernel_call const& c, slice_axis const& op) {
    int const a = tensorpar::detail::axis_number(op.axis_no, c.in_block[0].rank);
    detail::copy_along(c.in[0], detail::view_along<Scalar>(c.in_block[0], a), op.begin, c.out[0],
                       detail::view_along<Scalar>(c.out_block[0], a), 0, op.length);
  }
};
template <class Scalar> struct kernel<Scalar, unslice_axis> {
  static void run(kernel_call const& c, unslice_axis const& op) {
    int const a = tensorpar::detail::axis_number(op.axis_no, c.in_block[0].rank);
    detail::axis_view const x = detail::view_along<Scalar>(c.in_block[0], a),
                            y = detail::view_along<Scalar>(c.out_block[0], a);
    // zero is all bits zero in every scalar
    std::memset(c.out[0], 0, idx(y.outer * y.extent) * y.inner);
    detail::copy_along(c.in[0], x, 0, c.out[0], y, op.begin, x.extent);
  }
};
template <class Scalar> struct kernel<Scalar, concat> {
  static void run(kernel_call const& c, concat const& op) {
    int const a = tensorpar::detail::axis_number(op.axis_no, c.out_block[0].rank);
    detail::axis_view const y = detail::view_along<Scalar>(c.out_block[0], a);
    i64 at = 0;
    for (int k = 0; k < c.inputs; ++k) {
      detail::axis_view const x = detail::view_along<Scalar>(c.in_block[k], a);
      detail::copy_along(c.in[k], x, 0, c.out[0], y, at, x.extent);
      at += x.extent;
    }
  }
};
template <class Scalar> struct kernel<Scalar, split_axes> {
  static void run(kernel_call const& c, split_axes const& op) {
    int const a = tensorpar::detail::axis_number(op.axis_no, c.in_block[0].rank);
    detail::axis_view const x = detail::view_along<Scalar>(c.in_block[0], a);
    for (int k = 0; k < c.outputs; ++k) {
      detail::axis_view const y = detail::view_along<Scalar>(c.out_block[k], a);
      detail::copy_along(c.in[0], x, k * y.extent, c.out[k], y, 0, y.extent);
    }
  }
};

/// Every position of the summed axis in turn, so that rows are read in order.
template <class Scalar> struct kernel<Scalar, op::sum_axis> {
  static void run(kernel_call const& c, op::sum_axis const& op) {
    op::tensor_block const& b = c.in_block[0];
    int const a = tensorpar::detail::axis_number(op.axis_no, b.rank);
    i64 outer = 1;
    for (int i = 0; i < a; ++i) outer *= b.local[i];
    i64 const inner = detail::stride_of(b, a);
    Scalar const* x = detail::operand<Scalar>(c, 0);
    Scalar* y = detail::result<Scalar>(c);
    for (i64 o = 0; o < outer; ++o, y += inner) {
      for (i64 i = 0; i < inner; ++i) y[i] = Scalar(0);
      for (i64 k = 0; k < b.local[a]; ++k, x += inner)
        for (i64 i = 0; i < inner; ++i) y[i] += x[i];
    }
  }
};
template <class Scalar> struct kernel<Scalar, op::repeat_axis> {
  static void run(kernel_call const& c, op::repeat_axis const& op) {
    int const a = tensorpar::detail::axis_number(op.axis_no, c.out_block[0].rank);
    detail::axis_view const y = detail::view_along<Scalar>(c.out_block[0], a);
    for (i64 k = 0; k < y.extent; ++k)
      detail::copy_along(c.in[0], {y.outer, 1, y.inner}, 0, c.out[0], y, k, 1);
  }
};
namespace detail {
/// Elements of a head along the last axis of this block, which holds whole heads.
inline i64 head_width(op::tensor_block const& b, i64 heads) { return b.global[b.rank - 1] / heads; }
}  // namespace detail
template <class Scalar> struct kernel<Scalar, op::sum_heads> {
  static void run(kernel_call const& c, op::sum_heads const& op) {
    i64 const width = detail::head_width(c.out_block[0], op.heads);
    Scalar const* x = detail::operand<Scalar>(c, 0);
    Scalar* y = detail::result<Scalar>(c);
    for (i64 head = c.out_block[0].elements() / width; head > 0; --head, y += width) {
      for (i64 i = 0; i < width; ++i) y[i] = Scalar(0);
      for (i64 k = 0; k < op.count; ++k, x += width)
        for (i64 i = 0; i < width; ++i) y[i] += x[i];
    }
  }
};
template <class Scalar> struct kernel<Scalar, op::repeat_heads> {
  static void run(kernel_call const& c, op::repeat_heads const& op) {
    i64 const width = detail::head_width(c.in_block[0], op.heads);
    Scalar const* x = detail::operand<Scalar>(c, 0);
    Scalar* y = detail::result<Scalar>(c);
    for (i64 head = c.in_block[0].elements() / width; head > 0; --head, x += width)
      for (i64 k = 0; k < op.count; ++k, y += width) std::copy(x, x + width, y);
  }
};

template <class Scalar> struct kernel<Scalar, transpose> {
  static void run(kernel_call const& c, transpose const& op) {
    if (is_integer(c.in_block[0].type)) permute<std::int32_t>(c, op);
    else permute<Scalar>(c, op);
  }

 private:
  /// [outer, extent i, middle, extent j, inner] -> [outer, extent j, middle, extent i, inner], in tiles that
  /// fit the first-level cache.
  template <class Element> static void permute(kernel_call const& c, transpose const& op) {
    op::tensor_block const& b = c.in_block[0];
    int i = tensorpar::detail::axis_number(op.a, b.rank), j = tensorpar::detail::axis_number(op.b, b.rank);
    if (i > j) { int const t = i; i = j; j = t; }
    if (i == j) return detail::copy_all<Scalar>(c);
    Element const* x = detail::operand<Element>(c, 0);
    Element* y = detail::result<Element>(c);
    i64 outer = 1, middle = 1;
    for (int k = 0; k < i; ++k) outer *= b.local[k];
    for (int k = i + 1; k < j; ++k) middle *= b.local[k];
    i64 const n = b.local[i], m = b.local[j], inner = detail::stride_of(b, j), tile = 16;
    for (i64 o = 0; o < outer; ++o)
      for (i64 k = 0; k < middle; ++k)
        for (i64 p0 = 0; p0 < n; p0 += tile)
          for (i64 q0 = 0; q0 < m; q0 += tile)
            for (i64 q = q0; q < m && q < q0 + tile; ++q)
              for (i64 p = p0; p < n && p < p0 + tile; ++p) {
                Element const* from = x + (((o * n + p) * middle + k) * m + q) * inner;
                Element* to = y + (((o * m + q) * middle + k) * n + p) * inner;
                for (i64 e = 0; e < inner; ++e) to[e] = from[e];
              }
  }
};

}  // namespace tensorpar::exec
