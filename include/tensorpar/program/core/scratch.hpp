// tensorpar/program/core/scratch.hpp - the scratch space that a backend's kernels take, as a value that
// searches and certificates are told of
#pragma once
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/op/core/any_op.hpp>

namespace tensorpar {

/// Scalars of scratch space that a backend needs for an operator on parts of these extents.
using workspace_rule = i64 (*)(op::any_op const&, shapes in, shapes out);
inline i64 no_workspace(op::any_op const&, shapes, shapes) { return 0; }

/// The scratch space of the compute policy that is to run a plan: `scratch_of<Policy>()`
/// (exec/device/scratch_of.hpp). By default nobody's: then kernels' scratch is in no arena, and an executor
/// takes more than was said.
/// Precondition: a policy's name stands for one rule; plans store the name (plan::scratch).
struct scratch_space {
  std::string policy;                     // its name; empty: scratch is not counted
  workspace_rule rule = no_workspace;
  i64 scalar_bytes = 0;                   // of the policy's scalar, by which the rule counts; 0: any
  bool counted() const { return !policy.empty(); }
};

/// What arenas hold, in words. `policy`: as in plan::scratch.
inline std::string scratch_text(std::string const& policy) {
  return policy.empty() ? "kernels' scratch is not counted" : "with the scratch of " + policy;
}

/// The same, for a plan of numbers of so many bytes. Throws `error` where the policy computes with others,
/// and where there is a rule without a name.
inline scratch_space const& require_scratch(scratch_space const& s, i64 scalar_bytes, char const* where) {
  if (s.scalar_bytes && s.scalar_bytes != scalar_bytes)
    throw error("scratch space of " + s.policy + ", whose numbers have " + std::to_string(s.scalar_bytes) +
                    " bytes, for numbers of " + std::to_string(scalar_bytes),
                where, "scalar_bytes = " + std::to_string(s.scalar_bytes));
  if (!s.counted() && s.rule != no_workspace)
    throw error("a rule of scratch space without the name of its policy", where, "a name");
  return s;
}

}  // namespace tensorpar
