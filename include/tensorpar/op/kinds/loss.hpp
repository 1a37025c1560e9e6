// tensorpar/op/kinds/loss.hpp - losses: means over every logical element, so partial sums add up under any
// sharding
#pragma once
#include <tensorpar/op/core/any_op.hpp>

namespace tensorpar {

/// What the loss of a step is of the losses of its micro-batches: their mean, or their sum. `as_graph`: what
/// the graph says (ir/loss_reduction.hpp).
enum class loss_reduction : int { as_graph, mean, sum };

/// Operands dl (scalar), logits [..., e], labels [...]; result (softmax - one_hot) * dl / rows.
struct cross_entropy_grad {
  static constexpr auto name = "cross_entropy_grad";
  static constexpr unsigned wide_operands = 1;
  static constexpr int overwrites = 1;
  static constexpr auto notation = ", ...E, ... -> ...E";
  static constexpr int arity = 3;
  constexpr op::inference infer(shapes in) const { return in[1]; }
  constexpr i64 index_extent(int k, shapes in) const { return k == 2 ? in[1].last().n : 0; }
  constexpr double flops(shapes in, shapes) const { return 6.0 * static_cast<double>(in[1].elements()); }
};
/// Mean over all rows of -log softmax(logits)[label]. Operands logits [..., classes] (real), labels [...]
/// (integer, in [0, classes)).
struct cross_entropy {
  static constexpr auto name = "cross_entropy";
  static constexpr auto notation = "...E, ... -> ";
  static constexpr int arity = 2;
  constexpr op::inference infer(shapes in) const {
    if (is_integer(in[0].type)) return op::mismatch("logits must be real numbers", in[0], in[1]);
    if (!is_integer(in[1].type)) return op::mismatch("labels must be integers", in[0], in[1]);
    if (in[1].rank != in[0].rank - 1)
      return op::mismatch("labels have one axis less than logits", in[0], in[1]);
    for (int i = 0; i < in[1].rank; ++i)
      if (!fits(in[0].d[i], in[1].d[i])) return op::mismatch("labels do not fit logits", in[0], in[1]);
    return scalar;
  }
  constexpr i64 index_extent(int k, shapes in) const { return k == 1 ? in[0].last().n : 0; }
  constexpr double flops(shapes in, shapes) const { return 6.0 * static_cast<double>(in[0].elements()); }
  [[gnu::cold]] void derive(auto& g) const {
    if (g.wanted(0)) g.give(0, g.emit(cross_entropy_grad{}, {g.gradient(0), g.operand(0), g.operand(1)}));
  }
};

/// Operands dl (scalar), a, b; result 2 (a - b) * dl / elements.
struct mean_squared_error_grad {
  static constexpr auto name = "mean_squared_error_grad";
  static constexpr unsigned wide_operands = 1;
  static constexpr int overwrites = 1;
  static constexpr auto notation = ", ..., ... -> ...";
  static constexpr int arity = 3;
  constexpr op::inference infer(shapes in) const { return in[1]; }
  constexpr double flops(shapes in, shapes) const { return 3.0 * static_cast<double>(in[1].elements()); }
};
/// Mean over all elements of (a - b)^2.
struct mean_squared_error {
  static constexpr auto name = "mean_squared_error";
  static constexpr auto notation = "..., ... -> ";
  static constexpr int arity = 2;
  constexpr op::inference infer(shapes in) const {
    if (!fits(in[0], in[1]) || is_integer(in[0].type) || is_integer(in[1].type))
      return op::mismatch("operands must have one shape of real numbers", in[0], in[1]);
    return scalar;
  }
  constexpr double flops(shapes in, shapes) const { return 3.0 * static_cast<double>(in[0].elements()); }
  [[gnu::cold]] void derive(auto& g) const {
    for (int i = 0; i < 2; ++i)
      if (g.wanted(i))
        g.give(i, g.emit(mean_squared_error_grad{}, {g.gradient(0), g.operand(i), g.operand(1 - i)}));
  }
};

}  // namespace tensorpar
