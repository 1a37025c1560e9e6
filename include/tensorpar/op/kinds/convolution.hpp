// tensorpar/op/kinds/convolution.hpp - two-dimensional convolution and its two derivatives
#pragma once
#include <tensorpar/op/core/any_op.hpp>
#include <tensorpar/op/kinds/contraction.hpp>

namespace tensorpar {

namespace detail {
/// Attributes of a window that slides over height and width. pad -1: "same" at stride 1 (kernel / 2).
/// kernel_w 0: square; pad_w -1 follows kernel_w.
struct window {
  i64 kernel_h, kernel_w, stride, pad_h, pad_w;
  constexpr i64 out_h(i64 h) const { return (h + 2 * pad_h - kernel_h) / stride + 1; }
  constexpr i64 out_w(i64 w) const { return (w + 2 * pad_w - kernel_w) / stride + 1; }
};
constexpr window make_window(i64 kernel, i64 stride, i64 pad, i64 kernel_w, i64 pad_w) {
  i64 const kw = kernel_w ? kernel_w : kernel;
  i64 const ph = pad < 0 ? kernel / 2 : pad;
  i64 const pw = pad_w >= 0 ? pad_w : kernel_w || pad < 0 ? kw / 2 : ph;
  return {kernel, kw, stride, ph, pw};
}
constexpr op::complaint check_image(char const* what, shape const& x, window const& w) {
  if (x.rank != 4) return op::mismatch(what, x, scalar);
  if (!x.d[1].is_static() || !x.d[2].is_static() || !x.d[3].is_static())
    return op::mismatch("channels, height and width must be static", x, scalar);
  if (w.kernel_h < 1 || w.kernel_w < 1 || w.stride < 1)
    return op::mismatch("kernel and stride must be positive", x, shape{dim(w.kernel_h), dim(w.kernel_w)});
  for (i64 n : {w.kernel_h, w.kernel_w, w.stride, w.pad_h, w.pad_w})
    if (n > core::max_tensor_elements)
      return op::mismatch("kernel, stride and padding must be at most 2^48", x,
                      shape{dim(w.kernel_h), dim(w.kernel_w)});
  if (x.d[2].n + 2 * w.pad_h < w.kernel_h || x.d[3].n + 2 * w.pad_w < w.kernel_w)
    return op::mismatch("the window is larger than the image", x, shape{dim(w.kernel_h), dim(w.kernel_w)});
  return {nullptr, scalar, scalar};
}
}  // namespace detail

/// y[n,o,h,w] = sum_{c,r,s} x[n,c,h*stride+r-pad,w*stride+s-pad] W[o,c,r,s] + b[o]. x: [n,c,h,w]; W: [out,
/// c/groups, kernel, kernel_w].
struct conv2d {
  i64 out;
  i64 kernel = 3;
  i64 stride = 1;
  i64 pad = -1;
  i64 groups = 1;
  bool bias = false;
  i64 kernel_w = 0;
  i64 pad_w = -1;
  static constexpr auto name = "conv2d";
  static constexpr auto work = op::work_kind::product;
  static constexpr void describe(auto& s, auto&& visit) {
    visit("out", s.out); visit("kernel", s.kernel); visit("stride", s.stride); visit("pad", s.pad);
    visit("groups", s.groups); visit("bias", s.bias); visit("kernel_w", s.kernel_w); visit("pad_w", s.pad_w);
  }
  constexpr detail::window window() const {
    return detail::make_window(kernel, stride, pad, kernel_w, pad_w);
  }
  /// Grouped: channels, filters and results are split together, by whole groups.
  constexpr op::notation_text notation_for(shapes) const {
    op::notation_text t;
    return t.put(groups == 1 ? "ncHW,ocRS,o->noYX" : "ngHW,gCRS,g->ngYX");
  }
  constexpr i64 units(char letter, shapes) const { return letter == 'g' ? groups : 0; }
  constexpr op::inference infer(shapes in) const {
    shape const& x = in[0];
    auto const w = window();
    if (op::complaint const c = detail::check_image("conv2d takes [n,c,h,w]", x, w); c.rule) return c;
    if (out < 1) return op::mismatch("conv2d: out must be positive", x, shape{dim(out)});
    if (groups < 1 || x.d[1].n % groups || out % groups)
      return op::mismatch("channels not divisible by groups", x, shape{dim(groups)});
    return x.with(1, dim(x.d[1].name, out, axis{}))
        .with(2, dim(x.d[2].name, w.out_h(x.d[2].n), axis{}))
        .with(3, dim(x.d[3].name, w.out_w(x.d[3].n), axis{}));
  }
  // not const: g++ 12 takes a constructor of a const aggregate for a change of it
  constexpr op::weight_list weights(shapes in) const {
    auto const w = window();
    op::weight k{{dim(out), dim(in[0].d[1].n / groups), dim(w.kernel_h), dim(w.kernel_w)}, op::init::fan_in},
        b{{dim(out)}, op::init::zeros};
    return bias ? op::weight_list{k, b} : op::weight_list{k};
  }
  constexpr double flops(shapes in, shapes y) const {
    auto const w = window();
    return 2.0 * static_cast<double>(y[0].elements()) * static_cast<double>(in[0].d[1].n / groups) *
           static_cast<double>(w.kernel_h) * static_cast<double>(w.kernel_w);
  }
  [[gnu::cold]] void derive(auto& g) const;
};

/// The derivative by the image: operands dy [n,o,y,x], W; result [n,c,h,w].
struct conv2d_grad_x {
  i64 kernel, stride, pad, groups, kernel_w, pad_w, h, w;
  static constexpr auto name = "conv2d_grad_x";
  static constexpr auto work = op::work_kind::product;
  static constexpr int arity = 2;
  static constexpr void describe(auto& s, auto&& visit) {
    visit("kernel", s.kernel); visit("stride", s.stride); visit("pad", s.pad); visit("groups", s.groups);
    visit("kernel_w", s.kernel_w); visit("pad_w", s.pad_w); visit("h", s.h); visit("w", s.w);
  }
  constexpr detail::window window() const {
    return detail::make_window(kernel, stride, pad, kernel_w, pad_w);
  }
  constexpr op::notation_text notation_for(shapes) const {
    op::notation_text t;
    return t.put(groups == 1 ? "noYX,ocRS->ncHW" : "ngYX,gCRS->ngHW");
  }
  constexpr i64 units(char letter, shapes) const { return letter == 'g' ? groups : 0; }
  constexpr op::inference infer(shapes in) const {
    return in[0].with(1, dim(in[1].d[1].n * groups)).with(2, dim(h)).with(3, dim(w));
  }
  constexpr double flops(shapes in, shapes) const {
    return 2.0 * static_cast<double>(in[0].elements()) * static_cast<double>(in[1].elements() / in[1].d[0].n);
  }
};

/// The derivative by the filters: operands dy [n,o,y,x], x [n,c,h,w]; result [o, c/groups, kernel, kernel_w].
struct conv2d_grad_w {
  i64 kernel, stride, pad, groups, kernel_w, pad_w;
  static constexpr auto name = "conv2d_grad_w";
  static constexpr auto work = op::work_kind::product;
  static constexpr int arity = 2;
  static constexpr void describe(auto& s, auto&& visit) {
    visit("kernel", s.kernel); visit("stride", s.stride); visit("pad", s.pad); visit("groups", s.groups);
    visit("kernel_w", s.kernel_w); visit("pad_w", s.pad_w);
  }
  constexpr detail::window window() const {
    return detail::make_window(kernel, stride, pad, kernel_w, pad_w);
  }
  constexpr op::notation_text notation_for(shapes) const {
    op::notation_text t;
    return t.put(groups == 1 ? "noYX,ncHW->ocRS" : "ngYX,ngHW->gCRS");
  }
  constexpr i64 units(char letter, shapes) const { return letter == 'g' ? groups : 0; }
  constexpr op::inference infer(shapes in) const {
    auto const v = window();
    return shape{dim(in[0].d[1].n), dim(in[1].d[1].n / groups), dim(v.kernel_h), dim(v.kernel_w)};
  }
  constexpr double flops(shapes in, shapes out) const {
    return 2.0 * static_cast<double>(in[0].elements()) *
           static_cast<double>(out[0].elements() / out[0].d[0].n);
  }
};

void conv2d::derive(auto& g) const {
  shape const x = g.type(g.operand(0));
  if (g.wanted(0))
    g.give(0, g.emit(conv2d_grad_x{kernel, stride, pad, groups, kernel_w, pad_w, x.d[2].n, x.d[3].n},
                     {g.gradient(0), g.operand(1)}));
  if (g.wanted(1))
    g.give(1, g.emit(conv2d_grad_w{kernel, stride, pad, groups, kernel_w, pad_w},
                     {g.gradient(0), g.operand(0)}));
  if (bias && g.wanted(2))
    g.give(2, g.emit(contraction(groups == 1 ? "noYX->o" : "ngYX->g"), {g.gradient(0)}));
}

}  // namespace tensorpar
