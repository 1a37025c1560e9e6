// tensorpar/exec/teams/kernels/pointwise.hpp - team kernels of operators that keep every index, and of
// functions in one with an operator
#pragma once
#include <tensorpar/exec/cpu/common/scalar_function.hpp>
#include <tensorpar/exec/device/random.hpp>
#include <tensorpar/exec/teams/kernels/kernel.hpp>
#include <tensorpar/op/kinds/activated.hpp>

namespace tensorpar::exec {

namespace detail {
template <class Scalar, class F> struct map_one_at {
  Scalar const* x;
  Scalar* y;
  constexpr void operator()(i64 i) const { y[i] = scalar_function<F>::of(computed<Scalar>(x[i])); }
  static constexpr int at_once = 16 / sizeof(Scalar);
  bool aligned() const { return at_16(x, y); }
  template <int N> constexpr void several(i64 i) const {
    auto r = take<N>(x, i);
    for (int k = 0; k < N; ++k) r.v[k] = scalar_function<F>::of(computed<Scalar>(r.v[k]));
    put(y, i, r);
  }
};
template <class Scalar, class F> struct map_two_at {
  Scalar const *a, *b;
  Scalar* y;
  constexpr void operator()(i64 i) const {
    y[i] = scalar_function<F>::of(computed<Scalar>(a[i]), computed<Scalar>(b[i]));
  }
  static constexpr int at_once = 16 / sizeof(Scalar);
  bool aligned() const { return at_16(a, b, y); }
  template <int N> constexpr void several(i64 i) const {
    auto r = take<N>(a, i), s = take<N>(b, i);
    for (int k = 0; k < N; ++k)
      r.v[k] = scalar_function<F>::of(computed<Scalar>(r.v[k]), computed<Scalar>(s.v[k]));
    put(y, i, r);
  }
};
template <class Scalar> struct swiglu_grad_at {
  Scalar const *d, *gate, *up;
  Scalar *to_gate, *to_up;
  constexpr void operator()(i64 i) const {
    auto const g = scalar_function<op::swiglu_grad>::of(computed<Scalar>(d[i]), computed<Scalar>(gate[i]),
                                                    computed<Scalar>(up[i]));
    to_gate[i] = g.gate;
    to_up[i] = g.up;
  }
  static constexpr int at_once = 16 / sizeof(Scalar);
  bool aligned() const { return at_16(d, gate, up) && at_16(to_gate, to_up); }
  template <int N> constexpr void several(i64 i) const {
    auto r = take<N>(d, i), s = take<N>(gate, i);
    auto const t = take<N>(up, i);
    for (int k = 0; k < N; ++k) {
      auto const g = scalar_function<op::swiglu_grad>::of(computed<Scalar>(r.v[k]), computed<Scalar>(s.v[k]),
                                                      computed<Scalar>(t.v[k]));
      r.v[k] = g.gate;
      s.v[k] = g.up;
    }
    put(to_gate, i, r);
    put(to_up, i, s);
  }
};
template <class Scalar> struct add_at {
  Scalar const *a, *b;
  Scalar* y;
  constexpr void operator()(i64 i) const { y[i] = a[i] + b[i]; }
  static constexpr int at_once = 16 / sizeof(Scalar);
  bool aligned() const { return at_16(a, b, y); }
  template <int N> constexpr void several(i64 i) const {
    auto r = take<N>(a, i), s = take<N>(b, i);
    for (int k = 0; k < N; ++k) r.v[k] = r.v[k] + s.v[k];
    put(y, i, r);
  }
};
template <class Scalar> struct scale_at {
  Scalar const* x;
  Scalar* y;
  computed<Scalar> f;
  constexpr void operator()(i64 i) const { y[i] = x[i] * f; }
  static constexpr int at_once = 16 / sizeof(Scalar);
  bool aligned() const { return at_16(x, y); }
  template <int N> constexpr void several(i64 i) const {
    auto r = take<N>(x, i);
    for (int k = 0; k < N; ++k) r.v[k] = r.v[k] * f;
    put(y, i, r);
  }
};
/// As kernel<Scalar, dropout>: four elements of a draw lie in one row or are drawn again.
template <class Scalar> struct dropout_at {
  Scalar const* x;
  Scalar* y;
  op::tensor_block block;
  step_numbers_at step;                      // seed and stream of the draws
  batch_numbers number;
  u64 threshold;
  computed<Scalar> keep;
  constexpr void operator()(i64 i) const {
    u64 const e = number.of(logical_element(block, i));
    bool const dropped = random_stream{step.word(0), step.word(1)}.words(e / 4)[e % 4] < threshold;
    y[i] = x[i] * (dropped ? computed<Scalar>(0) : keep);
  }
};
}  // namespace detail

template <class Scalar, class F>
  requires requires(computed<Scalar> x) { scalar_function<F>::of(x); }
struct team_kernel<Scalar, F> {
  template <class Device> static void run(Device const& d, kernel_call const& c, F const&) {
    d.each(c.out_block[0].elements(),
           detail::map_one_at<Scalar, F>{detail::operand<Scalar>(c, 0), detail::result<Scalar>(c)});
  }
};
template <class Scalar, class F>
  requires requires(computed<Scalar> x) { scalar_function<F>::of(x, x); }
struct team_kernel<Scalar, F> {
  template <class Device> static void run(Device const& d, kernel_call const& c, F const&) {
    d.each(c.out_block[0].elements(),
           detail::map_two_at<Scalar, F>{detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1),
                                         detail::result<Scalar>(c)});
  }
};
template <class Scalar> struct team_kernel<Scalar, op::swiglu_grad> {
  template <class Device> static void run(Device const& d, kernel_call const& c, op::swiglu_grad const&) {
    d.each(c.out_block[0].elements(),
           detail::swiglu_grad_at<Scalar>{detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1),
                                          detail::operand<Scalar>(c, 2), detail::result<Scalar>(c),
                                          detail::result<Scalar>(c, 1)});
  }
};
template <class Scalar> struct team_kernel<Scalar, add> {
  template <class Device> static void run(Device const& d, kernel_call const& c, add const&) {
    d.each(c.out_block[0].elements(),
           detail::add_at<Scalar>{detail::operand<Scalar>(c, 0), detail::operand<Scalar>(c, 1),
                                  detail::result<Scalar>(c)});
  }
};
template <class Scalar> struct team_kernel<Scalar, scale> {
  template <class Device> static void run(Device const& d, kernel_call const& c, scale const& op) {
    d.each(c.out_block[0].elements(),
           detail::scale_at<Scalar>{detail::operand<Scalar>(c, 0), detail::result<Scalar>(c),
                                    constant_of<computed<Scalar>>(op.factor)});
  }
};
template <class Scalar> struct team_kernel<Scalar, constant> {
  template <class Device> static void run(Device const& d, kernel_call const& c, constant const& op) {
    d.each(
        c.out_block[0].elements(),
        detail::fill_at<Scalar>{detail::result<Scalar>(c), Scalar(constant_of<computed<Scalar>>(op.value))});
  }
};
template <class Scalar> struct team_kernel<Scalar, dropout> {
  static step_arguments arguments(dropout const& op, step_state const& s) {
    core::hasher h;
    h.add(op.seed).add(s.step);
    return {{s.seed, h.value()}};
  }
  template <class Device> static void run(Device const& d, kernel_call const& c, dropout const& op) {
    op::tensor_block const& b = c.out_block[0];
    d.each(b.elements(),
           detail::dropout_at<Scalar>{detail::operand<Scalar>(c, 0), detail::result<Scalar>(c), b,
                                      detail::numbers_of<Scalar>(c, op), detail::numbers_in_batch(c),
                                      static_cast<u64>(op.rate * 0x1p32),
                                      over_rest_to_one<computed<Scalar>>(op.rate)});
  }
};

/// The operator's own kernel, then the function in place.
template <class Scalar, class Op, class F> struct team_kernel<Scalar, op::activated<Op, F>> {
  static constexpr bool multiplies = detail::multiplies<Scalar, Op>;
  template <class Device>
  static void run(Device const& d, kernel_call const& c, op::activated<Op, F> const& op) {
    detail::run_operator<Scalar, Device, Op>(d, c, op);
    Scalar* y = detail::result<Scalar>(c);
    d.each(c.out_block[0].elements(), detail::map_one_at<Scalar, F>{y, y});
  }
  static i64 workspace(op::activated<Op, F> const& op, shapes in, shapes out) {
    if constexpr (requires { team_kernel<Scalar, Op>::workspace(op, in, out); })
      return team_kernel<Scalar, Op>::workspace(op, in, out);
    else return 0;
  }
};

}  // namespace tensorpar::exec
