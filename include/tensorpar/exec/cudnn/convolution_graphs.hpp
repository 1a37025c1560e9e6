// tensorpar/exec/cudnn/convolution_graphs.hpp - a convolution and its gradients as graphs of one operation
#pragma once
#include <tensorpar/exec/cpu/common/convolution_sizes.hpp>
#include <tensorpar/exec/cudnn/graph.hpp>

namespace tensorpar::detail {

/// images: x or its gradient; filters: likewise; results: y or its gradient. Each [n, c, h, w] in the order
/// in which it lies.
struct convolution_graph : fused_graph {
  int images = -1, filters = -1, results = -1;
};

/// op: convolve, convolve_grad_x or convolve_grad_w.
inline convolution_graph convolution(fused_op op, exec::detail::convolution_sizes const& s, fused_type type) {
  convolution_graph g;
  auto const dense = [&](i64 n, i64 c, i64 h, i64 w) {
    return g.given({n, c, h, w}, {c * h * w, h * w, w, 1}, type);
  };
  g.images = dense(s.images, s.channels, s.height, s.width);
  g.filters = dense(s.filters, s.depth, s.w.kernel_h, s.w.kernel_w);
  g.results = dense(s.images, s.filters, s.high, s.wide);
  if (op == fused_op::convolve) g.put(op, g.results, g.images, g.filters);
  else if (op == fused_op::convolve_grad_x) g.put(op, g.images, g.results, g.filters);
  else g.put(op, g.filters, g.results, g.images);
  g.steps.back().window = {s.w.stride, s.w.pad_h, s.w.pad_w};
  return g;
}

/// Numbers in images, filters and results.
inline i64 convolution_elements(exec::detail::convolution_sizes const& s) {
  return s.images * s.channels * s.height * s.width + s.filters * s.depth * s.w.kernel_h * s.w.kernel_w +
         s.images * s.filters * s.high * s.wide;
}
/// Bytes of scratch for tensors of so many bytes: cuDNN may bring each into another order of axes.
constexpr i64 convolution_room(i64 bytes) { return bytes + bytes / 4 + (i64{4} << 20); }

}  // namespace tensorpar::detail
