// tensorpar/program/training.hpp - the training that a plan was made for, and the plan that does the same on
// one device
#pragma once
#include <limits>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/plan/plan.hpp>

namespace tensorpar {

/// What `differentiate` has to be told so that its graph is the one that this plan runs: the plan's optimizer
/// and micro-batches. `loss`: the output that the plan was searched for.
inline training_options training_of(plan const& p, std::string loss = "loss") {
  return {std::move(loss), p.optimizer, p.micro_batches, p.reduction};
}

/// Every operator on one device whose memory is never short: serial training, to compare other plans with.
/// Not sealed.
/// Law: an executor of it and one of any other plan for this graph and these options have equal parameters
/// after equal steps, exactly in a prime field. Throws `error` for several micro-batches of a loss that is no
/// clear mean or sum. O(operators).
inline plan one_device_plan(computation_graph const& forward, training_options const& o = {}) {
  device_kind kind = kinds::logical();
  kind.memory = std::numeric_limits<i64>::max();
  plan p;
  p.graph = forward.hash();
  p.precision = precision_in(forward);
  p.cluster = make_cluster("one device", kind, 1, 1, {}, {});
  p.nodes.resize(forward.nodes.size());
  p.micro_batches = o.micro_batches;
  int const loss = forward.output(o.loss);
  p.reduction =
      loss < 0 ? loss_reduction::mean : ir::reduction_of(forward, loss, o.reduction, o.micro_batches > 1);
  p.optimizer = o.optimizer;
  return p;
}
/// The same for the training that another plan was made for. `forward`: the graph that it runs
/// (program/rewritten.hpp).
/// Throws `error` for a plan of another graph, and for a pipeline: its step is one mini-batch of a larger
/// graph (`rebatch`).
inline plan one_device_plan(computation_graph const& forward, plan const& p) {
  require_feasible(p);
  if (p.graph != forward.hash())
    throw error("a plan of another graph", "one_device_plan", "the graph that the plan runs");
  if (!p.pipeline.empty())
    throw error("a plan with a pipeline", "one_device_plan",
                "one_device_plan(rebatch(graph, times), options), a batch of which is the mini-batch");
  plan r = one_device_plan(forward, training_of(p));
  r.model = p.model;
  r.serial = p.serial;
  r.rewrites = p.rewrites;
  r.precision = p.precision;
  r.scalar_bytes = p.scalar_bytes;
  return r;
}

}  // namespace tensorpar
