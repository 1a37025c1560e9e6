// tensorpar/exec/cpu/common/convolution_sizes.hpp - a convolution's blocks, and the matrix of columns that
// its windows are unrolled into
#pragma once
#include <tensorpar/op/core/block.hpp>
#include <tensorpar/op/kinds/convolution.hpp>

namespace tensorpar::exec::detail {

/// Local sizes of a convolution. A block holds whole groups, or (one group) some channels.
struct convolution_sizes {
  tensorpar::detail::window w;
  i64 images, channels, height, width, filters, high, wide, depth;   // depth: channels per group
  convolution_sizes(tensorpar::detail::window const& v, op::tensor_block const& x, op::tensor_block const& y,
                    i64 per_group)
      : w(v),
        images(x.local[0]),
        channels(x.local[1]),
        height(x.local[2]),
        width(x.local[3]),
        filters(y.local[1]),
        high(y.local[2]),
        wide(y.local[3]),
        depth(per_group) {}
  constexpr i64 rows() const { return depth * w.kernel_h * w.kernel_w; }
  constexpr i64 points() const { return high * wide; }
  i64 groups() const { return channels / depth; }
  i64 per_group() const { return filters / groups(); }
  /// The image itself is its column matrix.
  bool direct() const {
    return w.kernel_h == 1 && w.kernel_w == 1 && w.stride == 1 && w.pad_h == 0 && w.pad_w == 0;
  }
  /// Calls visit(offset of a group's image, of its filters, of its results) for every image and group.
  template <class Visit> void each_group(Visit&& visit) const {
    for (i64 n = 0; n < images; ++n)
      for (i64 g = 0; g < groups(); ++g)
        visit((n * channels + g * depth) * height * width, g * per_group() * rows(),
              (n * filters + g * per_group()) * points());
  }
};

/// Scratch for the columns of one group of one image.
inline i64 column_scalars(conv2d const& op, shapes in, shapes out) {
  auto const w = op.window();
  return in[1].d[1].n * w.kernel_h * w.kernel_w * out[0].d[2].n * out[0].d[3].n;
}
inline i64 column_scalars(conv2d_grad_x const& op, shapes in, shapes) {
  auto const w = op.window();
  return in[1].d[1].n * w.kernel_h * w.kernel_w * in[0].d[2].n * in[0].d[3].n;
}
inline i64 column_scalars(conv2d_grad_w const&, shapes in, shapes out) {
  return out[0].d[1].n * out[0].d[2].n * out[0].d[3].n * in[0].d[2].n * in[0].d[3].n;
}

}  // namespace tensorpar::exec::detail
