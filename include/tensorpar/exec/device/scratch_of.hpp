// tensorpar/exec/device/scratch_of.hpp - a compute policy's scratch space, for searches, certificates and
// reports (program/core/scratch.hpp)
#pragma once
#include <tensorpar/exec/device/concepts.hpp>
#include <tensorpar/program/core/scratch.hpp>

namespace tensorpar::exec {

/// Of the policy that will run a plan, so that what is said to fit does, to the byte:
/// `search_options o; o.scratch = scratch_of<compute::eigen<float>>();`, and the same for `seal`,
/// `check_certificate` and `step_of`. The name is the policy's own, `Policy::name`, if it has one. Programs
/// that are fused (exec/step/fuse.hpp) need other scratch, but never more than fits where the plan's program
/// does.
template <compute_policy Policy> scratch_space scratch_of(std::string name) {
  return {std::move(name), &Policy::workspace, static_cast<i64>(sizeof(typename Policy::scalar_type))};
}
template <compute_policy Policy> scratch_space scratch_of() {
  if constexpr (requires { std::string(Policy::name()); }) return scratch_of<Policy>(Policy::name());
  else return scratch_of<Policy>("a compute policy without a name");
}

}  // namespace tensorpar::exec
