// tensorpar/program/unroll.hpp - the one unrolling of a plan: simulator and executor both run what is made
// here
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/program/core/lifetimes.hpp>
#include <tensorpar/program/passes/prefetch.hpp>
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

struct unroll_options {
  workspace_rule workspace = no_workspace;   // scratch space of the kernels that will run the program
  // -1: for all devices; else as this one sees it: buffers and tasks list it or nobody, only its arena is
  // filled, and workspaces of others are left out
  int device = -1;
  bool lockstep = false;       // lists one device only of those that do the same (program::listed_for)
  bool forward_only = false;                 // the forward operators alone, all outputs kept
};

namespace detail {
inline passes::listed_devices listed(unroll_options const& o, plan const& p) {
  if (o.lockstep && o.device != -1)
    throw error("one device, and one of each that do the same", "unroll", "one of these options");
  return {o.lockstep, o.device == -1 ? -1 : require_device(o.device, p)};
}
}  // namespace detail

/// The program of one training step: every operator on its devices, reshards where producer's and consumer's
/// layouts differ (shared by consumers that want the same layout), gradient accumulation over micro-batches,
/// updates in place, buffers with lifetimes and offsets. Throws `error` where the plan does not fit the graph
/// or the cluster, and where it saves memory or has a pipeline: `step_of` (program/step_of.hpp) writes those
/// into the graph. O(micro-batches * nodes * log) for one device, however many there are.
/// Laws (checked by check/check.hpp): every operand is read in the layout its notation asks for; all devices
/// see the same order of tasks.
template <class = void>
program unroll(training_graph const& t, plan const& p, unroll_options const& o = {}) {
  passes::detail::unroller u(t, p, o.workspace, detail::listed(o, p));
  u.run(!o.forward_only);
  passes::prefetch(u.out, t.graph, p.prefetch);
  u.finish(!o.forward_only);
  return std::move(u.out);
}
/// The same of a step, of a pipeline's in its order. What one group sends to another is sent as soon as it is
/// there, but for the sums of gradients of weights that stages share.
template <class = void>
program unroll(planned_step const& s, unroll_options const& o = {}) {
  if (s.order.empty()) return unroll(s.graph, s.plan, o);
  if (o.device != -1 || o.forward_only)
    throw error("a pipeline's step for one device, or without its backward passes", "unroll",
                "the whole step of all devices");
  passes::detail::unroller u(s.graph, s.plan, o.workspace, detail::listed(o, s.plan));
  u.run(true, s.order);
  passes::send_early(u.out, [&](int v) {
    return s.passes[idx(v)].stage < 0 && s.graph.graph.node(v).op.is<add>();
  });
  passes::prefetch(u.out, s.graph.graph, s.plan.prefetch);
  passes::keep_until_sent(u.out);
  u.finish(true);
  return std::move(u.out);
}
/// Bytes of one device's arena: `unroll(t, p, {w}).arena[device]`. O(micro-batches * nodes * log).
template <class = void>
i64 arena_on(int device, training_graph const& t, plan const& p, workspace_rule w = no_workspace) {
  passes::detail::unroller u(t, p, w, detail::listed({.device = device}, p), p.prefetch > 0);
  u.run(true);
  passes::prefetch(u.out, t.graph, p.prefetch);
  u.finish(true);
  return u.out.arena[idx(device)];
}

#ifdef TENSORPAR_COMPILED
extern template program unroll<>(training_graph const& t, plan const& p, unroll_options const& o);
extern template program unroll<>(planned_step const& s, unroll_options const& o);
extern template i64 arena_on<>(int device, training_graph const& t, plan const& p, workspace_rule w);
#endif

}  // namespace tensorpar
