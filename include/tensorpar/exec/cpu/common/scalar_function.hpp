// tensorpar/exec/cpu/common/scalar_function.hpp - operators that keep every index, as functions of one or two
// numbers
#pragma once
#include <tensorpar/exec/device/scalar.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>

namespace tensorpar::exec {

/// What an operator makes of one number, or of two. Yours needs one to stand in `activated`.
template <class F> struct scalar_function;

template <> struct scalar_function<relu> {
  template <class Scalar> static constexpr Scalar of(Scalar x) { return scalar_traits<Scalar>::relu(x); }
};
template <> struct scalar_function<gelu> {
  template <class Scalar> static constexpr Scalar of(Scalar x) { return scalar_traits<Scalar>::gelu(x); }
};
template <> struct scalar_function<sigmoid> {
  template <class Scalar> static constexpr Scalar of(Scalar x) { return scalar_traits<Scalar>::sigmoid(x); }
};
template <> struct scalar_function<tanh_> {
  template <class Scalar> static constexpr Scalar of(Scalar x) { return scalar_traits<Scalar>::tanh(x); }
};

// Derivatives: of dy and v, where v is the operand (gelu) or the result (relu, sigmoid, tanh).
/// Over the reals chosen, not multiplied: where a unit is dead an infinite gradient ends, as in other
/// frameworks; where v is NaN it passes.
template <> struct scalar_function<relu_grad> {
  template <class Scalar> static constexpr Scalar of(Scalar d, Scalar v) {
    if constexpr (std::floating_point<Scalar>) return v <= 0 ? Scalar(0) : d;
    else return d * scalar_traits<Scalar>::relu_slope(v);
  }
};
template <> struct scalar_function<gelu_grad> {
  template <class Scalar> static constexpr Scalar of(Scalar d, Scalar v) {
    return d * scalar_traits<Scalar>::gelu_slope(v);
  }
};
template <> struct scalar_function<sigmoid_grad> {
  template <class Scalar> static constexpr Scalar of(Scalar d, Scalar v) { return d * v * (Scalar(1) - v); }
};
template <> struct scalar_function<tanh__grad> {
  template <class Scalar> static constexpr Scalar of(Scalar d, Scalar v) { return d * (Scalar(1) - v * v); }
};

template <> struct scalar_function<mul> {
  template <class Scalar> static constexpr Scalar of(Scalar a, Scalar b) { return a * b; }
};

template <> struct scalar_function<op::swiglu> {
  template <class Scalar> static constexpr Scalar of(Scalar gate, Scalar up) {
    return gate * scalar_traits<Scalar>::sigmoid(gate) * up;
  }
};
/// Of dy, gate and up: what goes to gate, and to up.
template <> struct scalar_function<op::swiglu_grad> {
  template <class Scalar> struct gradients {
    Scalar gate, up;
  };
  template <class Scalar> static constexpr gradients<Scalar> of(Scalar d, Scalar gate, Scalar up) {
    Scalar const s = scalar_traits<Scalar>::sigmoid(gate);
    return {d * up * s * (Scalar(1) + gate * (Scalar(1) - s)), d * gate * s};
  }
};

}  // namespace tensorpar::exec
