// tensorpar/program/unrollable.hpp - does a plan decide about the operators of a step, one for one?
#pragma once
#include <optional>
#include <string>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/plan/order_fault.hpp>
#include <tensorpar/plan/plan.hpp>

namespace tensorpar::passes::detail {

/// Throws `error` for a plan without devices or micro-batches, for one whose graph must be made first, and
/// for one of another graph. O(operators).
inline void require_unrollable(training_graph const& t, plan const& p) {
  require_feasible(p);
  if (p.cluster.size() < 1) throw error("the plan's cluster has no devices", "plan", "at least one");
  if (p.micro_batches < 1)
    throw error("micro_batches is " + std::to_string(p.micro_batches), "plan", "1 or more");
  if (p.prefetch < 0) throw error("prefetch is " + std::to_string(p.prefetch), "plan", "0 or more");
  if (!p.pipeline.empty())
    throw error("the plan has a pipeline", "unroll",
                "the step that pipeline_pass(graph, plan) makes of it (program/passes/pipeline_pass.hpp)");
  if (p.saves_memory())
    throw error("the plan saves memory", "unroll",
                "the step that memory_pass(graph, plan) makes of it (program/passes/memory_pass.hpp)");
  if (static_cast<int>(p.nodes.size()) != t.forward_nodes)
    throw error("the plan decides about " + std::to_string(p.nodes.size()) + " operators, the graph has " +
                    std::to_string(t.forward_nodes),
                "plan", "a plan made for this graph");
  if (std::optional<order_fault> const f = fault_of_order(t.graph, p.node_order, t.forward_nodes))
    throw error(f->what, "plan: " + f->where(), f->valid);
}

}  // namespace tensorpar::passes::detail
