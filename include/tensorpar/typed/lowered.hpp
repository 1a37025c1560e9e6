// tensorpar/typed/lowered.hpp - the run-time graph as an operator_graph, so that queries about models answer
// for it too
#pragma once
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/typed/topology.hpp>
#include <vector>

namespace tensorpar {

// Found by argument-dependent lookup; see operator_graph.
inline op::any_op const& op_of(computation_graph const& g, int v) { return g.node(v).op; }
inline std::vector<value_id> const& operands(computation_graph const& g, int v) { return g.node(v).in; }
inline std::vector<value_id> const& results(computation_graph const& g, int v) { return g.node(v).out; }
inline int value_count(computation_graph const& g) { return static_cast<int>(g.values.size()); }
inline shape const& type_of(computation_graph const& g, int x) { return g.type(x); }
inline bool is_parameter(computation_graph const& g, int x) {
  return g.value(x).role == value_role::parameter;
}

}  // namespace tensorpar
