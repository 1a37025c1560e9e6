// tensorpar/exec/cpu/kernels/activated.hpp - kernels of operators with a function of their result
#pragma once
#include <tensorpar/exec/cpu/kernels/contraction.hpp>
#include <tensorpar/exec/cpu/kernels/convolution.hpp>
#include <tensorpar/exec/cpu/kernels/pointwise.hpp>
#include <tensorpar/op/kinds/activated.hpp>

namespace tensorpar::exec {

/// The operator's own kernel, then the function in place. A function of yours needs a `scalar_function`.
template <class Scalar, class Op, class F> struct kernel<Scalar, op::activated<Op, F>> {
  static void run(kernel_call const& c, op::activated<Op, F> const& op) {
    kernel<Scalar, Op>::run(c, op);
    Scalar* y = detail::result<Scalar>(c);
    i64 const n = c.out_block[0].elements();
    for (i64 i = 0; i < n; ++i) y[i] = scalar_function<F>::of(y[i]);
  }
  static i64 workspace(op::activated<Op, F> const& op, shapes in, shapes out) {
    if constexpr (requires { kernel<Scalar, Op>::workspace(op, in, out); })
      return kernel<Scalar, Op>::workspace(op, in, out);
    else return 0;
  }
};

}  // namespace tensorpar::exec
