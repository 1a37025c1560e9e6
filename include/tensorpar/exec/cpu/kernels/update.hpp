// tensorpar/exec/cpu/kernels/update.hpp - kernels of parameter updates and of global-norm clipping
#pragma once
#include <algorithm>
#include <cmath>
#include <tensorpar/exec/cpu/common/kernels.hpp>
#include <tensorpar/op/kinds/update.hpp>

namespace tensorpar::exec {

namespace detail {
/// The trailing scalar operand, or one.
template <class Scalar> Scalar clip_of(kernel_call const& c, int without) {
  return c.inputs > without ? *operand<Scalar>(c, without) : Scalar(1);
}
/// Does this factor say that nothing is to change?
template <class Scalar> constexpr bool leaves_all(Scalar clip) {
  return scalar_traits<Scalar>::greater(Scalar(0), clip);
}
/// Results as the operands that they replace, of an update whose states follow weight and gradient.
template <class Scalar> void leave_all(kernel_call const& c) {
  for (int k = 0; k < c.outputs; ++k)
    if (Scalar const* from = operand<Scalar>(c, k ? k + 1 : 0); from != c.out[k])
      std::copy_n(from, c.out_block[k].elements(), result<Scalar>(c, k));
}
/// min(1, limit / norm), see clip_factor. A norm of zero divides nothing.
template <class Scalar> constexpr Scalar factor_of(Scalar norm, Scalar limit, clip_factor const& op) {
  using traits = scalar_traits<Scalar>;
  if (op.skip && !(norm - norm == Scalar(0))) return Scalar(-1);
  if (op.max_norm != 0 && traits::greater(norm, limit)) return limit * traits::reciprocal(norm);
  return norm == norm ? Scalar(1) : norm;
}
}  // namespace detail

// Every operand is read before the result of the same index is written: results may be the operands.
template <class Scalar> struct kernel<Scalar, sgd_update> {
  static void run(kernel_call const& c, sgd_update const& op) {
    Scalar const *w = detail::operand<Scalar>(c, 0), *g = detail::operand<Scalar>(c, 1),
                 clip = detail::clip_of<Scalar>(c, 2);
    if (detail::leaves_all(clip)) return detail::leave_all<Scalar>(c);
    Scalar const rate = constant_of<Scalar>(c.state.learning_rate),
                 decay = constant_of<Scalar>(op.weight_decay);
    Scalar* to = detail::result<Scalar>(c);
    i64 const n = c.out_block[0].elements();
    for (i64 i = 0; i < n; ++i) to[i] = w[i] - rate * (g[i] * clip + decay * w[i]);
  }
};
template <class Scalar> struct kernel<Scalar, momentum_update> {
  static void run(kernel_call const& c, momentum_update const& op) {
    Scalar const *w = detail::operand<Scalar>(c, 0), *g = detail::operand<Scalar>(c, 1),
                 *v = detail::operand<Scalar>(c, 2), clip = detail::clip_of<Scalar>(c, 3);
    if (detail::leaves_all(clip)) return detail::leave_all<Scalar>(c);
    Scalar const rate = constant_of<Scalar>(c.state.learning_rate),
                 decay = constant_of<Scalar>(op.weight_decay), keep = constant_of<Scalar>(op.momentum);
    Scalar *to_w = detail::result<Scalar>(c, 0), *to_v = detail::result<Scalar>(c, 1);
    i64 const n = c.out_block[0].elements();
    for (i64 i = 0; i < n; ++i) {
      Scalar const x = w[i], speed = keep * v[i] + g[i] * clip + decay * x;
      to_v[i] = speed;
      to_w[i] = x - rate * speed;
    }
  }
};
template <class Scalar> struct kernel<Scalar, adamw_update> {
  static void run(kernel_call const& c, adamw_update const& op) {
    using traits = scalar_traits<Scalar>;
    Scalar const *w = detail::operand<Scalar>(c, 0), *g = detail::operand<Scalar>(c, 1),
                 *m = detail::operand<Scalar>(c, 2), *v = detail::operand<Scalar>(c, 3);
    Scalar const clip = detail::clip_of<Scalar>(c, 4);
    if (detail::leaves_all(clip)) return detail::leave_all<Scalar>(c);
    Scalar const rate = constant_of<Scalar>(c.state.learning_rate),
                 decay = constant_of<Scalar>(op.weight_decay), eps = constant_of<Scalar>(op.eps);
    Scalar const b1 = constant_of<Scalar>(op.beta1), b2 = constant_of<Scalar>(op.beta2),
                 c1 = rest_to_one<Scalar>(op.beta1), c2 = rest_to_one<Scalar>(op.beta2);
    Scalar const fix1 = over_rest_to_one<Scalar>(op.beta1, c.state.step + 1),
                 fix2 = over_rest_to_one<Scalar>(op.beta2, c.state.step + 1);
    Scalar *to_w = detail::result<Scalar>(c, 0), *to_m = detail::result<Scalar>(c, 1),
           *to_v = detail::result<Scalar>(c, 2);
    i64 const n = c.out_block[0].elements();
    for (i64 i = 0; i < n; ++i) {
      Scalar const x = w[i], d = g[i] * clip, first = b1 * m[i] + c1 * d, second = b2 * v[i] + c2 * d * d;
      to_m[i] = first;
      to_v[i] = second;
      to_w[i] = x - rate * (first * fix1 * traits::reciprocal(traits::sqrt(second * fix2) + eps) + decay * x);
    }
  }
};

/// The rule on `master`, then a copy of it: over scalars that stand for every real number the weight is its
/// own master.
template <class Scalar, class Rule> struct kernel<Scalar, with_master<Rule>> {
  static void run(kernel_call const& c, with_master<Rule> const& op) {
    void const* in[op::loop::max_in]{};
    op::tensor_block blocks[op::loop::max_in]{};
    void* out[op::loop::max_out]{};
    int const master = c.outputs;                          // of the operands; [clip] follows
    for (int k = 0, to = 0; k < c.inputs; ++k) {
      if (k == master) continue;
      in[to] = c.in[k == 0 ? master : k];
      blocks[to++] = c.in_block[k];
    }
    for (int k = 0; k + 1 < c.outputs; ++k) out[k] = c.out[k == 0 ? c.outputs - 1 : k];
    kernel_call rule = c;
    rule.inputs = c.inputs - 1;
    rule.outputs = c.outputs - 1;
    rule.in = in;
    rule.in_block = blocks;
    rule.out = out;
    kernel<Scalar, Rule>::run(rule, op);
    std::copy_n(static_cast<Scalar const*>(out[0]), c.out_block[0].elements(), detail::result<Scalar>(c));
  }
};

template <class Scalar> struct kernel<Scalar, square_sum> {
  static void run(kernel_call const& c, square_sum const&) {
    Scalar const* x = detail::operand<Scalar>(c, 0);
    i64 const n = c.in_block[0].elements();
    *detail::result<Scalar>(c) = detail::sum_of<Scalar>(n, [x](i64 i) { return x[i] * x[i]; });
  }
};
template <class Scalar> struct kernel<Scalar, clip_factor> {
  static void run(kernel_call const& c, clip_factor const& op) {
    using traits = scalar_traits<Scalar>;
    Scalar s(0);
    for (int k = 0; k < c.inputs; ++k) s += *detail::operand<Scalar>(c, k);
    Scalar const norm = *detail::result<Scalar>(c, 1) = traits::sqrt(s);
    *detail::result<Scalar>(c) = detail::factor_of(norm, constant_of<Scalar>(op.max_norm), op);
  }
};

}  // namespace tensorpar::exec
