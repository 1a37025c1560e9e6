// tensorpar/op/kinds/batch_norm.hpp - batch normalisation as two operators, so that a split batch still has
// exact statistics
#pragma once
#include <tensorpar/op/core/any_op.hpp>
#include <tensorpar/op/kinds/contraction.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/op/kinds/structural.hpp>

namespace tensorpar::op {

/// Operands dm [2, c], x; result dx = dm[0] + 2 x dm[1].
struct channel_moments_grad {
  static constexpr auto name = "channel_moments_grad";
  static constexpr unsigned wide_operands = 1;
  static constexpr auto notation = "Mc, nchw -> nchw";
  static constexpr int arity = 2;
  constexpr inference infer(shapes in) const { return in[1]; }
  constexpr double flops(shapes in, shapes) const { return 3.0 * static_cast<double>(in[1].elements()); }
};
/// Sums of x and of x * x per channel: [n, c, h, w] -> [2, c]. Splitting n, h or w leaves partial sums, hence
/// synchronised statistics.
struct channel_moments {
  static constexpr auto name = "channel_moments";
  static constexpr auto notation = "nchw -> Mc";
  constexpr inference infer(shapes in) const {
    if (in[0].rank != 4) return mismatch("channel_moments takes [n,c,h,w]", in[0], scalar);
    return shape{dim(2), in[0].d[1]};
  }
  constexpr double flops(shapes in, shapes) const { return 3.0 * static_cast<double>(in[0].elements()); }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(0)) g.give(0, g.emit(channel_moments_grad{}, {g.gradient(0), g.operand(0)}));
  }
};

/// Operands dy, x, moments; result [2, c]: sum(dy * xhat), sum(dy).
struct normalize_sums {
  double eps = 1e-5;
  static constexpr auto name = "normalize_sums";
  static constexpr unsigned wide_operands = 1 << 2;
  static constexpr auto notation = "nchw, nchw, Mc -> Kc";
  static constexpr int arity = 3;
  static constexpr void describe(auto& s, auto&& visit) { visit("eps", s.eps); }
  constexpr inference infer(shapes in) const { return shape{dim(2), in[0].d[1]}; }
  constexpr double flops(shapes in, shapes) const { return 5.0 * static_cast<double>(in[0].elements()); }
};
/// Operands dy, moments, gamma; result dx at fixed moments: dy * gamma / std.
struct normalize_grad_x {
  double eps = 1e-5;
  static constexpr auto name = "normalize_grad_x";
  static constexpr unsigned wide_operands = 1 << 1;
  static constexpr auto notation = "nchw, Mc, c -> nchw";
  static constexpr int arity = 3;
  static constexpr void describe(auto& s, auto&& visit) { visit("eps", s.eps); }
  constexpr inference infer(shapes in) const { return in[0]; }
  constexpr double flops(shapes in, shapes) const { return 2.0 * static_cast<double>(in[0].elements()); }
};
/// Operands sums [2, c] (complete), moments [2, c], gamma [c]; result: derivative by the moments [2, c]. With
/// A = sum(dy xhat), B = sum(dy), mean m and std s over `count` elements: ds1 = gamma / count * (A m / s^2 -
/// B / s), ds2 = -gamma A / (2 s^2 count).
struct normalize_grad_moments {
  double eps = 1e-5;
  i64 count = 1;
  static constexpr auto name = "normalize_grad_moments";
  static constexpr unsigned wide_operands = 1 | 1 << 1;
  static constexpr auto notation = "Kc, Mc, c -> Mc";
  static constexpr int arity = 3;
  static constexpr void describe(auto& s, auto&& visit) { visit("eps", s.eps); visit("count", s.count); }
  constexpr inference infer(shapes in) const { return in[1]; }
  constexpr double flops(shapes in, shapes) const { return 10.0 * static_cast<double>(in[1].elements()); }
};

/// (x - mean) / sqrt(variance + eps) * gamma + beta per channel, statistics from the operand `moments` (sums
/// over the whole batch). Operands x [n,c,h,w], moments [2,c]; weights gamma, beta [c]. `batch_norm`
/// (typed/compose.hpp) puts the two operators together.
struct normalize {
  double eps = 1e-5;
  static constexpr auto name = "normalize";
  static constexpr unsigned wide_operands = 1 << 1;
  static constexpr auto notation = "nchw, Mc, c, c -> nchw";
  static constexpr int arity = 2;
  static constexpr void describe(auto& s, auto&& visit) { visit("eps", s.eps); }
  constexpr inference infer(shapes in) const {
    if (in[0].rank != 4 || in[1].rank != 2)
      return mismatch("normalize takes [n,c,h,w] and moments [2,c]", in[0], in[1]);
    if (!fits(in[0].d[1], in[1].d[1]) || in[1].d[0].n != 2)
      return mismatch("moments do not fit the channels", in[0], in[1]);
    return in[0];
  }
  constexpr weight_list weights(shapes in) const {
    return {{{in[0].d[1]}, init::ones}, {{in[0].d[1]}, init::zeros}};
  }
  constexpr double flops(shapes in, shapes) const { return 4.0 * static_cast<double>(in[0].elements()); }
  [[gnu::cold]] void derive(auto& g) const {
    shape const x = g.type(g.operand(0));
    bool const all_fixed = !g.wanted(1) && !g.wanted(2) && !g.wanted(3);
    auto const sums =
        all_fixed ? decltype(g.gradient(0))()
                  : g.emit(normalize_sums{eps}, {g.gradient(0), g.operand(0), g.operand(1)});
    if (g.wanted(0)) g.give(0, g.emit(normalize_grad_x{eps}, {g.gradient(0), g.operand(1), g.operand(2)}));
    if (g.wanted(1))
      g.give(1, g.emit(normalize_grad_moments{eps, x.elements() / x.d[1].n},
                       {sums, g.operand(1), g.operand(2)}));
    for (int k = 0; k < 2; ++k)
      if (g.wanted(2 + k)) g.give(2 + k, g.emit(contraction("Kc->c"), {g.emit(slice_axis{0, k, 1}, {sums})}));
  }
};

}  // namespace tensorpar::op
