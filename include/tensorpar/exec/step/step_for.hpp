// tensorpar/exec/step/step_for.hpp - the step of a plan, for the scalar, the kernels and the scratch space of
// a compute policy
#pragma once
#include <string>
#include <tensorpar/exec/step/program_check.hpp>
#include <tensorpar/program/step_of.hpp>

namespace tensorpar::exec {

/// What an executor of this policy runs of a plan for this forward graph: to look at, to check, or to
/// transform (exec/step/fuse.hpp) before an executor is made of it. The plan's scalar size is replaced by the
/// policy's. Throws `error` as `step_of` does, where the policy lacks a kernel, and where the plan was sealed
/// with another program (program/evidence/certificate.hpp). O(unrolling).
template <class Compute>
planned_step step_for(computation_graph const& forward, plan p, std::string const& loss = "loss") {
  p.scalar_bytes = sizeof(typename Compute::scalar_type);
  planned_step s = step_of(forward, p, loss, &Compute::workspace,
                           [](training_graph const& t) { detail::with_kernels<Compute>(t); });
  s.program = passes::detail::as_sealed(std::move(s.program), s.plan);
  return s;
}

/// A step that need not be checked (check/check.hpp) before it is run, since this was done before.
struct already_checked {
  planned_step step;
};

namespace detail {

/// What an executor is handed.
struct step_to_run {
  planned_step step;
  bool check = true;
  step_to_run(planned_step s) : step(std::move(s)) {}
  step_to_run(already_checked s) : step(std::move(s.step)), check(false) {}
};

/// The step with its program, for the scalar, the kernels and the scratch of the policy, and correct.
template <class Compute> planned_step ready(step_to_run given) {
  planned_step s = std::move(given.step);
  with_kernels<Compute>(s.graph);
  s.plan = fitting(s.graph, std::move(s.plan));
  s.plan.scalar_bytes = sizeof(typename Compute::scalar_type);
  if (s.unrolled()) require_program<Compute>(s.graph, s.plan, s.program);
  else s.program = passes::detail::as_sealed(unroll(s, {&Compute::workspace}), s.plan);
  if (given.check) require_correct(s.graph, s.plan, s.program, "executor");
  return s;
}

/// The step of a plan for a training graph, or for a forward graph.
template <class Compute> planned_step step_from(training_graph t, plan p) {
  return p.saves_memory() ? passes::memory_pass(t, std::move(p)) : planned_step{std::move(t), std::move(p)};
}
template <class Compute> planned_step step_from(computation_graph forward, plan p) {
  return step_for<Compute>(forward, std::move(p));
}

}  // namespace detail

}  // namespace tensorpar::exec
