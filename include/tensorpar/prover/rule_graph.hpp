// tensorpar/prover/rule_graph.hpp - one side of a rule, with everything filled in, as a graph
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/prover/cases/setting.hpp>
#include <tensorpar/rewrite/open_graph.hpp>

namespace tensorpar::prover {

/// A side of an instance (prover/cases/instances.hpp) as a graph with outputs "y0", "y1", ... `declare(graph,
/// x)` adds tensor variable x, of the extents of tensors[x], and returns its value; variables are the graph's
/// first values, in order. nullopt: the side is not valid on these shardings. O(size).
template <class Declare>
std::optional<rewrite::sharding_graph> graph_of_side(rewrite::pattern_graph const& side,
                                                     typed_pattern const& typed,
                                          std::vector<ir::parallel_shape> const& tensors,
                                          Declare const& declare) {
  rewrite::sharding_graph s;
  std::vector<value_id> variable;
  std::vector<std::vector<value_id>> made;
  auto lie = [&](value_id value, ir::parallel_shape where) {
    where.type = s.graph.type(value);
    s.shapes.push_back(std::move(where));
  };
  for (std::size_t x = 0; x < tensors.size(); ++x) {
    variable.push_back(declare(s.graph, x));
    lie(variable.back(), tensors[x]);
  }
  for (std::size_t i = 0; i < side.nodes.size(); ++i) {
    std::vector<value_id> in;
    std::vector<ir::parallel_shape> operands;
    for (rewrite::pattern_value v : side.nodes[i].in) {
      in.push_back(rewrite::detail::value_of(v, variable, made));
      operands.push_back(s.shapes[idx(in.back())]);
    }
    ir::parallel_result const y = ir::infer_parallel_shapes(typed.op[i], operands);
    if (!y.ok()) return std::nullopt;
    made.push_back(s.graph.node(s.graph.add(typed.op[i], std::move(in))).out);
    for (std::size_t k = 0; k < y.out.size(); ++k) lie(made.back()[k], y.out[k]);
  }
  for (std::size_t k = 0; k < side.outputs.size(); ++k)
    s.graph.add_output("y" + std::to_string(k), rewrite::detail::value_of(side.outputs[k],
        variable, made));
  return s;
}

}  // namespace tensorpar::prover
