// tensorpar/op/kinds/pooling.hpp - pooling over windows and over whole images
#pragma once
#include <tensorpar/op/core/any_op.hpp>
#include <tensorpar/op/kinds/convolution.hpp>

namespace tensorpar {

/// Operands dy, x, y; result dx. Max: the gradient goes to the first element (in row-major order) that equals
/// the maximum, or is NaN where that is.
struct pool2d_grad {
  i64 kernel, stride, pad;
  bool average;
  static constexpr auto name = "pool2d_grad";
  static constexpr auto notation = "ncYX, ncHW, ncYX -> ncHW";
  static constexpr int arity = 3;
  static constexpr void describe(auto& s, auto&& visit) {
    visit("kernel", s.kernel);
    visit("stride", s.stride);
    visit("pad", s.pad);
    visit("average", s.average);
  }
  constexpr detail::window window() const { return detail::make_window(kernel, stride, pad, 0, -1); }
  constexpr op::inference infer(shapes in) const { return in[1]; }
  constexpr double flops(shapes in, shapes) const {
    return static_cast<double>(in[0].elements()) * static_cast<double>(kernel) * static_cast<double>(kernel);
  }
};
/// Maximum or average over kernel x kernel windows of [n,c,h,w]. Padding never wins a maximum, NaN always
/// does; an average divides by kernel * kernel.
struct pool2d {
  i64 kernel = 2;
  i64 stride = 2;
  i64 pad = 0;
  bool average = false;
  static constexpr auto name = "pool2d";
  static constexpr auto notation = "ncHW -> ncYX";
  static constexpr void describe(auto& s, auto&& visit) {
    visit("kernel", s.kernel);
    visit("stride", s.stride);
    visit("pad", s.pad);
    visit("average", s.average);
  }
  constexpr detail::window window() const { return detail::make_window(kernel, stride, pad, 0, -1); }
  constexpr op::inference infer(shapes in) const {
    shape const& x = in[0];
    auto const w = window();
    if (op::complaint const c = detail::check_image("pool2d takes [n,c,h,w]", x, w); c.rule) return c;
    if (2 * w.pad_h > kernel)
      return op::mismatch("pool2d: padding over half the kernel", x, shape{dim(kernel), dim(w.pad_h)});
    return x.with(2, dim(x.d[2].name, w.out_h(x.d[2].n), axis{}))
        .with(3, dim(x.d[3].name, w.out_w(x.d[3].n), axis{}));
  }
  constexpr double flops(shapes, shapes out) const {
    return static_cast<double>(out[0].elements()) * static_cast<double>(kernel) * static_cast<double>(kernel);
  }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(0))
      g.give(0,
             g.emit(pool2d_grad{kernel, stride, pad, average}, {g.gradient(0), g.operand(0), g.result(0)}));
  }
};
constexpr pool2d max_pool(i64 kernel = 2, i64 stride = 2, i64 pad = 0) {
  return {kernel, stride, pad, false};
}
constexpr pool2d avg_pool(i64 kernel = 2, i64 stride = 2, i64 pad = 0) { return {kernel, stride, pad, true}; }

/// Operand dy [n,c]; result [n,c,h,w], each element dy / (h * w).
struct global_average_grad {
  i64 h, w;
  static constexpr auto name = "global_average_grad";
  static constexpr auto notation = "nc -> ncHW";
  static constexpr void describe(auto& s, auto&& visit) { visit("h", s.h); visit("w", s.w); }
  constexpr op::inference infer(shapes in) const {
    shape r{in[0].d[0], in[0].d[1], dim(h), dim(w)};
    r.type = in[0].type;
    return r;
  }
};
/// Mean over height and width: [n,c,h,w] -> [n,c].
struct global_average {
  static constexpr auto name = "global_average";
  static constexpr auto notation = "ncHW -> nc";
  constexpr op::inference infer(shapes in) const {
    if (in[0].rank != 4) return op::mismatch("global_average takes [n,c,h,w]", in[0], scalar);
    shape r{in[0].d[0], in[0].d[1]};
    r.type = in[0].type;
    return r;
  }
  constexpr double flops(shapes in, shapes) const { return static_cast<double>(in[0].elements()); }
  [[gnu::cold]] void derive(auto& g) const {
    shape const x = g.type(g.operand(0));
    if (g.wanted(0)) g.give(0, g.emit(global_average_grad{x.d[2].n, x.d[3].n}, {g.gradient(0)}));
  }
};

}  // namespace tensorpar
