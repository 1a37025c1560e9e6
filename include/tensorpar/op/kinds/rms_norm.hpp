// tensorpar/op/kinds/rms_norm.hpp - normalisation of the last index by its root mean square
#pragma once
#include <tensorpar/op/core/any_op.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>

namespace tensorpar {

/// Operands dy, x, gamma; result dx = (g - xhat mean(g xhat)) / rms with g = dy gamma and xhat = x / rms.
struct rmsnorm_grad_x {
  double eps = 1e-5;
  static constexpr auto name = "rmsnorm_grad_x";
  static constexpr auto notation = "...E, ...E, E -> ...E";
  static constexpr int arity = 3;
  static constexpr void describe(auto& s, auto&& visit) { visit("eps", s.eps); }
  constexpr op::inference infer(shapes in) const { return in[0]; }
  constexpr double flops(shapes in, shapes) const { return 9.0 * static_cast<double>(in[0].elements()); }
};
/// Operands dy, x; result dgamma[e] = sum dy * x / rms.
struct rmsnorm_grad_gamma {
  double eps = 1e-5;
  static constexpr auto name = "rmsnorm_grad_gamma";
  static constexpr auto notation = "...E, ...E -> E";
  static constexpr bool sums_wide = true;
  static constexpr int arity = 2;
  static constexpr void describe(auto& s, auto&& visit) { visit("eps", s.eps); }
  constexpr op::inference infer(shapes in) const { shape r{in[0].last()}; r.type = in[0].type; return r; }
  constexpr double flops(shapes in, shapes) const { return 5.0 * static_cast<double>(in[0].elements()); }
};
/// x / sqrt(mean(x * x) + eps) * gamma over the last axis (Zhang and Sennrich 2019). gamma: [last axis].
struct rmsnorm {
  double eps = 1e-5;
  static constexpr auto name = "rmsnorm";
  static constexpr auto notation = "...E, E -> ...E";
  static constexpr void describe(auto& s, auto&& visit) { visit("eps", s.eps); }
  constexpr op::inference infer(shapes in) const {
    if (in[0].rank < 1) return op::mismatch("rmsnorm takes at least one axis", in[0], scalar);
    return detail::real_same(in);
  }
  constexpr op::weight_list weights(shapes in) const { return {{{in[0].last()}, op::init::ones}}; }
  constexpr double flops(shapes in, shapes) const { return 4.0 * static_cast<double>(in[0].elements()); }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(0)) g.give(0, g.emit(rmsnorm_grad_x{eps}, {g.gradient(0), g.operand(0), g.operand(1)}));
    if (g.wanted(1)) g.give(1, g.emit(rmsnorm_grad_gamma{eps}, {g.gradient(0), g.operand(0)}));
  }
};

}  // namespace tensorpar
