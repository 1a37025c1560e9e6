// tensorpar/exec/device/scalar.hpp - what kernels ask of a scalar: constants, conversions, the functions that
// are not polynomials
#pragma once
#include <cmath>
#include <concepts>
#include <tensorpar/core/bfloat16.hpp>
#include <tensorpar/core/fraction.hpp>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/prime_field.hpp>
#include <type_traits>

namespace tensorpar::exec {

/// Specialise it to run kernels on your own scalar.
/// Members:
///  - `name`; `from_double`, `from_integer`;
///  - `exact`: true where operations do not round, so no kernel may trade one formula for a numerically
///    better one;
///  - `exp`, `log`, `tanh`, `sqrt`, `rsqrt`, `sigmoid`, `gelu`, `relu`, `reciprocal`;
///  - `gelu_slope`, `relu_slope`: derivatives as functions of the operand;
///  - `greater`: a strict weak order in which NaN comes last, so a maximum keeps it;
///  - `not_below_zero`: clears a negative rounding error.
template <class Scalar> struct scalar_traits;

/// Never defined: its name is the message. There is no scalar_traits<Scalar>: float, double and prime_field
/// have one, yours may.
template <class Scalar> struct NOT_A_SCALAR;
template <class Scalar> concept has_scalar_traits = requires { sizeof(scalar_traits<Scalar>); };
/// std::true_type, or the error by its name.
template <class Scalar>
using scalar_lack = std::conditional_t<has_scalar_traits<Scalar>, std::true_type, NOT_A_SCALAR<Scalar>>;

/// Real numbers; functions are constexpr so that nvcc compiles them for the GPU too. Derivatives of sigmoid
/// and tanh are polynomials of the results, so kernels write them out. NaN and infinity go through every
/// function as IEEE 754 has it: conditions are written so that NaN, for which each comparison is false, is
/// what they let pass.
template <std::floating_point Real> struct scalar_traits<Real> {
  static constexpr auto name = sizeof(Real) == 4 ? "float" : "double";
  static constexpr bool exact = false;
  static constexpr Real from_double(double x) { return static_cast<Real>(x); }
  static constexpr Real from_integer(i64 x) { return static_cast<Real>(x); }
  static constexpr Real exp(Real x) { return std::exp(x); }
  static constexpr Real log(Real x) { return std::log(x); }
  static constexpr Real tanh(Real x) { return std::tanh(x); }
  static constexpr Real sqrt(Real x) { return std::sqrt(x); }
  static constexpr Real rsqrt(Real x) { return 1 / std::sqrt(x); }
  static constexpr Real sigmoid(Real x) {
    Real const e = std::exp(-std::fabs(x));                      // never overflows
    return x >= 0 ? 1 / (1 + e) : e / (1 + e);
  }
  static constexpr Real relu(Real x) { return x <= 0 ? Real(0) : x; }
  static constexpr Real relu_slope(Real x) { return x <= 0 ? Real(0) : Real(1); }
  /// x * Phi(x) in its tanh form (Hendrycks and Gimpel 2016, section 2).
  static constexpr Real gelu(Real x) {
    return Real(0.5) * x * (1 + std::tanh(bend * (x + cube * x * x * x)));
  }
  static constexpr Real gelu_slope(Real x) {
    Real const t = std::tanh(bend * (x + cube * x * x * x));
    return Real(0.5) * (1 + t) + Real(0.5) * x * (1 - t * t) * bend * (1 + 3 * cube * x * x);
  }
  static constexpr bool greater(Real a, Real b) { return a > b || (a != a && b == b); }
  static constexpr Real reciprocal(Real x) { return 1 / x; }
  static constexpr Real not_below_zero(Real x) { return x < 0 ? Real(0) : x; }

 private:
  // sqrt(2 / pi)
  static constexpr Real bend = static_cast<Real>(0.79788456080286535588), cube = static_cast<Real>(0.044715);
};

/// Functions of a stored bfloat16 are those of the float that it stands for.
template <> struct scalar_traits<bfloat16> : scalar_traits<float> {
  static constexpr auto name = "bfloat16";
};

/// The check's field. Each function that is not a polynomial is replaced by one fixed pseudo-random function
/// of its operand, the same in every program, so a parallel program equals the serial one exactly or one of
/// them computes something else. What this can not see: a plan that relies on a law of such a function, as
/// exp(a + b) = exp(a) exp(b); none of the operators here lets its softmax axis be split. The order compares
/// representatives in [0, p); it is fixed, which is all that a maximum asks for.
template <> struct scalar_traits<prime_field> {
  using value = prime_field;
  static constexpr auto name = "prime_field";
  static constexpr bool exact = true;
  static constexpr value from_double(double x) { return value::from_double(x); }
  static constexpr value from_integer(i64 x) { return value(x); }
  static constexpr value exp(value x) { return scrambled(x, 1); }
  static constexpr value log(value x) { return scrambled(x, 2); }
  static constexpr value tanh(value x) { return scrambled(x, 3); }
  static constexpr value sqrt(value x) { return scrambled(x, 4); }
  static constexpr value rsqrt(value x) { return scrambled(x, 5); }
  static constexpr value sigmoid(value x) { return scrambled(x, 6); }
  static constexpr value relu(value x) { return scrambled(x, 7); }
  static constexpr value relu_slope(value x) { return scrambled(x, 8); }
  static constexpr value gelu(value x) { return scrambled(x, 9); }
  static constexpr value gelu_slope(value x) { return scrambled(x, 10); }
  static constexpr bool greater(value a, value b) { return a.v > b.v; }
  static constexpr value reciprocal(value x) { return x.inverse(); }
  static constexpr value not_below_zero(value x) { return x; }

 private:
  /// A keyed 64-bit finaliser, cut to 61 bits.
  static constexpr value scrambled(value x, u64 key) {
    u64 const r = core::mix(core::mix(x.v) ^ core::mix(key << 61 | key)) >> 3;
    return value::raw(r == value::modulus ? 0 : r);
  }
};

/// An operator's constant. A real scalar takes the double as it is; an exact one takes the fraction that the
/// double was written as (core/fraction.hpp), so that 1.0 / 3 is the inverse of 3, and every other double at
/// its value. Numbers of a batch are no constants: they are taken at their value.
template <class Scalar> constexpr auto constant_of(double x) {
  using traits = scalar_traits<Scalar>;
  if constexpr (traits::exact)
    if (fraction const f = fraction_of(x); f.under)
      return traits::from_integer(f.over) * traits::reciprocal(traits::from_integer(f.under));
  return traits::from_double(x);
}
/// 1 - x of a constant x.
template <class Scalar> constexpr auto rest_to_one(double x) {
  if constexpr (scalar_traits<Scalar>::exact)
    return scalar_traits<Scalar>::from_integer(1) - constant_of<Scalar>(x);
  else return scalar_traits<Scalar>::from_double(1 - x);
}
/// 1 / (1 - x^n) of a constant x. O(log n).
template <class Scalar> constexpr auto over_rest_to_one(double x, u64 n = 1) {
  using traits = scalar_traits<Scalar>;
  if constexpr (traits::exact) {
    Scalar power = traits::from_integer(1);
    for (Scalar base = constant_of<Scalar>(x); n; n >>= 1, base = base * base)
      if (n & 1) power = power * base;
    return traits::reciprocal(traits::from_integer(1) - power);
  } else {
    return traits::from_double(1 / (1 - std::pow(x, static_cast<double>(n))));
  }
}

}  // namespace tensorpar::exec
