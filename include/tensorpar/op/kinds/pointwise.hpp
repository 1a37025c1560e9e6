// tensorpar/op/kinds/pointwise.hpp - operators that keep every index
#pragma once
#include <tensorpar/op/core/any_op.hpp>

namespace tensorpar {

namespace detail {
constexpr op::inference real_same(shapes in) {
  shape const& x = in[0];
  if (is_integer(x.type)) return op::mismatch("takes real numbers", x, scalar);
  for (int k = 1; k < in.n; ++k)
    if (!fits(x, in[k]) || x.type != in[k].type)
      return op::mismatch("operands must have one shape", x, in[k]);
  return x;
}
}  // namespace detail

/// Derivative of a unary function f: dx = dy * f'(v), where v is the operand (gelu) or the result (relu,
/// sigmoid, tanh).
#define TENSORPAR_UNARY(NAME, SPELLED, FROM, COST, GRAD_COST) \
  struct NAME##_grad { \
    static constexpr auto name = SPELLED "_grad"; \
    static constexpr auto notation = "..., ... -> ..."; \
    static constexpr int arity = 2; \
    constexpr op::inference infer(shapes in) const { return detail::real_same(in); } \
    constexpr double flops(shapes in, shapes) const { \
      return GRAD_COST * static_cast<double>(in[0].elements()); \
    } \
  }; \
  struct NAME { \
    static constexpr auto name = SPELLED; \
    static constexpr auto notation = "... -> ..."; \
    constexpr op::inference infer(shapes in) const { return detail::real_same(in); } \
    constexpr double flops(shapes in, shapes) const { return COST * static_cast<double>(in[0].elements()); } \
    [[gnu::cold]] void derive(auto& g) const { \
      if (g.wanted(0)) g.give(0, g.emit(NAME##_grad{}, {g.gradient(0), g.FROM(0)})); \
    } \
  };
TENSORPAR_UNARY(relu, "relu", result, 1, 1)         ///< max(x, 0); derivative 0 at 0, which the result tells
TENSORPAR_UNARY(gelu, "gelu", operand, 8, 12)       ///< x * Phi(x), tanh form (Hendrycks and Gimpel 2016)
TENSORPAR_UNARY(sigmoid, "sigmoid", result, 4, 3)
TENSORPAR_UNARY(tanh_, "tanh", result, 4, 3)
#undef TENSORPAR_UNARY

/// Element-wise sum of two tensors of one shape.
struct add {
  static constexpr auto name = "add";
  static constexpr auto notation = "..., ... -> ...";
  static constexpr int arity = 2;
  constexpr op::inference infer(shapes in) const { return detail::real_same(in); }
  [[gnu::cold]] void derive(auto& g) const {
    for (int i = 0; i < 2; ++i)
      if (g.wanted(i)) g.give(i, g.gradient(0));
  }
};

/// Element-wise product of two tensors of one shape.
struct mul {
  static constexpr auto name = "mul";
  static constexpr auto notation = "..., ... -> ...";
  static constexpr int arity = 2;
  constexpr op::inference infer(shapes in) const { return detail::real_same(in); }
  [[gnu::cold]] void derive(auto& g) const {
    for (int i = 0; i < 2; ++i)
      if (g.wanted(i)) g.give(i, g.emit(mul{}, {g.gradient(0), g.operand(1 - i)}));
  }
};

/// x * factor.
struct scale {
  double factor;
  static constexpr auto name = "scale";
  static constexpr auto notation = "... -> ...";
  static constexpr void describe(auto& s, auto&& visit) { visit("factor", s.factor); }
  constexpr op::inference infer(shapes in) const { return detail::real_same(in); }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(0)) g.give(0, g.emit(scale{factor}, {g.gradient(0)}));
  }
};

/// Multiplies an element by zero with probability rate (NaN and infinity become NaN), else by 1 / (1 - rate).
/// The draw depends on seed, training step and the *logical* element of the whole batch alone, so it is the
/// same under every sharding and in any number of micro-batches. Its derivative is itself with the same seed.
/// (`lower` gives every dropout of a model a seed of its own, made from this one and its place;
/// `computation_graph::add` those whose seed another one has.)
struct dropout {
  double rate = 0.5;
  i64 seed = 0;
  static constexpr auto name = "dropout";
  static constexpr auto notation = "... -> ...";
  static constexpr void describe(auto& s, auto&& visit) { visit("rate", s.rate); visit("seed", s.seed); }
  constexpr op::inference infer(shapes in) const {
    if (!(rate >= 0 && rate < 1)) return op::mismatch("dropout: rate must be in [0, 1)", in[0], scalar);
    return detail::real_same(in);
  }
  constexpr double flops(shapes in, shapes) const { return 8.0 * static_cast<double>(in[0].elements()); }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(0)) g.give(0, g.emit(dropout{rate, seed}, {g.gradient(0)}));
  }
};

/// A tensor of one value; starts backward passes and stands for missing gradients. Its axes are written as
/// extents.
struct constant {
  double value = 0;
  i64 rank = 0;
  i64 d[6]{};
  static constexpr auto name = "constant";
  static constexpr auto notation = "-> ...";
  static constexpr int arity = 0;
  static constexpr void describe(auto& s, auto&& visit) {
    visit("value", s.value); visit("rank", s.rank);
    visit("d0", s.d[0]);
    visit("d1", s.d[1]);
    visit("d2", s.d[2]);
    visit("d3", s.d[3]);
    visit("d4", s.d[4]);
    visit("d5", s.d[5]);
  }
  constexpr op::inference infer(shapes) const {
    if (rank < 0 || rank > shape::max_rank)
      return op::mismatch("constant: between 0 and 6 axes", shape{dim(rank)}, scalar);
    shape r{};
    for (int i = 0; i < rank; ++i) r.d[r.rank++] = dim(d[i]);
    return r;
  }
  constexpr double flops(shapes, shapes) const { return 0; }
};

}  // namespace tensorpar

namespace tensorpar::op {

/// Operands dy, gate, up; results dgate = dy up s (1 + gate (1 - s)) and dup = dy gate s, s = sigmoid(gate).
struct swiglu_grad {
  static constexpr auto name = "swiglu_grad";
  static constexpr auto notation = "..., ..., ... -> ..., ...";
  static constexpr int arity = 3;
  constexpr inference infer(shapes in) const {
    inference r = tensorpar::detail::real_same(in);
    if (r.ok()) r.out[r.n++] = r.out[0];
    return r;
  }
  constexpr double flops(shapes in, shapes) const { return 12.0 * static_cast<double>(in[0].elements()); }
};
/// silu(gate) * up, element by element, silu(x) = x * sigmoid(x): what stands between the linear layers of a
/// SwiGLU (Shazeer 2020). In one operator, so that of the three tensors that it could be computed by only its
/// operands are kept.
struct swiglu {
  static constexpr auto name = "swiglu";
  static constexpr auto notation = "..., ... -> ...";
  static constexpr int arity = 2;
  constexpr inference infer(shapes in) const { return tensorpar::detail::real_same(in); }
  constexpr double flops(shapes in, shapes) const { return 6.0 * static_cast<double>(in[0].elements()); }
  [[gnu::cold]] void derive(auto& g) const {
    if (!g.wanted(0) && !g.wanted(1)) return;
    auto const d = g.emit(swiglu_grad{}, {g.gradient(0), g.operand(0), g.operand(1)});
    for (int i = 0; i < 2; ++i) if (g.wanted(i)) g.give(i, d + i);
  }
};

}  // namespace tensorpar::op
