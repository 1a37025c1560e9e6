// tensorpar/program/planned.hpp - what a planner answers: a plan with its step and all that was compared, or
// what is lacking
#pragma once
#include <optional>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/plan/shortage.hpp>
#include <tensorpar/program/core/planned_step.hpp>
#include <vector>

namespace tensorpar {

/// One of the plans that were compared. Only what is feasible is a plan.
struct tried_plan {
  // "shardings", the schedule of a pipeline, or "degrees: " and these; ", rewritten": of a graph that rules
  // made; ", mapped": with shardings of their own inside stages
  std::string what;
  int micro_batches = 1;                 // of stages the largest number
  int stages = 0;
  int prefetch = 0;                      // operators ahead of which collectives start
  // seconds of a step: its program simulated, where there is one
  double seconds = infinity;
  i64 peak = 0;                          // bytes of the largest arena
  std::optional<shortage> infeasible;    // then no plan of this kind was found
  std::string refused;                   // why none was looked for
  bool feasible() const { return !infeasible && refused.empty(); }
};

/// The answer of `plan_training` (search/plan_training.hpp). `trainer` (exec/trainer.hpp) runs it.
struct planned {
  std::optional<shortage> infeasible;    // what lacked least; then there is no plan
  // that the plan runs: the problem's on more samples, and after the plan's rewrites
  computation_graph graph;
  // sealed (program/evidence/certificate.hpp); step_seconds is its program's, and so is cost where it has no
  // stages. bound: with rewrites 0; with stages what no plan of the graph is below, if devices never wait
  // (search/intra/machine_parts.hpp); else what no plan is below whose operators run on all devices or the
  // first alone, in the numbers of micro-batches that were tried (search/solve/step_bound.hpp)
  tensorpar::plan plan;
  // for numbers of plan.scalar_bytes; with kernels' scratch where plan.scratch names their policy. On very
  // many devices its program lists one of those that do the same (`program::listed_for`); a trainer unrolls
  // its own
  planned_step step;
  std::vector<tried_plan> tried;         // all that was compared, and why the others lost
  int chosen = -1;                       // of those

  bool feasible() const { return !infeasible; }
  double seconds() const { return plan.step_seconds; }
  /// Precondition: feasible.
  tried_plan const& best() const { return tried[idx(chosen)]; }
  /// Bytes by device.
  std::vector<i64> const& arena() const { return step.program.arena; }
};

}  // namespace tensorpar
