// tensorpar/op/core/derivative.hpp - how an operator states its derivative without knowing any graph
#pragma once
#include <initializer_list>
#include <tensorpar/core/ids.hpp>
#include <tensorpar/op/core/shape.hpp>

namespace tensorpar::op {

struct any_op;

/// What an operator's `derive` member talks to. Tensors are opaque handles; a pass over a graph implements
/// this.
/// Law: for every wanted operand i, give(i, t) is called at most once with type(t) fitting type(operand(i)).
class gradient_builder {
 public:
  using tensor = value_id;
  virtual ~gradient_builder() = default;
  virtual int operands() const = 0;                       // activations and weights together
  virtual tensor operand(int i) const = 0;
  virtual tensor result(int i) const = 0;
  // of result i; zeros are made where no gradient arrived
  virtual tensor gradient(int i) = 0;
  virtual bool has_gradient(int i) const = 0;
  virtual bool wanted(int i) const = 0;                   // does anyone need the gradient of operand i?
  virtual shape type(tensor t) const = 0;
  // first result; further ones are t + 1, t + 2 ...
  virtual tensor emit(any_op const& op, std::initializer_list<tensor> operands) = 0;
  virtual tensor emit(any_op const& op, tensor const* operands, int n) = 0;
  virtual void give(int i, tensor t) = 0;

 protected:
  gradient_builder() = default;
  gradient_builder(gradient_builder const&) = default;
  gradient_builder& operator=(gradient_builder const&) = default;
};

}  // namespace tensorpar::op
