// tensorpar/exec/teams/pointwise.hpp - team kernels of operators that keep every index, and of functions in one with an operator
#pragma once
#include <tensorpar/exec/random.hpp>
#include <tensorpar/exec/scalar_function.hpp>
#include <tensorpar/exec/teams/kernel.hpp>
#include <tensorpar/op/activated.hpp>

namespace tensorpar {

namespace detail {
template <class Scalar, class F> struct map_one_at {
  Scalar const* x;
  Scalar* y;
  constexpr void operator()(i64 i) const { y[i] = scalar_function<F>::of(x[i]); }
};
template <class Scalar, class F> struct map_two_at {
  Scalar const *a, *b;
  Scalar* y;
  constexpr void operator()(i64 i) const { y[i] = scalar_function<F>::of(a[i], b[i]); }
};
template <class Scalar> struct add_at {
  Scalar const *a, *b;
  Scalar* y;
  constexpr void operator()(i64 i) const { y[i] = a[i] + b[i]; }
};
template <class Scalar> struct scale_at {
  Scalar const* x;
  Scalar* y;
  Scalar f;
  constexpr void operator()(i64 i) const { y[i] = x[i] * f; }
};
/// As kernel<Scalar, dropout>: four elements of a draw lie in one row or are drawn again.
template <class Scalar> struct dropout_at {
  Scalar const* x;
  Scalar* y;
  tensor_block block;
  random_stream draws;
  u64 before, threshold;
  Scalar keep;
  constexpr void operator()(i64 i) const {
    i64 rest = i, logical = 0, scale = 1;
    for (int a = block.rank - 1; a >= 0; --a) {
      logical += (rest % block.local[a] + block.offset[a]) * scale;
      rest /= block.local[a];
      scale *= block.global[a];
    }
    u64 const e = before + static_cast<u64>(logical);
    y[i] = draws.words(e / 4)[e % 4] < threshold ? Scalar(0) : x[i] * keep;
  }
};
}  // namespace detail

template <class Scalar, class F>
  requires requires(Scalar x) { scalar_function<F>::of(x); }
struct team_kernel<Scalar, F> {
  template <class Device> static void run(Device const& d, kernel_call const& c, F const&) {
    d.each(c.out_block[0].elements(), detail::map_one_at<Scalar, F>{detail::operand<Scalar>(c, 0), detail::result<Scalar>(c)});
  }
};
template <class Scalar, class F>
  requires requires(Scalar x) { scalar_function<F>::of(x, x); }
struct team_kernel<Scalar, F> {
  template <class Device> static void run(Device const& d, kernel_call const& c, F const&) {
    d.each(c.out_block[0].elements(),
           detail::map_two_at<Scalar, F>{detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1), detail::result<Scalar>(c)});
  }
};
template <class Scalar> struct team_kernel<Scalar, add> {
  template <class Device> static void run(Device const& d, kernel_call const& c, add const&) {
    d.each(c.out_block[0].elements(),
           detail::add_at<Scalar>{detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1), detail::result<Scalar>(c)});
  }
};
template <class Scalar> struct team_kernel<Scalar, scale> {
  template <class Device> static void run(Device const& d, kernel_call const& c, scale const& op) {
    d.each(c.out_block[0].elements(), detail::scale_at<Scalar>{detail::operand<Scalar>(c, 0), detail::result<Scalar>(c),
                                                               scalar_traits<Scalar>::from_double(op.factor)});
  }
};
template <class Scalar> struct team_kernel<Scalar, constant> {
  template <class Device> static void run(Device const& d, kernel_call const& c, constant const& op) {
    d.each(c.out_block[0].elements(),
           detail::fill_at<Scalar>{detail::result<Scalar>(c), scalar_traits<Scalar>::from_double(op.value)});
  }
};
template <class Scalar> struct team_kernel<Scalar, dropout> {
  template <class Device> static void run(Device const& d, kernel_call const& c, dropout const& op) {
    hasher h;
    h.add(op.seed).add(c.state.step);
    tensor_block const& b = c.out_block[0];
    d.each(b.elements(), detail::dropout_at<Scalar>{detail::operand<Scalar>(c, 0), detail::result<Scalar>(c), b,
                                                    {c.state.seed, h.value()},
                                                    c.state.micro_batch * static_cast<u64>(b.logical_elements()),
                                                    static_cast<u64>(op.rate * 0x1p32),
                                                    scalar_traits<Scalar>::from_double(1 / (1 - op.rate))});
  }
};

/// The operator's own kernel, then the function in place.
template <class Scalar, class Op, class F> struct team_kernel<Scalar, activated<Op, F>> {
  template <class Device> static void run(Device const& d, kernel_call const& c, activated<Op, F> const& op) {
    team_kernel<Scalar, Op>::run(d, c, op);
    Scalar* y = detail::result<Scalar>(c);
    d.each(c.out_block[0].elements(), detail::map_one_at<Scalar, F>{y, y});
  }
  static i64 workspace(activated<Op, F> const& op, shapes in, shapes out) {
    if constexpr (requires { team_kernel<Scalar, Op>::workspace(op, in, out); }) return team_kernel<Scalar, Op>::workspace(op, in, out);
    else return 0;
  }
};

}  // namespace tensorpar
