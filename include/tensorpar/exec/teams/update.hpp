// tensorpar/exec/teams/update.hpp - team kernels of parameter updates and of global-norm clipping
#pragma once
#include <cmath>
#include <tensorpar/exec/teams/kernel.hpp>
#include <tensorpar/op/update.hpp>

namespace tensorpar {

namespace detail {
/// The trailing scalar operand, or null.
template <class Scalar> Scalar const* clip_at(kernel_call const& c, int without) {
  return c.inputs > without ? operand<Scalar>(c, without) : nullptr;
}
template <class Scalar> constexpr Scalar clipped_by(Scalar g, Scalar const* clip) { return clip ? g * *clip : g; }

// Every operand is read before the result of the same index is written: results may be the operands.
template <class Scalar> struct sgd_at {
  Scalar const *w, *g, *clip;
  Scalar* to;
  Scalar rate, decay;
  constexpr void operator()(i64 i) const { to[i] = w[i] - rate * (clipped_by(g[i], clip) + decay * w[i]); }
};
template <class Scalar> struct momentum_at {
  Scalar const *w, *g, *v, *clip;
  Scalar *to_w, *to_v;
  Scalar rate, decay, keep;
  constexpr void operator()(i64 i) const {
    Scalar const x = w[i], speed = keep * v[i] + clipped_by(g[i], clip) + decay * x;
    to_v[i] = speed;
    to_w[i] = x - rate * speed;
  }
};
template <class Scalar> struct adamw_at {
  Scalar const *w, *g, *m, *v, *clip;
  Scalar *to_w, *to_m, *to_v;
  Scalar rate, decay, eps, b1, b2, c1, c2, fix1, fix2;
  constexpr void operator()(i64 i) const {
    using traits = scalar_traits<Scalar>;
    Scalar const x = w[i], d = clipped_by(g[i], clip), first = b1 * m[i] + c1 * d, second = b2 * v[i] + c2 * d * d;
    to_m[i] = first;
    to_v[i] = second;
    to_w[i] = x - rate * (first * fix1 * traits::reciprocal(traits::sqrt(second * fix2) + eps) + decay * x);
  }
};
template <class Scalar> struct square_term {
  Scalar const* x;
  constexpr Scalar operator()(i64 i) const { return x[i] * x[i]; }
};
template <class Scalar> struct add_scalar_at {
  Scalar const* x;
  Scalar* y;
  bool first;
  constexpr void operator()(i64) const { *y = first ? *x : *y + *x; }
};
template <class Scalar> struct clip_factor_at {
  Scalar* y;                                 // holds the sum of squares
  Scalar* norm_at;
  Scalar limit;
  constexpr void operator()(i64) const {
    using traits = scalar_traits<Scalar>;
    Scalar const norm = *norm_at = traits::sqrt(*y);
    *y = traits::greater(norm, limit) ? limit * traits::reciprocal(norm) : Scalar(1);
  }
};
}  // namespace detail

template <class Scalar> struct team_kernel<Scalar, sgd_update> {
  template <class Device> static void run(Device const& d, kernel_call const& c, sgd_update const& op) {
    using traits = scalar_traits<Scalar>;
    d.each(c.out_block[0].elements(),
           detail::sgd_at<Scalar>{detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1), detail::clip_at<Scalar>(c, 2),
                                  detail::result<Scalar>(c), traits::from_double(c.state.learning_rate),
                                  traits::from_double(op.weight_decay)});
  }
};
template <class Scalar> struct team_kernel<Scalar, momentum_update> {
  template <class Device> static void run(Device const& d, kernel_call const& c, momentum_update const& op) {
    using traits = scalar_traits<Scalar>;
    d.each(c.out_block[0].elements(),
           detail::momentum_at<Scalar>{detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1), detail::operand<Scalar>(c, 2),
                                       detail::clip_at<Scalar>(c, 3), detail::result<Scalar>(c, 0), detail::result<Scalar>(c, 1),
                                       traits::from_double(c.state.learning_rate), traits::from_double(op.weight_decay),
                                       traits::from_double(op.momentum)});
  }
};
template <class Scalar> struct team_kernel<Scalar, adamw_update> {
  template <class Device> static void run(Device const& d, kernel_call const& c, adamw_update const& op) {
    using traits = scalar_traits<Scalar>;
    double const t = static_cast<double>(c.state.step) + 1;
    d.each(c.out_block[0].elements(),
           detail::adamw_at<Scalar>{detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1), detail::operand<Scalar>(c, 2),
                                    detail::operand<Scalar>(c, 3), detail::clip_at<Scalar>(c, 4), detail::result<Scalar>(c, 0),
                                    detail::result<Scalar>(c, 1), detail::result<Scalar>(c, 2),
                                    traits::from_double(c.state.learning_rate), traits::from_double(op.weight_decay),
                                    traits::from_double(op.eps), traits::from_double(op.beta1), traits::from_double(op.beta2),
                                    traits::from_double(1 - op.beta1), traits::from_double(1 - op.beta2),
                                    traits::from_double(1 / (1 - std::pow(op.beta1, t))),
                                    traits::from_double(1 / (1 - std::pow(op.beta2, t)))});
  }
};
template <class Scalar> struct team_kernel<Scalar, square_sum> {
  static i64 workspace(square_sum const&, shapes in, shapes) { return detail::parts_of_sum(in[0].elements()); }
  template <class Device> static void run(Device const& d, kernel_call const& c, square_sum const&) {
    detail::sum_all<Scalar>(d, c.in_block[0].elements(), detail::square_term<Scalar>{detail::operand<Scalar>(c, 0)},
                            static_cast<Scalar*>(c.workspace), detail::result<Scalar>(c), Scalar(1));
  }
};
template <class Scalar> struct team_kernel<Scalar, clip_factor> {
  template <class Device> static void run(Device const& d, kernel_call const& c, clip_factor const& op) {
    Scalar* const y = detail::result<Scalar>(c);
    for (int k = 0; k < c.inputs; ++k) d.each(1, detail::add_scalar_at<Scalar>{detail::operand<Scalar>(c, k), y, k == 0});
    d.each(1, detail::clip_factor_at<Scalar>{y, detail::result<Scalar>(c, 1), scalar_traits<Scalar>::from_double(op.max_norm)});
  }
};

}  // namespace tensorpar
