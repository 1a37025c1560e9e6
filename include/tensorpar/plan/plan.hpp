// tensorpar/plan/plan.hpp - every decision about a training run, as one value
#pragma once
#include <algorithm>
#include <string>
#include <tensorpar/ir/layout.hpp>
#include <tensorpar/ir/machine.hpp>
#include <tensorpar/ir/sharded_update.hpp>
#include <tensorpar/op/loss.hpp>
#include <tensorpar/op/update.hpp>
#include <tensorpar/plan/pipeline.hpp>
#include <tensorpar/plan/shortage.hpp>
#include <tensorpar/rewrite/record.hpp>

namespace tensorpar {

/// What the search decides about one forward operator.
struct node_choice {
  tensorpar::spread spread;
  weight_sharding sharding = weight_sharding::none;   // of the weights that live where it runs
  bool recompute = false;                             // its results are computed anew for the backward pass
  friend bool operator==(node_choice const&, node_choice const&) = default;
};

/// A plan: regular, serialisable (plan/codec.hpp), hashable, checkable without any search code (plan/check.hpp).
struct plan {
  static constexpr int schema = 1;
  std::string model;                     // a label
  u64 graph = 0;                         // computation_graph::hash of the forward graph that is run, bound to one micro-batch
  u64 serial = 0;                        // the same of the graph that the user declared, where `rewrites` lead from it to `graph`
  std::vector<rewrite_record> rewrites;  // empty: the declared graph is run as it is (see plan/rewritten.hpp)
  machine cluster;
  std::vector<node_choice> nodes;        // by forward node id
  std::vector<int> order;                // forward node ids as they run, empty: by number; the rest follows (plan/operator_order.hpp)
  int micro_batches = 1;                 // gradients of so many micro-batches are added before an update
  loss_reduction reduction = loss_reduction::mean;   // what the loss is of those of micro-batches: mean or sum
  optimizer_choice optimizer;
  i64 scalar_bytes = 4;                  // size of a real number on the devices
  tensorpar::pipeline pipeline;          // empty: every micro-batch runs through all operators before the next (see plan/expand.hpp)
  i64 batch = 0;                         // samples of a step, a label for errors; 0: not said
  std::string scratch;                   // the compute policy whose scratch is in `peak_bytes` (plan/scratch.hpp); empty: nobody's is
  std::optional<shortage> infeasible;    // of a search that found nothing: then this is no plan, and whoever is handed it says so

  // What was predicted when the plan was made; the checker recomputes the bytes.
  double cost = 0,
         bound = 0;  // seconds: of this plan by the search's own objective, and a lower bound on the best plan of the searched space
  double step_seconds = 0;               // simulated
  std::vector<i64> peak_bytes;           // arena per device
  u64 tasks = 0, offsets = 0;            // hashes of the program that it unrolls to (plan/certificate.hpp); 0: not sealed

  friend bool operator==(plan const&, plan const&) = default;
  /// Does a choice save memory? Then what is unrolled is `save_memory(graph, plan)` (plan/memory_saving.hpp).
  bool saves_memory() const {
    for (node_choice const& n : nodes) if (n.recompute || n.sharding != weight_sharding::none) return true;
    return false;
  }
  u64 hash() const {
    hasher h;
    h.add(schema).add(graph).add(cluster.hash()).add(micro_batches).add(scalar_bytes);
    h.add(optimizer.kind)
        .add(optimizer.momentum)
        .add(optimizer.beta1)
        .add(optimizer.beta2)
        .add(optimizer.eps)
        .add(optimizer.weight_decay)
        .add(optimizer.clip_norm);
    if (optimizer.on_non_finite != non_finite::error) h.add(optimizer.on_non_finite);
    for (node_choice const& n : nodes) {
      h.add(n.spread.start).add(n.spread.axes.size());
      for (grid_axis const& a : n.spread.axes) h.add(static_cast<int>(a.letter)).add(a.degree).add(a.stride);
    }
    if (saves_memory()) for (node_choice const& n : nodes) h.add(n.sharding).add(n.recompute);
    if (!order.empty()) h.add(order.size());
    for (int v : order) h.add(v);
    for (i64 b : peak_bytes) h.add(b);
    if (!pipeline.empty()) h.add(pipeline.hash());
    if (!rewrites.empty()) h.add(serial).add(rewrites.size());
    for (rewrite_record const& r : rewrites) add_to(h, r);
    if (!scratch.empty()) h.add(std::string_view(scratch));
    if (reduction != loss_reduction::mean) h.add(std::string_view("reduction")).add(reduction);
    if (tasks || offsets) h.add(tasks).add(offsets);
    return h.value();
  }
};

namespace detail {
inline std::string plan_named(plan const& p) { return p.model.empty() ? "plan" : "plan " + p.model; }
}  // namespace detail

/// From the first device that an operator stands on to the last: where operators stand that belong to no other, such as the norm of all
/// gradients. Precondition: operators stand on devices of the cluster. O(operators).
inline spread grid_in_use(plan const& p) {
  i64 from = p.cluster.size(), to = -1;
  for (node_choice const& n : p.nodes) {
    i64 first = n.spread.start, last = first;
    for (grid_axis const& a : n.spread.axes) (a.stride < 0 ? first : last) += (a.degree - 1) * a.stride;
    from = std::min(from, first);
    to = std::max(to, last);
  }
  if (to < from) return {0, {{'\0', p.cluster.size(), 1}}};
  return {static_cast<int>(from), {{'\0', to - from + 1, 1}}};
}

/// Throws `error` "no plan fits: device 0 lacks ..." for what a search leaves that found no plan. Returns the plan.
inline plan const& require_feasible(plan const& p) {
  if (p.infeasible) refuse_infeasible(*p.infeasible, detail::plan_named(p));
  return p;
}

}  // namespace tensorpar
