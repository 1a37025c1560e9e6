// tensorpar/plan/step_fit.hpp - were a plan and the graph of a training step made for each other?
#pragma once
#include <cstdio>
#include <tensorpar/ir/machine_check.hpp>
#include <tensorpar/ir/training_hash.hpp>
#include <tensorpar/plan/plan.hpp>

namespace tensorpar {

/// Where the graph of a step does otherwise than the plan says, in words: its number of micro-batches (by which the loss's gradient is
/// divided), its optimizer's rules, its clipping. What a graph does not say agrees. Empty: they agree. O(nodes).
inline std::string disagreement(training_graph const& t, plan const& p) {
  computation_graph const& g = t.graph;
  int const held = t.losses.empty() ? 1 : static_cast<int>(t.losses.size());      // an expanded graph holds its micro-batches
  int const last = t.loss < 0 ? -1 : g.value(t.loss).producer;
  bool found = false, updates = false;
  any_op clip;
  for (int v = t.forward_nodes; v < g.node_count(); ++v) {
    graph_node const& n = g.node(v);
    if (!found && n.phase == step_phase::backward && n.op.is<constant>() && n.origin == last) {
      found = true;                                                               // the first one is the gradient of the loss
      double const terms = t.reduction == loss_reduction::sum ? 1 : static_cast<double>(p.micro_batches) * held;
      bool const several = p.micro_batches > 1 || held > 1, open = p.reduction == loss_reduction::as_graph;
      if (several && !open && t.reduction != p.reduction)
        return std::string("the graph was differentiated for a loss that is a ") +
               (t.reduction == loss_reduction::sum ? "sum over samples, the plan says mean" : "mean over samples, the plan says sum");
      if (n.op == any_op(constant{1.0 / terms, 0, {}})) continue;
      if (t.reduction == loss_reduction::sum) return "the gradient of the graph's loss does not begin with 1, as that of a sum does";
      char parts[32];
      std::snprintf(parts, sizeof parts, "%g", 1 / n.op.as<constant>().value / held);
      return "the graph was differentiated for micro_batches = " + std::string(parts) + ", the plan has " + std::to_string(p.micro_batches);
    }
    if (n.op.is<clip_factor>()) clip = n.op;
    if (!is_update(n.op)) continue;
    updates = true;
    if (any_op const said = update_rule(p.optimizer, has_master(n.op)); n.op != said)
      return "the graph updates by " + spell(n.op) + ", the plan's optimizer by " + spell(said);
  }
  double const norm = p.optimizer.clip_norm;
  if (!updates || clip == (norm == 0 ? any_op() : any_op(clip_factor{norm}))) return {};
  return "the graph clips " + (clip.op ? "by " + spell(clip) : "no gradients") + ", the plan's optimizer " +
         (norm == 0 ? "none" : "to a norm of " + std::to_string(norm));
}

namespace detail {
inline std::string plan_named(plan const& p) { return p.model.empty() ? "plan" : "plan " + p.model; }
}  // namespace detail

/// Throws `error` where the plan names another graph than the one with this hash, by which graphs at other batch sizes differ too.
inline void require_graph(plan const& p, u64 hash) {
  if ((p.graph || p.tasks) && p.graph != hash)
    throw error("the plan was made for another graph, or for another batch size", detail::plan_named(p), "the graph that it was made for");
}

/// Throws `error` unless the plan's cluster means something, there is a micro-batch, and graph and plan were made for each other: the plan
/// for this forward graph and batch size where it names one, and both for the same micro-batches and optimizer. Returns the plan.
/// O(nodes + devices).
inline plan fitting(training_graph const& t, plan p) {
  require_machine(p.cluster, "plan: cluster.");
  if (p.micro_batches < 1) throw error("micro_batches is " + std::to_string(p.micro_batches), "plan", "1 or more");
  require_graph(p, forward_part_hash(t));
  if (std::string const text = disagreement(t, p); !text.empty())
    throw error(text, detail::plan_named(p), "differentiate(forward, options) with the plan's micro-batches and optimizer");
  return p;
}

}  // namespace tensorpar
