// tensorpar/typed/topology.hpp - models as the graphs that generic algorithms know, structure and meaning
#pragma once
#include <tensorpar/graph/concepts.hpp>
#include <tensorpar/typed/freeze.hpp>

namespace tensorpar {

namespace detail {
struct counted_ids {
  int first, n;
  struct iterator {
    int i;
    constexpr int operator*() const { return i; }
    constexpr iterator& operator++() { ++i; return *this; }
    friend constexpr bool operator==(iterator, iterator) = default;
  };
  constexpr iterator begin() const { return {first}; }
  constexpr iterator end() const { return {first + n}; }
};
}  // namespace detail

// The meaning of a graph of operators, as free functions found by argument-dependent lookup; models of this
// library and of users alike.

constexpr op::any_op op_of(graph_view const& g, int v) { return g.op(v); }
constexpr core::slice<int> operands(graph_view const& g, int v) {
  return {g.operands.p + g.nodes[v].in0, g.nodes[v].operand_count};
}
constexpr detail::counted_ids results(graph_view const& g, int v) {
  return {g.nodes[v].out0, g.nodes[v].result_count};
}
constexpr int value_count(graph_view const& g) { return g.values.n; }
constexpr shape const& type_of(graph_view const& g, int x) { return g.values[x].type; }
constexpr bool is_parameter(graph_view const& g, int x) { return g.values[x].role == model_role::parameter; }
constexpr i64 node_times(graph_view const& g, int v) { return g.times(g.nodes[v].block); }
constexpr i64 value_times(graph_view const& g, int x) { return g.times(g.values[x].block); }

/// A topology whose nodes are operators over typed values: what cost models and queries need.
/// Valid expressions (g a constant graph, v a node, x a value): `op_of(g, v)` -> any_op; `operands(g, v)`,
/// `results(g, v)` -> ranges of value ids, weights last; `value_count(g)`; `type_of(g, x)` -> shape;
/// `is_parameter(g, x)` -> bool; all found by argument-dependent lookup. Optional: `node_times(g, v)`,
/// `value_times(g, x)` -> i64: how often a repeated node or value exists (default 1). Laws: results of
/// different nodes differ; op_of(g, v).op->infer on the types of the activations gives the types of the
/// results. Complexity: each O(1). Models: `graph_view`, `typed_graph<M>`, `computation_graph`.
template <class G>
concept operator_graph = graph::topology<G> && requires(G const& g, int v) {
  { op_of(g, v) } -> std::convertible_to<op::any_op>;
  { operands(g, v) } -> graph::cpo::node_range;
  { results(g, v) } -> graph::cpo::node_range;
  { value_count(g) } -> std::convertible_to<int>;
  { type_of(g, v) } -> std::convertible_to<shape>;
  { is_parameter(g, v) } -> std::convertible_to<bool>;
};

}  // namespace tensorpar
