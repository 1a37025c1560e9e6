// tensorpar/plan/plan.hpp - every decision about a training run, as one value
#pragma once
#include <algorithm>
#include <string>
#include <tensorpar/ir/layout.hpp>
#include <tensorpar/ir/machine/machine.hpp>
#include <tensorpar/ir/sharded_update.hpp>
#include <tensorpar/op/kinds/loss.hpp>
#include <tensorpar/op/kinds/update.hpp>
#include <tensorpar/plan/pipeline.hpp>
#include <tensorpar/plan/shortage.hpp>
#include <tensorpar/rewrite/record.hpp>

namespace tensorpar {

/// What the search decides about one forward operator.
struct op_strategy {
  ir::sharding sharding;
  ir::zero_stage zero = ir::zero_stage::none;   // of the weights that live where it runs
  bool recompute = false;                             // its results are computed anew for the backward pass
  friend bool operator==(op_strategy const&, op_strategy const&) = default;
};

/// A plan: regular, serialisable (plan/codec.hpp), hashable, checkable without any search code
/// (check/check.hpp).
struct plan {
  static constexpr int schema = 2;        // of its file; a file of schema 1 is read too (plan/schema1.hpp)
  std::string model;                     // a label
  // computation_graph::hash of the forward graph that is run, bound to one micro-batch
  u64 graph = 0;
  // the same of the graph that the user declared, where `rewrites` lead from it to `graph`
  u64 serial = 0;
  // empty: the declared graph is run as it is (see program/rewritten.hpp)
  std::vector<rewrite::rewrite_record> rewrites;
  machine cluster;
  std::vector<op_strategy> nodes;        // by forward node id
  // forward node ids as they run, empty: by number; the rest follows (program/operator_order.hpp)
  std::vector<int> node_order;
  int micro_batches = 1;                 // gradients of so many micro-batches are added before an update
  // collectives start so many operators ahead (program/passes/prefetch.hpp); 0: where they are needed
  int prefetch = 0;
  // what the loss is of those of micro-batches: mean or sum
  loss_reduction reduction = loss_reduction::mean;
  optimizer_choice optimizer;
  // what products compute with: FLOP/s of `cluster` are of this format, `graph` has its types
  tensorpar::precision precision = tensorpar::precision::f32;
  i64 scalar_bytes = 4;                  // size of a real number on the devices that is not bf16
  // empty: every micro-batch runs through all operators before the next (program/passes/pipeline_pass.hpp)
  tensorpar::pipeline pipeline;
  i64 batch = 0;                         // samples of a step, a label for errors; 0: not said
  // the compute policy whose scratch is in `peak_bytes` (program/core/scratch.hpp); empty: nobody's is
  std::string scratch;
  // of a search that found nothing: then this is no plan, and whoever is handed it says so
  std::optional<shortage> infeasible;

  // What was predicted when the plan was made; the checker recomputes the bytes.
  double cost = 0,
         // seconds: of this plan by the search's own objective, and a lower bound on the best plan of the
         // searched space
         bound = 0;
  double step_seconds = 0;               // simulated
  std::vector<i64> peak_bytes;           // arena per device
  // hashes of the program that it unrolls to (program/evidence/certificate.hpp); 0: not sealed
  u64 tasks = 0, offsets = 0;

  friend bool operator==(plan const&, plan const&) = default;
  /// Does a choice save memory? Then what is unrolled is `memory_pass(graph, plan)`
  /// (program/passes/memory_pass.hpp).
  bool saves_memory() const {
    for (op_strategy const& n : nodes) if (n.recompute || n.zero != ir::zero_stage::none) return true;
    return false;
  }
  /// In another way than by updates in parts, which may be faster, too?
  bool saves_more_than_updates() const {
    for (op_strategy const& n : nodes)
      if (n.recompute || (n.zero != ir::zero_stage::none && n.zero != ir::zero_stage::updates)) return true;
    return false;
  }
  u64 hash() const {
    core::hasher h;
    h.add(1).add(graph).add(cluster.hash()).add(micro_batches).add(scalar_bytes);
    h.add(optimizer.kind)
        .add(optimizer.momentum)
        .add(optimizer.beta1)
        .add(optimizer.beta2)
        .add(optimizer.eps)
        .add(optimizer.weight_decay)
        .add(optimizer.clip_norm);
    if (optimizer.on_non_finite != non_finite::error) h.add(optimizer.on_non_finite);
    if (optimizer.moments != dtype::f32) h.add(std::string_view("moments")).add(optimizer.moments);
    if (optimizer.masters != dtype::f32) h.add(std::string_view("masters")).add(optimizer.masters);
    if (optimizer.gradients != dtype::f32) h.add(std::string_view("gradients")).add(optimizer.gradients);
    for (op_strategy const& n : nodes) {
      h.add(n.sharding.start).add(n.sharding.axes.size());
      for (ir::mesh_axis const& a : n.sharding.axes)
        h.add(static_cast<int>(a.letter)).add(a.degree).add(a.stride);
    }
    if (saves_memory()) for (op_strategy const& n : nodes) h.add(n.zero).add(n.recompute);
    if (!node_order.empty()) h.add(node_order.size());
    for (int v : node_order) h.add(v);
    for (i64 b : peak_bytes) h.add(b);
    if (!pipeline.empty()) h.add(pipeline.hash());
    if (!rewrites.empty()) h.add(serial).add(rewrites.size());
    for (rewrite::rewrite_record const& r : rewrites) rewrite::add_to(h, r);
    if (!scratch.empty()) h.add(std::string_view(scratch));
    if (precision != tensorpar::precision::f32) h.add(std::string_view("precision")).add(precision);
    if (prefetch) h.add(std::string_view("prefetch")).add(prefetch);
    if (reduction != loss_reduction::mean) h.add(std::string_view("reduction")).add(reduction);
    if (tasks || offsets) h.add(tasks).add(offsets);
    return h.value();
  }
};

namespace detail {
inline std::string plan_named(plan const& p) { return p.model.empty() ? "plan" : "plan " + p.model; }
}  // namespace detail

/// From the first device that an operator stands on to the last: where operators stand that belong to no
/// other, such as the norm of all gradients. Precondition: operators stand on devices of the cluster.
/// O(operators).
inline ir::sharding mesh_in_use(plan const& p) {
  i64 from = p.cluster.size(), to = -1;
  for (op_strategy const& n : p.nodes) {
    i64 first = n.sharding.start, last = first;
    for (ir::mesh_axis const& a : n.sharding.axes) (a.stride < 0 ? first : last) += (a.degree - 1) * a.stride;
    from = std::min(from, first);
    to = std::max(to, last);
  }
  if (to < from) return {0, {{'\0', p.cluster.size(), 1}}};
  return {static_cast<int>(from), {{'\0', to - from + 1, 1}}};
}

/// Throws `error` "no plan fits: device 0 lacks ..." for what a search leaves that found no plan. Returns the
/// plan.
inline plan const& require_feasible(plan const& p) {
  if (p.infeasible) refuse_infeasible(*p.infeasible, detail::plan_named(p));
  return p;
}

}  // namespace tensorpar
