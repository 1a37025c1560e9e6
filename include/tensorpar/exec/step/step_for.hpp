// tensorpar/exec/step/step_for.hpp - the step of a plan, for the scalar, the kernels and the scratch space of
// a compute policy
#pragma once
#include <string>
#include <tensorpar/exec/step/program_check.hpp>
#include <tensorpar/program/planned_step.hpp>

namespace tensorpar {

/// What an executor of this policy runs of a plan for this forward graph: to look at, to check, or to
/// transform (exec/step/fuse.hpp) before an executor is made of it. The plan's scalar size is replaced by the
/// policy's. Throws `error` as `step_of` does, where the policy lacks a kernel, and where the plan was sealed
/// with another program (program/evidence/certificate.hpp). O(unrolling).
template <class Compute>
planned_step step_for(computation_graph const& forward, plan p, std::string const& loss = "loss") {
  p.scalar_bytes = sizeof(typename Compute::scalar_type);
  planned_step s = step_of(forward, p, loss, &Compute::workspace,
                           [](training_graph const& t) { detail::with_kernels<Compute>(t); });
  s.program = detail::as_sealed(std::move(s.program), s.plan);
  return s;
}

}  // namespace tensorpar
