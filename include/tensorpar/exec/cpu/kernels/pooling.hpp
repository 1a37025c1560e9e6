// tensorpar/exec/cpu/kernels/pooling.hpp - kernels of pooling over windows and over whole images
#pragma once
#include <tensorpar/exec/cpu/common/kernels.hpp>
#include <tensorpar/op/kinds/pooling.hpp>

namespace tensorpar::exec {

namespace detail {
/// The part of a window that lies inside the image: rows [top, bottom), columns [left, right).
struct window_part {
  i64 top, bottom, left, right;
};
constexpr window_part clipped(tensorpar::detail::window const& w, i64 y, i64 x, i64 height, i64 width) {
  i64 const t = y * w.stride - w.pad_h, l = x * w.stride - w.pad_w, b = t + w.kernel_h, r = l + w.kernel_w;
  return {t < 0 ? 0 : t, b > height ? height : b, l < 0 ? 0 : l, r > width ? width : r};
}
/// Is x the element that the maximum was taken from? NaN is, where it is the maximum.
template <class Number> constexpr bool is_top(Number x, Number top) {
  return x == top || (x != x && top != top);
}
/// Calls visit(window's place in the result, image offset, part) for every window of every plane.
template <class Visit>
void each_window(op::tensor_block const& image, op::tensor_block const& pooled,
                 tensorpar::detail::window const& w, Visit&& visit) {
  i64 const planes = image.local[0] * image.local[1], height = image.local[2], width = image.local[3],
            high = pooled.local[2], wide = pooled.local[3];
  for (i64 p = 0; p < planes; ++p)
    for (i64 y = 0; y < high; ++y)
      for (i64 x = 0; x < wide; ++x)
        visit((p * high + y) * wide + x, p * height * width, clipped(w, y, x, height, width));
}
}  // namespace detail

template <class Scalar> struct kernel<Scalar, pool2d> {
  static void run(kernel_call const& c, pool2d const& op) {
    using traits = scalar_traits<Scalar>;
    Scalar const* image = detail::operand<Scalar>(c, 0);
    Scalar* to = detail::result<Scalar>(c);
    i64 const width = c.in_block[0].local[3];
    Scalar const f = traits::reciprocal(traits::from_integer(op.kernel * op.kernel));
    detail::each_window(c.in_block[0], c.out_block[0], op.window(),
                        [&](i64 place, i64 plane, detail::window_part const& part) {
                          Scalar const* x = image + plane;
                          auto const each = [&](auto&& visit) {
                            for (i64 i = part.top; i < part.bottom; ++i)
                              for (i64 j = part.left; j < part.right; ++j) visit(x[i * width + j]);
                          };
                          Scalar sum(0);
                          if (op.average) each([&](Scalar v) { sum += v; });
                          to[place] = op.average ? sum * f
                                                 : detail::largest_of(x[part.top * width + part.left], each);
                        });
  }
};
template <class Scalar> struct kernel<Scalar, pool2d_grad> {
  static void run(kernel_call const& c, pool2d_grad const& op) {
    using traits = scalar_traits<Scalar>;
    Scalar const *d = detail::operand<Scalar>(c, 0), *image = detail::operand<Scalar>(c, 1),
                 *pooled = detail::operand<Scalar>(c, 2);
    Scalar* to = detail::result<Scalar>(c);
    i64 const width = c.in_block[1].local[3], n = c.out_block[0].elements();
    for (i64 i = 0; i < n; ++i) to[i] = Scalar(0);
    Scalar const f = traits::reciprocal(traits::from_integer(op.kernel * op.kernel));
    detail::each_window(c.in_block[1], c.in_block[0], op.window(),
                        [&](i64 place, i64 plane, detail::window_part const& part) {
                          Scalar const share = op.average ? d[place] * f : d[place];
                          for (i64 i = part.top; i < part.bottom; ++i)
                            for (i64 j = part.left; j < part.right; ++j) {
                              i64 const at = plane + i * width + j;
                              if (op.average) to[at] += share;
                              else if (detail::is_top(image[at], pooled[place])) {
                                to[at] += share;
                                return;
                              }
                            }
                        });
  }
};

template <class Scalar> struct kernel<Scalar, global_average> {
  static void run(kernel_call const& c, global_average const&) {
    Scalar const* x = detail::operand<Scalar>(c, 0);
    Scalar* y = detail::result<Scalar>(c);
    i64 const planes = c.out_block[0].elements(), n = c.in_block[0].local[2] * c.in_block[0].local[3];
    Scalar const f = scalar_traits<Scalar>::reciprocal(scalar_traits<Scalar>::from_integer(n));
    for (i64 p = 0; p < planes; ++p)
      y[p] = detail::sum_of<Scalar>(n, [q = x + p * n](i64 i) { return q[i]; }) * f;
  }
};
template <class Scalar> struct kernel<Scalar, global_average_grad> {
  static void run(kernel_call const& c, global_average_grad const& op) {
    Scalar const* d = detail::operand<Scalar>(c, 0);
    Scalar* y = detail::result<Scalar>(c);
    i64 const planes = c.in_block[0].elements(), n = op.h * op.w;
    Scalar const f = scalar_traits<Scalar>::reciprocal(scalar_traits<Scalar>::from_integer(n));
    for (i64 p = 0; p < planes; ++p) {
      Scalar const share = d[p] * f;
      for (i64 i = 0; i < n; ++i) y[p * n + i] = share;
    }
  }
};

}  // namespace tensorpar::exec
