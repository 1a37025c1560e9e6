// tensorpar/op/core/concepts.hpp - what an operator is
#pragma once
#include <string_view>
#include <tensorpar/op/core/inference.hpp>
#include <tensorpar/op/core/notation.hpp>
#include <type_traits>

namespace tensorpar::op {

class gradient_builder;

/// What an operator's time goes into. product: every result is a sum of products of two operands' elements,
/// made by a matrix unit where a device has one. attention: products and softmax in one kernel.
enum class work_kind : unsigned char { other, product, attention };

namespace detail {
// no lambda in a requires-expression: nvcc 13 says false, silently
struct ignore { constexpr void operator()(auto&&...) const {} };
}
template <class Op> concept described = requires(Op& o) { Op::describe(o, detail::ignore{}); };
template <class Op> concept differentiable = requires(Op const& o, gradient_builder& g) { o.derive(g); };
template <class Op>
concept has_notation = requires { { Op::notation } -> std::convertible_to<std::string_view>; }
|| requires(Op const& o, shapes in) {
  { o.notation_for(in) } -> std::same_as<notation_text>;
};

/// An operator is a plain struct of attributes.
///
/// Valid expressions (Op is the type, o a constant value, in the shapes of its activations):
///  - `Op::name`                      text, unique among operators
///  - `o.infer(in)`                   `inference`: result shapes, or `mismatch(reason, a, b)`; constexpr
///  - `Op::notation` or `o.notation_for(in)`   iteration space (see notation.hpp); weights stand after the
///    activations
/// Optional members:
///  - `Op::arity`                     number of activations (default 1, -1: any)
///  - `Op::describe(self, visit)`     lists every attribute once: `visit("out", self.out)`; needed if there
///    are attributes (at most 8)
///  - `o.weights(in)`                 parameters that the operator brings along, at most 4
///  - `o.flops(in, out)`              default: one operation per point, two if a loop is reduced
///  - `Op::work`                      what its time goes into (`work_kind`, default other), for cost models
///  - `Op::overwrites`                an operand: once nothing else reads it, and where the first result has
///    its type and layout, kernels leave that result in its bytes
///  - `o.units(letter, in)`           a loop may be split into divisors of this many parts (default, or 0: of
///    all its extents)
///  - `o.index_extent(k, in)`        operand k (in: all of them, weights too) holds indices from 0 to below
///    this; 0: it holds none
///  - `o.derive(gradient_builder&)`   its derivative; absent: no gradient flows. The library's operators take
///    `auto&`, so that a
///                                   unit which never differentiates does not compile the operators of the
///                                   backward pass
/// Laws (tests/support/laws/operator.hpp):
///  - infer is deterministic and agrees with the notation: a letter's extent in results is its extent in
///    operands, unless `units` is given;
///  - load(save(o)) == o;
///  - splitting a splittable loop by a divisor d of its units and inferring the parts gives the parts of the
///    results;
///  - where derive exists it agrees with finite differences.
/// Complexity: infer and notation O(rank * operands).
/// Models: every struct in op/.
template <class Op>
concept operator_ = std::is_class_v<Op> && has_notation<Op> && requires(Op const& op, shapes in) {
  { Op::name } -> std::convertible_to<std::string_view>;
  { op.infer(in) } -> std::same_as<inference>;
};
namespace refused {
/// What stands where an operator is wanted and lacks `name`, `notation` or `infer(shapes) -> inference`.
template <class T> struct NOT_AN_OPERATOR;
}  // namespace refused

}  // namespace tensorpar::op
