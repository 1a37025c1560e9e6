// tensorpar/plan/step_fit.hpp - were a plan and the graph of a training step made for each other?
#pragma once
#include <algorithm>
#include <cstdio>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/machine/machine_check.hpp>
#include <tensorpar/ir/training_hash.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/plan/plan.hpp>
#include <vector>

namespace tensorpar {

namespace detail {
/// Could this sum of gradients be in bf16? Not where a summand is in f32 by its operator's rule.
inline bool may_be_narrow(computation_graph const& g, value_id sum) {
  std::vector<value_id> left{sum};
  while (!left.empty()) {
    value_id const x = left.back();
    left.pop_back();
    if (g.value(x).producer < 0) return false;
    graph_node const& n = g.node(g.value(x).producer);
    auto const narrow = [&](value_id y) { return is_narrow(g.type(y).type); };
    if (n.op.is<add>()) left.insert(left.end(), n.in.begin(), n.in.end());
    else if (!n.op.op->sums_wide || std::none_of(n.in.begin(), n.in.end(), narrow)) return false;
  }
  return true;
}
/// Where an update's operands are in other number formats than the optimizer says, in words. Precondition: it
/// is that optimizer's rule.
inline std::string other_numbers(computation_graph const& g, graph_node const& update,
                                 optimizer_choice const& o) {
  auto const text = [](char const* what, dtype graph, dtype plan) {
    return std::string("the graph keeps ") + what + " in " + name_of(graph) + ", the plan's optimizer in " +
           name_of(plan);
  };
  for (int k = 0; k < o.moment_count(); ++k)
    if (dtype const t = g.type(update.in[idx(2 + k)]).type; t != o.moments)
      return text("moments", t, o.moments);
  if (is_narrow(g.type(update.in[0]).type))
    if (dtype const t = has_master(update.op) ? dtype::f32 : dtype::bf16; t != o.masters)
      return text("masters", t, o.masters);
  // a gradient may be in bf16 because its operator makes no other
  dtype const sum = g.type(update.in[1]).type;
  bool const asked = o.gradients == dtype::bf16 && is_narrow(g.type(update.in[0]).type);
  if (!asked || sum == dtype::bf16 || !may_be_narrow(g, update.in[1])) return {};
  return text("gradients", sum, o.gradients);
}
}  // namespace detail

/// Where the graph of a step does otherwise than the plan says, in words: its number of micro-batches (by
/// which the loss's gradient is divided), its optimizer's rules, its clipping. What a graph does not say
/// agrees. Empty: they agree. O(nodes).
inline std::string disagreement(training_graph const& t, plan const& p) {
  computation_graph const& g = t.graph;
  // an expanded graph holds its micro-batches
  int const held = t.losses.empty() ? 1 : static_cast<int>(t.losses.size());
  node_id const last = t.loss < 0 ? node_id() : g.value(t.loss).producer;
  bool found = false, updates = false;
  op::any_op clip;
  for (int v = t.forward_nodes; v < g.node_count(); ++v) {
    graph_node const& n = g.node(v);
    if (!found && n.phase == step_phase::backward && n.op.is<constant>() && n.origin == last) {
      // the first one is the gradient of the loss
      found = true;
      double const terms =
          t.reduction == loss_reduction::sum ? 1 : static_cast<double>(p.micro_batches) * held;
      bool const several = p.micro_batches > 1 || held > 1, open = p.reduction == loss_reduction::as_graph;
      if (several && !open && t.reduction != p.reduction)
        return std::string("the graph was differentiated for a loss that is a ") +
               (t.reduction == loss_reduction::sum ? "sum over samples, the plan says mean"
                                                   : "mean over samples, the plan says sum");
      if (n.op == op::any_op(constant{1.0 / terms, 0, {}})) continue;
      if (t.reduction == loss_reduction::sum)
        return "the gradient of the graph's loss does not begin with 1, as that of a sum does";
      char parts[32];
      std::snprintf(parts, sizeof parts, "%g", 1 / n.op.as<constant>().value / held);
      return "the graph was differentiated for micro_batches = " + std::string(parts) + ", the plan has " +
             std::to_string(p.micro_batches);
    }
    if (n.op.is<clip_factor>()) clip = n.op;
    if (!is_update(n.op)) continue;
    updates = true;
    if (op::any_op const said = update_rule(p.optimizer, has_master(n.op)); n.op != said)
      return "the graph updates by " + op::spell(n.op) + ", the plan's optimizer by " + op::spell(said);
    if (std::string const text = detail::other_numbers(g, n, p.optimizer); !text.empty()) return text;
  }
  double const norm = p.optimizer.clip_norm;
  if (!updates || clip == (p.optimizer.takes_norm() ? clip_rule(p.optimizer) : op::any_op())) return {};
  return "the graph clips " + (clip.op ? "by " + op::spell(clip) : "no gradients")
      + ", the plan's optimizer " + (norm == 0 ? "none" : "to a norm of " + std::to_string(norm)) +
         (p.optimizer.on_non_finite == non_finite::skip ? " and skips updates of what is not finite" : "");
}

/// Samples of a graph's own batch, by which errors and plans name it: the first axis of its first input that
/// has axes; 1 if none has. O(values).
inline i64 samples_of(computation_graph const& forward) {
  for (graph_value const& v : forward.values)
    if (v.role == value_role::input && v.type.rank > 0) return std::max<i64>(1, v.type.d[0].n);
  return 1;
}

namespace detail {
/// What a plan is of: model, operators, batch, optimizer.
inline std::string training_text(plan const& p) {
  i64 const samples = p.pipeline.empty() ? p.batch : p.pipeline.mini_batch;
  constexpr char const* rules[] = {"sgd", "momentum", "adamw"};
  std::string r =
      (p.model.empty() ? "" : "\"" + p.model + "\", ") + std::to_string(p.nodes.size()) + " operators, ";
  if (samples > 0) r += std::to_string(samples) + " samples a step, ";
  return r + std::to_string(p.micro_batches) +
         (p.micro_batches == 1 ? " micro-batch, " : " micro-batches, ") +
         rules[static_cast<int>(p.optimizer.kind)];
}
[[noreturn, gnu::cold, gnu::noinline]] inline void refuse_graph(plan const& p, computation_graph const& given,
                                                                int operators) {
  throw error("the plan was made for another graph, or for another batch size: it is of " + training_text(p) +
                  "; given is a graph of " + std::to_string(operators) + " operators on " +
                  std::to_string(samples_of(given)) + " samples",
              plan_named(p), "the graph that it was made for");
}
}  // namespace detail

/// Throws `error` that says what the plan is of where it names another graph than this one, by which graphs
/// at other batch sizes differ too; and where it is none, because no plan fits. O(graph).
inline void require_graph(plan const& p, computation_graph const& forward) {
  require_feasible(p);
  if ((p.graph || p.tasks) && p.graph != forward.hash())
    detail::refuse_graph(p, forward, forward.node_count());
}

/// Throws `error` unless the plan's cluster means something, there is a micro-batch, and graph and plan were
/// made for each other, and for a plan in fp8. The plan is for this forward graph and batch size, where it
/// names one. Both are for
/// the same micro-batches and optimizer. Returns the plan. O(nodes + devices).
inline plan fitting(training_graph const& t, plan p) {
  require_feasible(p);
  require_machine(p.cluster, "plan: cluster.");
  if (p.precision == precision::fp8)
    throw error("a plan priced with products in fp8, which no executor makes", detail::plan_named(p),
                "a plan for f32, tf32 or bf16");
  if (p.micro_batches < 1)
    throw error("micro_batches is " + std::to_string(p.micro_batches), "plan", "1 or more");
  if ((p.graph || p.tasks) && p.graph != ir::forward_part_hash(t))
    detail::refuse_graph(p, t.graph, t.forward_nodes);
  if (std::string const text = disagreement(t, p); !text.empty())
    throw error(text, detail::plan_named(p),
                "differentiate(forward, options) with the plan's micro-batches and optimizer");
  return p;
}

}  // namespace tensorpar
