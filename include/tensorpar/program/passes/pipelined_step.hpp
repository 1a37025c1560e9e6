// tensorpar/program/passes/pipelined_step.hpp - the graph and plan of a pipeline's step
#pragma once
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/plan/plan.hpp>
#include <vector>

namespace tensorpar {

/// One training step of a pipeline as an ordinary graph: unroll, checker, simulator and executor need no
/// notion of a pipeline.
struct pipelined_step {
  // every operator once per micro-batch of its stage, sums over micro-batches as additions
  training_graph graph;
  tensorpar::plan plan;             // the shardings of its forward operators; one micro-batch
  std::vector<int> order;           // its nodes in an order that every group's schedule agrees with
  std::vector<pass_entry> passes;   // by node; updates belong to stage -1
};

namespace detail {
/// What a pipeline's plan says of all operators alike holds for its step.
inline void take_over(pipelined_step& r, plan const& p) {
  plan& q = r.plan;
  q.model = p.model;
  q.cluster = p.cluster;
  q.optimizer = p.optimizer;
  q.reduction = r.graph.reduction;
  q.scalar_bytes = p.scalar_bytes;
  q.cost = p.cost;
  q.bound = p.bound;
  q.step_seconds = p.step_seconds;
  q.peak_bytes = p.peak_bytes;
  q.batch = p.batch;
  q.scratch = p.scratch;
  q.tasks = p.tasks;
  q.offsets = p.offsets;
}
}  // namespace detail

}  // namespace tensorpar
