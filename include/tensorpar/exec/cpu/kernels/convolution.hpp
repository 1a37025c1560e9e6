// tensorpar/exec/cpu/kernels/convolution.hpp - kernels of two-dimensional convolution: windows unrolled into
// columns, then a matrix product
#pragma once
#include <tensorpar/exec/cpu/common/convolution_sizes.hpp>
#include <tensorpar/exec/cpu/common/eigen_gemm.hpp>
#include <tensorpar/exec/cpu/common/kernels.hpp>

namespace tensorpar::exec {

namespace detail {
struct convolution_block : convolution_sizes {
  using convolution_sizes::convolution_sizes;
  /// Calls visit(row of the column matrix, its start, image offset of result row y's first element, first and
  /// past-last result column inside the image).
  template <class Visit> void each_row(Visit&& visit) const {
    for (i64 c = 0; c < depth; ++c)
      for (i64 r = 0; r < w.kernel_h; ++r)
        for (i64 s = 0; s < w.kernel_w; ++s) {
          i64 const row = (c * w.kernel_h + r) * w.kernel_w + s, shift = s - w.pad_w;
          i64 from = shift < 0 ? (-shift + w.stride - 1) / w.stride : 0,
              to = shift >= width ? 0 : (width - 1 - shift) / w.stride + 1;
          if (to > wide) to = wide;
          if (from > to) from = to;
          for (i64 y = 0; y < high; ++y) {
            i64 const h = y * w.stride + r - w.pad_h;
            bool const inside = h >= 0 && h < height;
            visit((row * high + y) * wide, (c * height + h) * width + shift, inside ? from : 0,
                  inside ? to : 0);
          }
        }
  }
  template <class Scalar> void unroll(Scalar const* x, Scalar* col) const {
    each_row([&](i64 at, i64 image, i64 from, i64 to) {
      Scalar* q = col + at;
      for (i64 i = 0; i < from; ++i) q[i] = Scalar(0);
      for (i64 i = from; i < to; ++i) q[i] = x[image + i * w.stride];
      for (i64 i = to; i < wide; ++i) q[i] = Scalar(0);
    });
  }
  template <class Scalar> void roll_up(Scalar const* col, Scalar* x) const {
    each_row([&](i64 at, i64 image, i64 from, i64 to) {
      for (i64 i = from; i < to; ++i) x[image + i * w.stride] += col[at + i];
    });
  }
};
}  // namespace detail

template <class Scalar> struct kernel<Scalar, conv2d> {
  static i64 workspace(conv2d const& op, shapes in, shapes out) {
    return detail::column_scalars(op, in, out);
  }
  static void run(kernel_call const& c, conv2d const& op) {
    detail::convolution_block const b(op.window(), c.in_block[0], c.out_block[0], c.in_block[1].local[1]);
    Scalar const *x = detail::operand<Scalar>(c, 0), *filter = detail::operand<Scalar>(c, 1);
    Scalar *y = detail::result<Scalar>(c), *col = static_cast<Scalar*>(c.workspace);
    b.each_group([&](i64 at, i64 filters, i64 points) {
      Scalar const* image = x + at;
      if (!b.direct()) b.unroll(image, col);
      multiply<Scalar>(b.per_group(), b.points(), b.rows(), {filter + filters, b.rows(), 1},
                       {b.direct() ? image : col, b.points(), 1}, {y + points, b.points(), 1});
    });
    if (op.bias && c.first_share) {
      Scalar const* bias = detail::operand<Scalar>(c, 2);
      for (i64 r = 0; r < b.images * b.filters; ++r)
        for (i64 i = 0; i < b.points(); ++i) y[r * b.points() + i] += bias[r % b.filters];
    }
  }
};

template <class Scalar> struct kernel<Scalar, conv2d_grad_x> {
  static i64 workspace(conv2d_grad_x const& op, shapes in, shapes out) {
    return detail::column_scalars(op, in, out);
  }
  static void run(kernel_call const& c, conv2d_grad_x const& op) {
    detail::convolution_block const b(op.window(), c.out_block[0], c.in_block[0], c.in_block[1].local[1]);
    Scalar const *d = detail::operand<Scalar>(c, 0), *filter = detail::operand<Scalar>(c, 1);
    Scalar *x = detail::result<Scalar>(c), *col = static_cast<Scalar*>(c.workspace);
    i64 const all = c.out_block[0].elements();
    if (!b.direct()) for (i64 i = 0; i < all; ++i) x[i] = Scalar(0);
    b.each_group([&](i64 at, i64 filters, i64 points) {
      Scalar* image = x + at;
      multiply<Scalar>(b.rows(), b.points(), b.per_group(), {filter + filters, 1, b.rows()},
                       {d + points, b.points(), 1}, {b.direct() ? image : col, b.points(), 1});
      if (!b.direct()) b.roll_up(col, image);
    });
  }
};

template <class Scalar> struct kernel<Scalar, conv2d_grad_w> {
  static i64 workspace(conv2d_grad_w const& op, shapes in, shapes out) {
    return detail::column_scalars(op, in, out);
  }
  static void run(kernel_call const& c, conv2d_grad_w const& op) {
    detail::convolution_block const b(op.window(), c.in_block[1], c.in_block[0], c.out_block[0].local[1]);
    Scalar const *d = detail::operand<Scalar>(c, 0), *x = detail::operand<Scalar>(c, 1);
    Scalar *y = detail::result<Scalar>(c), *col = static_cast<Scalar*>(c.workspace);
    i64 const all = c.out_block[0].elements();
    for (i64 i = 0; i < all; ++i) y[i] = Scalar(0);
    b.each_group([&](i64 at, i64 filters, i64 points) {
      Scalar const* image = x + at;
      if (!b.direct()) b.unroll(image, col);
      multiply<Scalar>(b.per_group(), b.rows(), b.points(), {d + points, b.points(), 1},
                       {b.direct() ? image : col, 1, b.points()}, {y + filters, b.rows(), 1}, true);
    });
  }
};

}  // namespace tensorpar::exec
