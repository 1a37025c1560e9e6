// tensorpar/exec/trainer.hpp - the executor of what a planner answered, or of a stored plan
#pragma once
#include <tensorpar/exec/device/scratch_of.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/program/planned.hpp>
#include <tensorpar/program/rewritten.hpp>
#include <tensorpar/program/training_problem.hpp>

namespace tensorpar {

namespace detail {

/// The step of an answer for a policy: as it is, if it was planned for this policy and lists all devices,
/// else unrolled for it.
template <class Compute> planned_step step_for_policy(planned const& p) {
  require_feasible(p.plan);
  planned_step const& s = p.step;
  bool const same = s.program.listed_for.empty() &&
                    p.plan.scalar_bytes == sizeof(typename Compute::scalar_type) &&
                    p.plan.scratch == exec::scratch_of<Compute>().policy;
  return same ? s : planned_step{s.graph, s.plan, {}, s.order, s.passes};
}

/// The step of a stored plan for this problem, whose graph may have fewer samples and no rewrites yet.
template <class Compute> planned_step step_for_policy(training_problem const& asked, plan const& p) {
  require_feasible(p);
  i64 const own = samples_of(asked.graph);
  computation_graph const declared = graph_of(asked.graph, p, asked.samples ? asked.samples : own);
  return exec::step_for<Compute>(passes::rewritten(declared, p), p, asked.loss);
}

}  // namespace detail

/// Trains what was planned: an executor (exec/executor.hpp), made of a planner's answer or of a stored plan.
/// `initialise` or a checkpoint (exec/files/checkpoint.hpp) gives parameters their values; `step` trains.
template <class Compute, class Comm> class trainer : public executor<Compute, Comm> {
  using base = executor<Compute, Comm>;

 public:
  /// Throws `error` where no plan was found: which device lacks how much.
  template <exec::world_maker<Comm> Make = exec::detail::own_world<Comm>>
  explicit trainer(planned const& p, Make const& make = {})
      : base(detail::step_for_policy<Compute>(p), make) {}
  /// A plan from a file, for the problem that it was made for. Throws `error` where it was made for another
  /// graph, batch or loss, as `graph_of` and `rewritten` do, and where it was sealed with another program.
  template <exec::world_maker<Comm> Make = exec::detail::own_world<Comm>>
  trainer(training_problem const& asked, plan const& p, Make const& make = {})
      : base(detail::step_for_policy<Compute>(asked, p), make) {}
};

}  // namespace tensorpar
