// tensorpar/exec/teams/kernels/convolution.hpp - team kernels of two-dimensional convolution: windows
// unrolled into columns, then a matrix product
#pragma once
#include <tensorpar/exec/cpu/common/convolution_sizes.hpp>
#include <tensorpar/exec/teams/kernels/contraction.hpp>

namespace tensorpar::exec {

namespace detail {
/// Element (row, point) of the column matrix.
template <class Scalar> struct unroll_at {
  convolution_sizes s;
  Scalar const* x;
  Scalar* col;
  constexpr void operator()(i64 at) const {
    i64 const point = at % s.points(), row = at / s.points(), c = row / (s.w.kernel_h * s.w.kernel_w);
    i64 const h = point / s.wide * s.w.stride + row / s.w.kernel_w % s.w.kernel_h - s.w.pad_h,
              v = point % s.wide * s.w.stride + row % s.w.kernel_w - s.w.pad_w;
    col[at] =
        h >= 0 && h < s.height && v >= 0 && v < s.width ? x[(c * s.height + h) * s.width + v] : Scalar(0);
  }
};
/// An image's element: the sum of the places in the column matrix that it was copied to.
template <class Scalar> struct roll_up_at {
  convolution_sizes s;
  Scalar const* col;
  Scalar* x;
  constexpr void operator()(i64 at) const {
    i64 const v = at % s.width, h = at / s.width % s.height, c = at / s.width / s.height;
    computed<Scalar> sum(0);
    for (i64 r = 0; r < s.w.kernel_h; ++r)
      for (i64 q = 0; q < s.w.kernel_w; ++q) {
        i64 const y = h + s.w.pad_h - r, z = v + s.w.pad_w - q;
        if (y < 0 || z < 0 || y % s.w.stride || z % s.w.stride || y / s.w.stride >= s.high ||
            z / s.w.stride >= s.wide)
          continue;
        sum += col[((c * s.w.kernel_h + r) * s.w.kernel_w + q) * s.points() + y / s.w.stride * s.wide +
                   z / s.w.stride];
      }
    x[at] = sum;
  }
};
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, conv2d> {
  static constexpr bool multiplies = true;
  static i64 workspace(conv2d const& op, shapes in, shapes out) {
    return detail::column_scalars(op, in, out);
  }
  template <class Device> static void run(Device const& d, kernel_call const& c, conv2d const& op) {
    detail::convolution_sizes const s(op.window(), c.in_block[0], c.out_block[0], c.in_block[1].local[1]);
    Scalar const *x = detail::operand<Scalar>(c, 0), *filter = detail::operand<Scalar>(c, 1);
    Scalar *y = detail::result<Scalar>(c), *col = static_cast<Scalar*>(c.workspace);
    s.each_group([&](i64 image, i64 filters, i64 to) {
      if (!s.direct()) d.each(s.rows() * s.points(), detail::unroll_at<Scalar>{s, x + image, col});
      d.product(detail::one_product<Scalar>(
          s.per_group(), s.points(), s.rows(), {filter + filters, s.rows(), 1},
          {s.direct() ? x + image : col, s.points(), 1}, {y + to, s.points(), 1}));
    });
    if (op.bias && c.first_share)
      d.each(c.out_block[0].elements(),
             detail::add_vector_at<Scalar>{detail::operand<Scalar>(c, 2), y, s.filters, s.points()});
  }
};
template <class Scalar> struct team_kernel<Scalar, conv2d_grad_x> {
  static constexpr bool multiplies = true;
  static i64 workspace(conv2d_grad_x const& op, shapes in, shapes out) {
    return detail::column_scalars(op, in, out);
  }
  template <class Device> static void run(Device const& d, kernel_call const& c, conv2d_grad_x const& op) {
    detail::convolution_sizes const s(op.window(), c.out_block[0], c.in_block[0], c.in_block[1].local[1]);
    Scalar const *dy = detail::operand<Scalar>(c, 0), *filter = detail::operand<Scalar>(c, 1);
    Scalar *x = detail::result<Scalar>(c), *col = static_cast<Scalar*>(c.workspace);
    s.each_group([&](i64 image, i64 filters, i64 from) {
      d.product(detail::one_product<Scalar>(s.rows(), s.points(), s.per_group(),
                                            {filter + filters, 1, s.rows()}, {dy + from, s.points(), 1},
                                            {s.direct() ? x + image : col, s.points(), 1}));
      if (!s.direct()) d.each(s.depth * s.height * s.width, detail::roll_up_at<Scalar>{s, col, x + image});
    });
  }
};
template <class Scalar> struct team_kernel<Scalar, conv2d_grad_w> {
  static constexpr bool multiplies = true;
  static i64 workspace(conv2d_grad_w const& op, shapes in, shapes out) {
    return detail::column_scalars(op, in, out);
  }
  template <class Device> static void run(Device const& d, kernel_call const& c, conv2d_grad_w const& op) {
    detail::convolution_sizes const s(op.window(), c.in_block[1], c.in_block[0], c.out_block[0].local[1]);
    Scalar const *dy = detail::operand<Scalar>(c, 0), *x = detail::operand<Scalar>(c, 1);
    computed<Scalar>* y = detail::result<computed<Scalar>>(c);
    Scalar* col = static_cast<Scalar*>(c.workspace);
    d.each(c.out_block[0].elements(), detail::fill_at<computed<Scalar>>{y, computed<Scalar>(0)});
    s.each_group([&](i64 image, i64 filters, i64 from) {
      if (!s.direct()) d.each(s.rows() * s.points(), detail::unroll_at<Scalar>{s, x + image, col});
      d.product(detail::one_product<Scalar, computed<Scalar>>(
          s.per_group(), s.rows(), s.points(), {dy + from, s.points(), 1},
          {s.direct() ? x + image : col, 1, s.points()}, {y + filters, s.rows(), 1}, true));
    });
  }
};

}  // namespace tensorpar::exec
