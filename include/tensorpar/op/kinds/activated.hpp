// tensorpar/op/kinds/activated.hpp - an operator and the function of its result, in one: what libraries of
// kernels call an epilogue
#pragma once
#include <tensorpar/op/kinds/contraction.hpp>
#include <tensorpar/op/kinds/convolution.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>

namespace tensorpar::op {

/// The operator that makes dx of (dy, y) where y = f(x): for functions whose derivative follows from their
/// result. A function of yours without one has no derivative within `activated`.
template <class F> struct slope_by_result {};
// above zero where the operand is
template <> struct slope_by_result<relu> { using type = relu_grad; };
template <> struct slope_by_result<sigmoid> { using type = sigmoid_grad; };
template <> struct slope_by_result<tanh_> { using type = tanh__grad; };

namespace detail {

/// "linear_relu": two names as one.
template <class Op, class F> struct joined_name {
  static constexpr std::size_t n = std::string_view(Op::name).size(), m = std::string_view(F::name).size();
  struct letters { char c[n + m + 1]; };
  static constexpr letters text = [] {
    letters r{};
    for (std::size_t i = 0; i < n; ++i) r.c[i] = std::string_view(Op::name)[i];
    r.c[n] = '_';
    for (std::size_t i = 0; i < m; ++i) r.c[n + 1 + i] = std::string_view(F::name)[i];
    return r;
  }();
  static constexpr std::string_view view{text.c, n + 1 + m};
};

/// A gradient builder for the operator within: the gradient of its result is what the function leaves of the
/// one that arrived.
template <class F, class Builder> struct within_function {
  using tensor = gradient_builder::tensor;
  Builder& outer;
  tensor own = -1;
  tensor operand(int i) const { return outer.operand(i); }
  bool wanted(int i) const { return outer.wanted(i); }
  shape type(tensor t) const { return outer.type(t); }
  tensor emit(any_op const& op, std::initializer_list<tensor> x) { return outer.emit(op, x); }
  void give(int i, tensor t) { outer.give(i, t); }
  tensor gradient(int) {
    if (own < 0) own = outer.emit(typename slope_by_result<F>::type{}, {outer.gradient(0), outer.result(0)});
    return own;
  }
};

}  // namespace detail

/// y = f(op(x, ...)) without op's result being written: one pass over memory less, and nothing kept but y for
/// the derivative. A function of a sum is no sum of functions, so loops that op sums over may not be split:
/// where partial sums pay, the two stand apart (Unity, figure 16a). Precondition: op has one result and its
/// derivative does not read it.
template <class Op, class F> struct activated : Op {
  using first = Op;
  using then = F;
  static constexpr std::string_view name = detail::joined_name<Op, F>::view;
  /// That of op, with capitals for what is summed over.
  constexpr notation_text notation_for(shapes in) const {
    notation_text t;
    if constexpr (requires(Op const& o) { o.notation_for(in); }) t = Op::notation_for(in);
    else t.put(Op::notation);
    return sums_whole(t);
  }
  constexpr double flops(shapes in, shapes y) const {
    i64 a[max_attrs]{};
    save(static_cast<Op const&>(*this), a);
    return info<Op>.flops(a, in, y) + info<F>.flops(nullptr, y, y);
  }
  [[gnu::cold]] void derive(auto& g) const
    requires(requires { typename slope_by_result<F>::type; } && differentiable<Op>)
  {
    detail::within_function<F, std::remove_reference_t<decltype(g)>> inner{g};
    Op::derive(inner);
  }
};

using linear_relu = activated<linear, relu>;
using linear_sigmoid = activated<linear, sigmoid>;
using linear_tanh = activated<linear, tanh_>;
using conv2d_relu = activated<conv2d, relu>;

}  // namespace tensorpar::op
