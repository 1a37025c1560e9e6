// tensorpar/exec/teams/kernels/pooling.hpp - team kernels of pooling over windows and over whole images:
// every element gathers what is its own
#pragma once
#include <tensorpar/exec/cpu/kernels/pooling.hpp>
#include <tensorpar/exec/teams/kernels/kernel.hpp>

namespace tensorpar::exec {

namespace detail {
template <class Scalar> struct pool_at {
  Scalar const* image;
  Scalar* y;
  tensorpar::detail::window w;
  i64 height, width, high, wide;
  bool average;
  computed<Scalar> f;
  constexpr void operator()(i64 at) const {
    window_part const part = clipped(w, at / wide % high, at % wide, height, width);
    Scalar const* x = image + at / wide / high * height * width;
    computed<Scalar> sum(0), top = x[part.top * width + part.left];
    for (i64 i = part.top; i < part.bottom; ++i)
      for (i64 j = part.left; j < part.right; ++j) {
        computed<Scalar> const v = x[i * width + j];
        if (average) sum += v;
        else if (scalar_traits<Scalar>::greater(v, top)) top = v;
      }
    y[at] = average ? sum * f : top;
  }
};
/// An element of the image: what the windows over it give it. Of a maximum, the first element that equals it
/// has everything.
template <class Scalar> struct pool_grad_at {
  Scalar const *d, *image, *pooled;
  Scalar* to;
  tensorpar::detail::window w;
  i64 height, width, high, wide;
  bool average;
  computed<Scalar> f;
  constexpr bool first_of(window_part const& part, Scalar const* x, i64 h, i64 v,
                          computed<Scalar> top) const {
    if (!is_top(computed<Scalar>(x[h * width + v]), top)) return false;
    for (i64 i = part.top; i <= h; ++i)
      for (i64 j = part.left; j < (i == h ? v : part.right); ++j)
        if (is_top(computed<Scalar>(x[i * width + j]), top)) return false;
    return true;
  }
  constexpr void operator()(i64 at) const {
    i64 const v = at % width, h = at / width % height, plane = at / width / height;
    i64 const top = h + w.pad_h - w.kernel_h + 1, left = v + w.pad_w - w.kernel_w + 1;
    computed<Scalar> sum(0);
    for (i64 y = top > 0 ? (top + w.stride - 1) / w.stride : 0; y < high && y * w.stride - w.pad_h <= h; ++y)
      for (i64 x = left > 0 ? (left + w.stride - 1) / w.stride : 0; x < wide && x * w.stride - w.pad_w <= v;
           ++x) {
        i64 const place = (plane * high + y) * wide + x;
        if (average) sum += d[place] * f;
        else if (first_of(clipped(w, y, x, height, width), image + plane * height * width, h, v,
                          pooled[place]))
          sum += d[place];
      }
    to[at] = sum;
  }
};
template <class Scalar> struct plane_average_at {
  Scalar const* x;
  Scalar* y;
  i64 n;
  computed<Scalar> f;
  template <class Team> constexpr void operator()(i64 p, Team const& team) const {
    computed<Scalar> const s = team.template sum<computed<Scalar>>(n, [&](i64 i) { return x[p * n + i]; });
    team.alone([&] { y[p] = s * f; });
  }
};
template <class Scalar> struct plane_share_at {
  Scalar const* d;
  Scalar* y;
  i64 n;
  computed<Scalar> f;
  constexpr void operator()(i64 i) const { y[i] = d[i / n] * f; }
};
template <class Scalar> computed<Scalar> one_over(i64 n) {
  return scalar_traits<Scalar>::reciprocal(scalar_traits<Scalar>::from_integer(n));
}
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, pool2d> {
  template <class Device> static void run(Device const& d, kernel_call const& c, pool2d const& op) {
    op::tensor_block const &x = c.in_block[0], &y = c.out_block[0];
    d.each(y.elements(),
           detail::pool_at<Scalar>{detail::operand<Scalar>(c, 0), detail::result<Scalar>(c), op.window(),
                                   x.local[2], x.local[3], y.local[2], y.local[3], op.average,
                                   detail::one_over<Scalar>(op.kernel * op.kernel)});
  }
};
template <class Scalar> struct team_kernel<Scalar, pool2d_grad> {
  template <class Device> static void run(Device const& d, kernel_call const& c, pool2d_grad const& op) {
    op::tensor_block const &y = c.in_block[0], &x = c.in_block[1];
    d.each(x.elements(),
           detail::pool_grad_at<Scalar>{detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1),
                                        detail::operand<Scalar>(c, 2), detail::result<Scalar>(c), op.window(),
                                        x.local[2], x.local[3], y.local[2], y.local[3], op.average,
                                        detail::one_over<Scalar>(op.kernel * op.kernel)});
  }
};
template <class Scalar> struct team_kernel<Scalar, global_average> {
  template <class Device> static void run(Device const& d, kernel_call const& c, global_average const&) {
    i64 const n = c.in_block[0].local[2] * c.in_block[0].local[3];
    d.teams(c.out_block[0].elements(),
            detail::plane_average_at<Scalar>{detail::operand<Scalar>(c, 0), detail::result<Scalar>(c), n,
                                             detail::one_over<Scalar>(n)});
  }
};
template <class Scalar> struct team_kernel<Scalar, global_average_grad> {
  template <class Device>
  static void run(Device const& d, kernel_call const& c, global_average_grad const& op) {
    i64 const n = op.h * op.w;
    d.each(c.in_block[0].elements() * n,
           detail::plane_share_at<Scalar>{detail::operand<Scalar>(c, 0), detail::result<Scalar>(c), n,
                                          detail::one_over<Scalar>(n)});
  }
};

}  // namespace tensorpar::exec
