// tensorpar/exec/cpu/eigen.hpp - the compute policy that runs every operator on this processor, vectorised
// with Eigen's packets
#pragma once
#include <tensorpar/exec/cpu/common/kernel_table.hpp>
#include <tensorpar/exec/cpu/kernels/activated.hpp>
#include <tensorpar/exec/cpu/kernels/attention.hpp>
#include <tensorpar/exec/cpu/kernels/attention_parts.hpp>
#include <tensorpar/exec/cpu/kernels/batch_norm.hpp>
#include <tensorpar/exec/cpu/kernels/embedding.hpp>
#include <tensorpar/exec/cpu/kernels/loss.hpp>
#include <tensorpar/exec/cpu/kernels/pooling.hpp>
#include <tensorpar/exec/cpu/kernels/reduction.hpp>
#include <tensorpar/exec/cpu/kernels/rms_norm.hpp>
#include <tensorpar/exec/cpu/kernels/structural.hpp>
#include <tensorpar/exec/cpu/kernels/update.hpp>

namespace tensorpar {

namespace detail {
template <class Scalar, class Op> void run_kernel(exec::kernel_call const& c) {
  exec::kernel<Scalar, Op>::run(c, op::load<Op>(c.op->attr));
}
template <class Scalar, class Op> i64 kernel_workspace(op::any_op const& o, shapes in, shapes out) {
  if constexpr (requires(Op const& op) { exec::kernel<Scalar, Op>::workspace(op, in, out); })
    return exec::kernel<Scalar, Op>::workspace(op::load<Op>(o.attr), in, out);
  else return 0;
}
template <class Scalar> struct kernel_entry {
  u64 id = 0;
  void (*run)(exec::kernel_call const&) = nullptr;
  i64 (*workspace)(op::any_op const&, shapes, shapes) = nullptr;
  template <class Op> static constexpr kernel_entry make() {
    return {core::name_hash(Op::name), &run_kernel<Scalar, Op>, &kernel_workspace<Scalar, Op>};
  }
};
}  // namespace detail

namespace compute {

/// Models `compute_policy` (exec/device/concepts.hpp). Scalar: float, double, prime_field, or a type with
/// scalar_traits.
/// Own: your operators, as `op_set<my_op, ...>`; each brings its kernel as a static member template, see
/// exec/cpu/common/kernels.hpp. Stateless; one thread per call; a thread's first matrix product takes 1 MiB
/// of packing buffers from the heap, nothing else does. Results depend on the call alone: sums have a fixed
/// order.
/// Compile time: the kernels are some 70 operators of vectorised code. A program of several sources compiles
/// them once with `extern template class tensorpar::compute::eigen<float>;` in a header and the same line
/// without `extern` in one source.
template <class Scalar, class Own = op::op_set<>> class eigen {
  static_assert(exec::scalar_lack<Scalar>::value);
  static detail::kernel_entry<Scalar> const* find(u64 id);

 public:
  using scalar_type = Scalar;
  static std::string name() { return std::string("eigen<") + exec::scalar_traits<Scalar>::name + ">"; }
  static bool supports(op::any_op const& o) { return o.op && find(o.op->id); }
  /// Scratch scalars for these local shapes; 0 without a kernel.
  static i64 workspace(op::any_op const& o, shapes in, shapes out) {
    detail::kernel_entry<Scalar> const* e = find(o.op->id);
    return e ? e->workspace(o, in, out) : 0;
  }
  /// Throws `error` for operators without a kernel and for indices in the data that are out of range.
  void run(exec::kernel_call const& c) const {
    detail::kernel_entry<Scalar> const* e = find(c.op->op->id);
    if (!e)
      throw error("no kernel for operator " + std::string(c.op->op->name), "compute::eigen",
                  "add it to the policy's op_set");
    e->run(c);
  }
};

// Not inline: compilers instantiate inline members in spite of `extern template`.
template <class Scalar, class Own> detail::kernel_entry<Scalar> const* eigen<Scalar, Own>::find(u64 id) {
  static constexpr auto table = exec::detail::table_of_all<detail::kernel_entry<Scalar>, Own>();
  return table.find(id);
}

}  // namespace compute

}  // namespace tensorpar
