// tensorpar/exec/step/fuse.hpp - a program fused as far as a compute policy has kernels for it
#pragma once
#include <tensorpar/exec/device/concepts.hpp>
#include <tensorpar/exec/device/narrow.hpp>
#include <tensorpar/program/fuse_tasks.hpp>

namespace tensorpar::exec {

namespace detail {
template <class Compute> bool has_kernel(op::any_op const& o, bool narrow) {
  if (!Compute::supports(o)) return false;
  if (has_lse(o)) {
    static_assert(
        !requires { Compute::keeps_lse(narrow); },
        "tensorpar: keeps_lse takes the operator too: keeps_lse(op, narrow)");
    if constexpr (requires { Compute::keeps_lse(o, narrow); }) {
      if (!Compute::keeps_lse(o, narrow)) return false;
    } else {
      return false;
    }
  }
  if constexpr (requires { Compute::supports_narrow(o); }) return !narrow || Compute::supports_narrow(o);
  else return !narrow || sizeof(typename Compute::scalar_type) != 4;       // stored as the scalar is
}
}  // namespace detail

/// `fuse_tasks` (program/fuse_tasks.hpp) for this policy.
template <compute_policy Compute> program fused(program const& p, machine const& cluster) {
  return passes::fuse_tasks(p, cluster, &detail::has_kernel<Compute>, &Compute::workspace);
}
/// The step with its program fused: `executor<C, M> run(fused<C>(step_for<C>(graph, plan)))`. Precondition:
/// the step is unrolled.
template <compute_policy Compute> planned_step fused(planned_step s) {
  s.program = fused<Compute>(s.program, s.plan.cluster);
  return s;
}

}  // namespace tensorpar::exec
