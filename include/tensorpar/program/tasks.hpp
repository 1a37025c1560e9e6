// tensorpar/program/tasks.hpp - the one unrolling of a plan: simulator and executor both run what is made
// here
#pragma once
#include <tensorpar/program/send_early.hpp>
#include <tensorpar/program/unroller.hpp>

namespace tensorpar {

namespace detail {

inline int require_device(int device, plan const& p) {
  require_feasible(p);
  if (device < 0 || device >= p.cluster.size())
    throw error("device " + std::to_string(device) + " does not exist", "unroll",
                "devices 0 to " + std::to_string(p.cluster.size() - 1));
  return device;
}

}  // namespace detail

/// The program of one training step: every operator on its devices, reshards where producer's and consumer's
/// layouts differ (shared by consumers that want the same layout), gradient accumulation over micro-batches,
/// updates in place, buffers with lifetimes and offsets. Throws `error` where the plan does not fit the graph
/// or the cluster. O(micro-batches * nodes * log).
/// Laws (checked by check/check.hpp): every operand is read in the layout its notation asks for; all devices
/// see the same order of tasks.
inline program unroll(training_graph const& t, plan const& p, workspace_rule w = no_workspace) {
  detail::unroller u(t, p, w);
  u.run(true);
  u.finish(true);
  return std::move(u.out);
}
/// The same for a pipeline's step (program/passes/expand.hpp), in its order. What one group sends to another
/// is sent as soon as it is there, but for the sums of gradients of weights that stages share.
inline program unroll(pipelined_step const& s, workspace_rule w = no_workspace) {
  detail::unroller u(s.graph, s.plan, w);
  u.run(true, s.order);
  send_early(u.out, [&](int v) {
    return s.passes[static_cast<std::size_t>(v)].stage < 0 && s.graph.graph.node(v).op.is<add>();
  });
  u.finish(true);
  return std::move(u.out);
}
/// `unroll(t, p, w)` as one device sees it: buffers and tasks list this device or nobody, and only its arena
/// is filled; other devices' workspaces are left out. O(micro-batches * nodes * log), however many devices
/// there are.
inline program unroll_on(int device, training_graph const& t, plan const& p,
                         workspace_rule w = no_workspace) {
  detail::unroller u(t, p, w, detail::require_device(device, p));
  u.run(true);
  u.finish(true);
  return std::move(u.out);
}
/// Bytes of one device's arena: `unroll(t, p, w).arena[device]`. O(micro-batches * nodes * log).
inline i64 arena_on(int device, training_graph const& t, plan const& p, workspace_rule w = no_workspace) {
  detail::unroller u(t, p, w, detail::require_device(device, p), false);
  u.run(true);
  u.finish(true);
  return u.out.arena[static_cast<std::size_t>(device)];
}
/// The forward operators alone, all outputs kept: for evaluation.
inline program unroll_forward(training_graph const& t, plan const& p, workspace_rule w = no_workspace) {
  detail::unroller u(t, p, w);
  u.run(false);
  u.finish(false);
  return std::move(u.out);
}

}  // namespace tensorpar
