// tensorpar/exec/cpu/kernels/pointwise.hpp - kernels of operators that keep every index
#pragma once
#include <tensorpar/exec/cpu/common/kernels.hpp>
#include <tensorpar/exec/cpu/common/scalar_function.hpp>
#include <tensorpar/exec/device/random.hpp>

namespace tensorpar::exec {

namespace detail {
template <class Scalar, class Function> void map_one(kernel_call const& c, Function f) {
  Scalar const* __restrict x = operand<Scalar>(c, 0);
  Scalar* __restrict y = result<Scalar>(c);
  i64 const n = c.out_block[0].elements();
  for (i64 i = 0; i < n; ++i) y[i] = f(x[i]);
}
template <class Scalar, class Function> void map_two(kernel_call const& c, Function f) {
  Scalar const *__restrict a = operand<Scalar>(c, 0), *__restrict b = operand<Scalar>(c, 1);
  Scalar* __restrict y = result<Scalar>(c);
  i64 const n = c.out_block[0].elements();
  for (i64 i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
}
}  // namespace detail

template <class Scalar, class F>
  requires requires(Scalar x) { scalar_function<F>::of(x); }
struct kernel<Scalar, F> {
  static void run(kernel_call const& c, F const&) {
    detail::map_one<Scalar>(c, [](Scalar x) { return scalar_function<F>::of(x); });
  }
};
template <class Scalar, class F>
  requires requires(Scalar x) { scalar_function<F>::of(x, x); }
struct kernel<Scalar, F> {
  static void run(kernel_call const& c, F const&) {
    detail::map_two<Scalar>(c, [](Scalar a, Scalar b) { return scalar_function<F>::of(a, b); });
  }
};

template <class Scalar> struct kernel<Scalar, op::swiglu_grad> {
  static void run(kernel_call const& c, op::swiglu_grad const&) {
    Scalar const* __restrict d = detail::operand<Scalar>(c, 0);
    Scalar const* __restrict gate = detail::operand<Scalar>(c, 1);
    Scalar const* __restrict up = detail::operand<Scalar>(c, 2);
    Scalar* __restrict to_gate = detail::result<Scalar>(c);
    Scalar* __restrict to_up = detail::result<Scalar>(c, 1);
    i64 const n = c.out_block[0].elements();
    for (i64 i = 0; i < n; ++i) {
      auto const g = scalar_function<op::swiglu_grad>::of(d[i], gate[i], up[i]);
      to_gate[i] = g.gate;
      to_up[i] = g.up;
    }
  }
};

/// May write its first operand, hence no __restrict.
template <class Scalar> struct kernel<Scalar, add> {
  static void run(kernel_call const& c, add const&) {
    Scalar const *a = detail::operand<Scalar>(c, 0), *b = detail::operand<Scalar>(c, 1);
    Scalar* y = detail::result<Scalar>(c);
    i64 const n = c.out_block[0].elements();
    for (i64 i = 0; i < n; ++i) y[i] = a[i] + b[i];
  }
};
template <class Scalar> struct kernel<Scalar, scale> {
  static void run(kernel_call const& c, scale const& op) {
    Scalar const f = constant_of<Scalar>(op.factor);
    detail::map_one<Scalar>(c, [f](Scalar x) { return x * f; });
  }
};
template <class Scalar> struct kernel<Scalar, constant> {
  static void run(kernel_call const& c, constant const& op) {
    Scalar const f = constant_of<Scalar>(op.value);
    Scalar* y = detail::result<Scalar>(c);
    i64 const n = c.out_block[0].elements();
    for (i64 i = 0; i < n; ++i) y[i] = f;
  }
};

/// Element i of the whole batch is dropped where word i % 4 of draw i / 4 lies below rate * 2^32; how a batch
/// is cut into micro-batches changes nothing.
template <class Scalar> struct kernel<Scalar, dropout> {
  static void run(kernel_call const& c, dropout const& op) {
    Scalar const* x = detail::operand<Scalar>(c, 0);
    Scalar* y = detail::result<Scalar>(c);
    Scalar const keep = over_rest_to_one<Scalar>(op.rate);
    u64 const threshold = static_cast<u64>(op.rate * 0x1p32);
    core::hasher h;
    h.add(op.seed).add(c.state.step);
    random_stream const draws{c.state.seed, h.value()};
    batch_numbers const number = detail::numbers_in_batch(c);
    detail::each_run(c.out_block[0], [&](i64 at, i64 logical, i64 length) {
      random_words w{};
      u64 drawn = ~u64{0};
      for (i64 i = 0; i < length; ++i) {
        u64 const e = number.of(logical + i);
        if (e / 4 != drawn) w = draws.words(drawn = e / 4);
        y[at + i] = x[at + i] * (w[e % 4] < threshold ? Scalar(0) : keep);
      }
    });
  }
};

}  // namespace tensorpar::exec
