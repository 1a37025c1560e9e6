// tensorpar/check/form.hpp - does a plan fit its graph and cluster, and does every index of a program mean
// something?
#pragma once
#include <tensorpar/check/facts.hpp>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/op/attention/packed.hpp>
#include <tensorpar/plan/order_fault.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/plan/step_fit.hpp>
#include <tensorpar/program/core/program.hpp>

namespace tensorpar::detail::check {

inline std::string label(computation_graph const& g, int v) {
  graph_node const& n = g.node(v);
  return sentence("operator ", v, " (", n.name.empty() ? "" : n.name + ": ",
                  n.op.op ? std::string(n.op.op->name) : "none", ")");
}
inline std::string label(computation_graph const& g, program const& p, int task, int number = -1) {
  int const v = p.tasks[idx(task)].node;
  std::string const name = p.tasks[idx(task)].name;
  return sentence("task ", number < 0 ? task : number, " (",
                  name.empty() && v >= 0 && v < g.node_count() ? label(g, v) : name, ")");
}
inline std::string value_label(computation_graph const& g, int x) {
  return sentence("value ", x, g.value(x).name.empty() ? "" : " '" + g.value(x).name + "'");
}

/// Graph, cluster and shardings. O(nodes + different sharded operators * devices).
inline void check_plan(training_graph const& t, plan const& p, facts& known, findings& out) {
  if (p.infeasible) return out.add({fault::memory, -1, -1, p.infeasible->device, -1, text_of(*p.infeasible)});
  if (!p.pipeline.empty())
    return out.add(
        {fault::wrong_graph, -1, -1, -1, -1,
         "the plan has a pipeline: pipeline_pass(graph, plan) makes graph and plan of its step, which can "
         "be checked and run"});
  if (p.saves_memory())
    return out.add(
        {fault::wrong_graph, -1, -1, -1, -1,
         "the plan saves memory: memory_pass(graph, plan) makes the graph and the plan of its step, which "
         "can be checked"});
  if (p.graph != ir::forward_part_hash(t))
    out.add({fault::wrong_graph, -1, -1, -1, -1,
             "the plan was made for another graph, or for another batch size"});
  if (static_cast<int>(p.nodes.size()) != t.forward_nodes)
    return out.add(
        {fault::wrong_graph, -1, -1, -1, -1,
         sentence("the plan decides about ", p.nodes.size(), " operators, the graph has ", t.forward_nodes)});
  try {
    require_machine(p.cluster, "the plan's cluster: ");
  } catch (error const& e) {
    return out.add({fault::malformed, -1, -1, -1, -1, e.what()});
  }
  if (p.micro_batches < 1 || p.scalar_bytes < 1)
    return out.add(
        {fault::malformed, -1, -1, -1, -1, "the plan's micro-batches or scalar size mean nothing"});
  bool const narrow = precision_in(t.graph) == precision::bf16;
  if (narrow != is_narrow(p.precision))
    out.add({fault::wrong_graph, -1, -1, -1, -1,
             sentence("the plan is for training in ", precision_names[static_cast<int>(p.precision)],
                      ", the graph is in ", narrow ? "bf16" : "f32")});
  if (std::string text = disagreement(t, p); !text.empty())
    out.add({fault::wrong_graph, -1, -1, -1, -1, std::move(text)});
  if (std::optional<order_fault> const f = fault_of_order(t.graph, p.node_order, t.forward_nodes))
    out.add({fault::malformed, -1, -1, -1, -1, "the plan's " + f->where() + ": " + f->what});
  for (int v = 0; v < t.forward_nodes; ++v) {
    std::string const& why =
        known.runs(known.run_number(known.operator_number(t.graph, v), p.nodes[idx(v)].sharding)).why;
    if (!why.empty())
      out.add({fault::sharding, -1, -1, -1, v, label(t.graph, v) + " cannot be sharded as planned: " + why});
  }
}

/// Whether task i lists what there is, and as many as its kind takes; its devices aside.
inline void check_task_form(computation_graph const& g, program const& q, int i, findings& out) {
  int const buffers = static_cast<int>(q.buffers.size()), tasks = static_cast<int>(q.tasks.size());
  task const& k = q.tasks[idx(i)];
  auto say = [&](char const* what) {
    out.add({fault::malformed, i, -1, -1, -1, sentence("task ", i, " ", what)});
  };
  if (k.node < 0 || k.node >= g.node_count()) say("is of an operator that is not there");
  if (k.micro_batch < 0 || k.micro_batch >= q.micro_batches) say("is of a micro-batch that is not there");
  bool const sends = k.kind == task_kind::send, receives = k.kind == task_kind::receive;
  if (k.kind != task_kind::compute && k.kind != task_kind::reshard && !sends && !receives)
    say("is neither an operator nor a reshard");
  if (k.kind == task_kind::compute && !k.op.op) say("has no operator");
  // what attention leaves for its gradient is no value
  bool const nameless = k.kind == task_kind::compute && has_lse(k.op);
  for (auto const* side : {&k.in, &k.out})
    for (int b : *side)
      if (b < 0 || b >= buffers || (!nameless && q.buffers[idx(b)].value < 0))
        say("uses a buffer that is not there or is a workspace");
  if (k.workspace < -1 || k.workspace >= buffers ||
      (k.workspace >= 0 && q.buffers[idx(k.workspace)].value >= 0))
    say("has a workspace that is none");
  if (sends || receives) {
    bool const there = k.other_half >= 0 && k.other_half < tasks;
    task const* o = there ? &q.tasks[idx(k.other_half)] : nullptr;
    if (!o || o->other_half != i || o->kind != (sends ? task_kind::receive : task_kind::send) ||
        (k.other_half < i) == sends)
      say("is half of an exchange without a matching other half: a receive behind its send");
    else if (!(k.step == o->step) || k.step.kind != ir::reshard_kind::exchange)
      say("is half of another reshard than its other half");
    if (k.in.size() != (sends ? 1u : 0u) || k.out.size() != (sends ? 0u : 1u))
      say("sends not one buffer, or receives not one");
  }
  if (k.kind == task_kind::reshard && (k.in.size() != 1 || k.out.size() != 1 || k.in == k.out))
    say("moves not one buffer to one other");
}

/// Indices, shapes, layouts and sizes, so that nothing that follows can step outside. O(buffers + tasks, and
/// what they list of devices).
inline void check_program_form(training_graph const& t, plan const& p, program const& q, facts& known,
                               findings& out) {
  computation_graph const& g = t.graph;
  int const devices = p.cluster.size(), buffers = static_cast<int>(q.buffers.size()),
            tasks = static_cast<int>(q.tasks.size());
  if (q.micro_batches != p.micro_batches || q.scalar_bytes != p.scalar_bytes)
    out.add({fault::malformed, -1, -1, -1, -1, "program and plan differ in micro-batches or scalar size"});
  if (static_cast<int>(q.arena.size()) != devices)
    out.add({fault::malformed, -1, -1, -1, -1,
             sentence("there are ", q.arena.size(), " arenas for ", devices, " devices")});
  auto ascending = [&](std::vector<int> const& d) {
    for (std::size_t i = 0; i < d.size(); ++i)
      if (d[i] < 0 || d[i] >= devices || (i && d[i] <= d[i - 1])) return false;
    return known.only() >= 0 ? d.empty() || d == std::vector<int>{known.only()} : !d.empty();
  };
  auto check_buffer = [&](int i, buffer const& b) {
    auto say = [&](fault f, auto const&... what) {
      out.add({f, -1, i, -1, -1, sentence("buffer ", i, " ", what...)});
    };
    if (b.value < -1 || b.value >= static_cast<int>(g.values.size()))
      return say(fault::malformed, "holds a value that is not there");
    if (!ascending(b.devices) || b.offset.size() != b.devices.size())
      return say(fault::malformed, "has no good list of devices and offsets");
    if (b.first < 0 || b.last < b.first || b.last >= tasks)
      return say(fault::lifetime, "lives from task ", b.first, " to ", b.last);
    if (b.bytes < 0) return say(fault::bytes, "has ", b.bytes, " bytes");
    value_role const role = b.value < 0 ? value_role::activation : g.value(b.value).role;
    if (b.persistent && role != value_role::parameter && role != value_role::state)
      return say(fault::malformed, "is persistent but holds no parameter or state");
    if (b.in_place_of >= i ||
        (b.in_place_of >= 0 &&
         (b.persistent || q.buffers[idx(b.in_place_of)].persistent ||
          q.buffers[idx(b.in_place_of)].bytes != b.bytes ||
          q.buffers[idx(b.in_place_of)].devices != b.devices)))
      return say(fault::malformed, "takes over the bytes of a buffer that is not like it");
    if (b.value < 0) return;
    if (!(b.type == g.type(b.value)))
      return say(fault::malformed, "has shape ", op::spell(b.type), " for ",
                 value_label(g, b.value), " of ", op::spell(g.type(b.value)));
    placement const& at = known.placed(known.layout_number(b.where, b.type));
    if (at.devices.empty())
      return say(fault::malformed, "has a layout that does not fit ", op::spell(b.type));
    if (!known.lists(b.devices, at.devices))
      return say(fault::devices, "lists other devices than its layout");
    i64 const bytes = core::saturating_mul(at.elements, bytes_of(b.type.type, q.scalar_bytes));
    if (b.bytes != bytes) say(fault::bytes, "has ", b.bytes, " bytes for a part of ", bytes);
  };
  for (int i = 0; i < buffers && !out.full(); ++i) check_buffer(i, q.buffers[idx(i)]);
  for (int i = 0; i < tasks && !out.full(); ++i) {
    if (!ascending(q.tasks[idx(i)].devices))
      out.add({fault::malformed, i, -1, -1, -1, sentence("task ", i, " has no good list of devices")});
    check_task_form(g, q, i, out);
  }
}

}  // namespace tensorpar::detail::check
