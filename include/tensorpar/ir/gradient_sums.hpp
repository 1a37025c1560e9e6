// tensorpar/ir/gradient_sums.hpp - which gradients micro-batches add up, and where the sums lie
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/op/kinds/update.hpp>
#include <vector>

namespace tensorpar::ir {

/// `training_graph::zero` of a parameter.
inline zero_stage zero_of(training_graph const& t, int x) {
  return idx(x) < t.zero.size() ? t.zero[idx(x)] : zero_stage::none;
}
/// Does this parameter live where it is updated, and is it gathered once a step?
inline bool gathered_once(training_graph const& t, int x) {
  return zero_of(t, x) == zero_stage::updates || zero_of(t, x) == zero_stage::gradients;
}
/// Is this the update of a weight that is kept in the parts that are updated, and gathered for every pass
/// (ZeRO-3, FSDP)?
inline bool updates_in_parts(training_graph const& t, int node) {
  graph_node const& n = t.graph.node(node);
  return is_update(n.op) && zero_of(t, n.in[0]) == zero_stage::weights;
}
/// Is this an update that reads a sum in parts (ZeRO-2, ZeRO-3)? Each micro-batch's gradient is reduced and
/// scattered at once, and no whole one stays.
inline bool sums_in_parts(training_graph const& t, int node) {
  graph_node const& n = t.graph.node(node);
  return updates_in_parts(t, node) || (is_update(n.op) && zero_of(t, n.in[0]) == zero_stage::gradients);
}

/// What becomes of a gradient that updates read.
struct gradient_sum {
  bool added = false;                    // micro-batches' are added up; updates, and they alone, read the sum
  int update = -1, operand = -1;         // added as this operand of this node reads it; -1: as it is made
};

/// By value of the step's graph. O(nodes + operands).
inline std::vector<gradient_sum> gradient_sums(training_graph const& t) {
  std::vector<gradient_sum> r(t.graph.values.size());
  for (int v = t.forward_nodes; v < t.graph.node_count(); ++v) {
    graph_node const& n = t.graph.node(v);
    if (n.phase != step_phase::update) continue;
    for (std::size_t k = 0; k < n.in.size(); ++k) {
      int const made = t.graph.value(n.in[k]).producer;
      gradient_sum& s = r[idx(n.in[k])];
      s.added = s.added || (made >= 0 && t.graph.node(made).phase == step_phase::backward);
      if (s.added && k == 1 && sums_in_parts(t, v)) s.update = v, s.operand = 1;
    }
  }
  return r;
}

}  // namespace tensorpar::ir
