// tensorpar/program/core/planned_step.hpp - one training step of any plan, with stages or without: what
// executors, checker and simulator take
#pragma once
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/program/core/program.hpp>
#include <vector>

namespace tensorpar {

/// A step's graph, in which pipelines, recomputation and ZeRO are written out as ordinary operators, the
/// shardings of its operators, and its program. `step_of` (program/step_of.hpp) makes it of a plan,
/// `step_for` (exec/step/step_for.hpp) for the kernels of a compute policy.
struct planned_step {
  training_graph graph;
  // the shardings of its forward operators: no pipeline, no recomputation and no ZeRO are left in it
  tensorpar::plan plan;
  tensorpar::program program = {};       // what `unroll` makes of the rest; empty until then
  // of a pipeline: all nodes, in an order that the schedule of every group agrees with
  std::vector<int> order = {};
  std::vector<pass_entry> passes = {};   // of a pipeline, by node; updates belong to stage -1

  bool unrolled() const { return !program.arena.empty(); }
};

}  // namespace tensorpar
