// tensorpar/op/kinds/reduction.hpp - operators that remove or normalise over the last index: softmax, layer
// norm
#pragma once
#include <tensorpar/op/core/any_op.hpp>
#include <tensorpar/op/kinds/contraction.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>

namespace tensorpar {

/// Derivative of softmax: operands dy, y; dx = y * (dy - sum(dy * y)).
struct softmax_grad {
  static constexpr auto name = "softmax_grad";
  static constexpr auto notation = "...E, ...E -> ...E";
  static constexpr int arity = 2;
  constexpr op::inference infer(shapes in) const { return detail::real_same(in); }
  constexpr double flops(shapes in, shapes) const { return 4.0 * static_cast<double>(in[0].elements()); }
};
/// exp(x) / sum(exp(x)) over the last axis.
struct softmax {
  static constexpr auto name = "softmax";
  static constexpr auto notation = "...E -> ...E";
  constexpr op::inference infer(shapes in) const {
    if (in[0].rank < 1) return op::mismatch("softmax takes at least one axis", in[0], scalar);
    return detail::real_same(in);
  }
  constexpr double flops(shapes in, shapes) const { return 5.0 * static_cast<double>(in[0].elements()); }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(0)) g.give(0, g.emit(softmax_grad{}, {g.gradient(0), g.result(0)}));
  }
};

/// Operands dy, x, gamma; result dx.
struct layernorm_grad_x {
  double eps = 1e-5;
  static constexpr auto name = "layernorm_grad_x";
  static constexpr auto notation = "...E, ...E, E -> ...E";
  static constexpr int arity = 3;
  static constexpr void describe(auto& s, auto&& visit) { visit("eps", s.eps); }
  constexpr op::inference infer(shapes in) const { return in[0]; }
  constexpr double flops(shapes in, shapes) const { return 14.0 * static_cast<double>(in[0].elements()); }
};
/// Operands dy, x; result dgamma[e] = sum dy * (x - mean) / std.
struct layernorm_grad_gamma {
  double eps = 1e-5;
  static constexpr auto name = "layernorm_grad_gamma";
  static constexpr auto notation = "...E, ...E -> E";
  static constexpr bool sums_wide = true;
  static constexpr int arity = 2;
  static constexpr void describe(auto& s, auto&& visit) { visit("eps", s.eps); }
  constexpr op::inference infer(shapes in) const { shape r{in[0].last()}; r.type = in[0].type; return r; }
  constexpr double flops(shapes in, shapes) const { return 8.0 * static_cast<double>(in[0].elements()); }
};
/// (x - mean) / sqrt(variance + eps) * gamma + beta over the last axis (Ba et al. 2016). gamma, beta: [last
/// axis].
struct layernorm {
  double eps = 1e-5;
  static constexpr auto name = "layernorm";
  static constexpr auto notation = "...E, E, E -> ...E";
  static constexpr void describe(auto& s, auto&& visit) { visit("eps", s.eps); }
  constexpr op::inference infer(shapes in) const {
    if (in[0].rank < 1) return op::mismatch("layernorm takes at least one axis", in[0], scalar);
    return detail::real_same(in);
  }
  constexpr op::weight_list weights(shapes in) const {
    op::weight_list r{};
    r.add(op::init::ones, in[0].last());
    r.add(op::init::zeros, in[0].last());
    return r;
  }
  constexpr double flops(shapes in, shapes) const { return 8.0 * static_cast<double>(in[0].elements()); }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(0)) g.give(0, g.emit(layernorm_grad_x{eps}, {g.gradient(0), g.operand(0), g.operand(1)}));
    if (g.wanted(1)) g.give(1, g.emit(layernorm_grad_gamma{eps}, {g.gradient(0), g.operand(0)}));
    detail::derive_over_leads(g, 2, "E->E");
  }
};

}  // namespace tensorpar
