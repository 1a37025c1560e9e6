// tensorpar/ir/training_hash.hpp - what is trained, and its forward part, as numbers: the same under every
// plan
#pragma once
#include <tensorpar/ir/differentiate.hpp>

namespace tensorpar::ir {

/// A stable hash of what is trained, whatever the plan: forward operators with attributes and wiring, names
/// and shapes of parameters. Batch sizes do not enter, so plans with other micro-batches agree; neither does
/// a pipeline's expansion. O(nodes).
inline u64 training_hash(training_graph const& t) {
  if (t.expanded_from) return t.expanded_from;
  core::hasher h;
  h.add(t.forward_nodes);
  for (int v = 0; v < t.forward_nodes; ++v) {
    graph_node const& n = t.graph.node(v);
    h.add(n.op.hash()).add(n.in.size()).add(n.out.size());
    for (value_id x : n.in) h.add(int{x});
    for (value_id x : n.out) h.add(int{x});
  }
  for (std::size_t x = 0; x < t.gradient.size(); ++x) {
    graph_value const& v = t.graph.values[x];
    h.add(v.role);
    if (v.role != value_role::parameter) continue;
    h.add(std::string_view(v.name)).add(v.type.type).add(v.type.rank);
    for (int d = 0; d < v.type.rank; ++d) h.add(v.type.d[d].n);
  }
  return h.value();
}

/// The hash that a plan for the forward part of this training graph bears: what was there before
/// differentiation. O(nodes).
inline u64 forward_part_hash(training_graph const& t) {
  computation_graph f;
  f.nodes.assign(t.graph.nodes.begin(), t.graph.nodes.begin() + t.forward_nodes);
  f.values.assign(t.graph.values.begin(),
                  t.graph.values.begin() + static_cast<std::ptrdiff_t>(t.gradient.size()));
  return f.hash();
}

}  // namespace tensorpar::ir
