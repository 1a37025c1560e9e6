// tensorpar/typed/queries.hpp - facts about a model that hold in static_assert and at run time: parameters,
// work, shapes
#pragma once
#include <string_view>
#include <tensorpar/graph/sp/ordered.hpp>
#include <tensorpar/typed/topology.hpp>

namespace tensorpar {

namespace detail {
template <class G> constexpr i64 node_times_of(G const& g, int v) {
  if constexpr (requires { { node_times(g, v) } -> std::convertible_to<i64>; }) return node_times(g, v);
  else return 1;
}
template <class G> constexpr i64 value_times_of(G const& g, int x) {
  if constexpr (requires { { value_times(g, x) } -> std::convertible_to<i64>; }) return value_times(g, x);
  else return 1;
}
// Plain pointers, no iterators, and no call that can be spared: calls are most of the price in constant
// evaluation.
constexpr i64 parameters(graph_view const& g) {
  i64 n = 0;
  model_value const* const values = g.values.p;
  for (int x = 0, all = g.values.n; x < all; ++x) {
    if (values[x].role != model_role::parameter) continue;
    i64 e = 1;
    for (int i = 0, rank = values[x].type.rank; i < rank; ++i) e *= values[x].type.d[i].n;
    n += values[x].block < 0 ? e : e * g.times(values[x].block);
  }
  return n;
}
template <operator_graph G> constexpr i64 parameters(G const& g) {
  i64 n = 0;
  for (int x = 0, k = value_count(g); x < k; ++x)
    if (is_parameter(g, x)) n += type_of(g, x).elements() * value_times_of(g, x);
  return n;
}
constexpr double flops(graph_view const& g, core::slice<binding> b) {
  // by value: an operator's results are a slice of it, and so is a single operand
  core::pool<shape> bound_;
  shape* const bound = bound_.extend(g.values.n);
  model_value const* const values = g.values.p;
  bool const shared = !g.weights.empty();   // an operator's own weights are nobody's activations
  for (int x = 0, all = g.values.n; x < all; ++x) {
    if (!shared && values[x].role == model_role::parameter) continue;
    shape& s = bound[x];
    s = values[x].type;
    for (int k = 0, rank = s.rank; k < rank; ++k)
      if (s.d[k].sym.id)
        for (binding const& y : b)
          if (y.sym.id == s.d[k].sym.id) {
            s.d[k].n *= y.n;
            s.d[k].sym.id = 0;
            break;
          }
  }
  double total = 0;
  shape in[bundle::max];
  model_node const* const nodes = g.nodes.p;
  for (int v = 0, all = g.nodes.n; v < all; ++v) {
    model_node const& n = nodes[v];
    int const* const operands = g.operands.p + n.in0;
    int const k = n.activations;
    if (k > 1) for (int i = 0; i < k; ++i) in[i] = bound[operands[i]];
    double const once = n.op->flops(g.attrs.p + n.attr0, {k == 1 ? bound + operands[0] : in, k},
                                    {bound + n.out0, n.result_count});
    total += n.block < 0 ? once : once * static_cast<double>(g.times(n.block));
  }
  return total;
}
template <operator_graph G> constexpr double flops(G const& g, core::slice<binding> b) {
  double total = 0;
  shape in[bundle::max], out[op::inference::max_out];
  for (int v = 0, n = graph::node_count(g); v < n; ++v) {
    op::any_op const o = op_of(g, v);
    int ni = 0, no = 0;
    for (int x : operands(g, v))
      if (ni < bundle::max && (o.op->arity < 0 || ni < o.op->arity)) in[ni++] = bind(type_of(g, x), b);
    for (int x : results(g, v)) out[no++] = bind(type_of(g, x), b);
    total += o.op->flops(o.attr, {in, ni}, {out, no}) * static_cast<double>(node_times_of(g, v));
  }
  return total;
}
}  // namespace detail

/// The number of learned scalars; weights of a repeated block count once per repetition, a shared weight
/// once. O(values).
template <operator_graph G> constexpr i64 parameters(G const& g) {
  if constexpr (std::convertible_to<G const&, graph_view>)
    return detail::parameters(static_cast<graph_view>(g));
  else return detail::parameters(g);
}

/// Floating-point operations of one forward pass: `flops(net, batch = 32)`. A symbol that is not bound counts
/// as one. O(operators).
template <operator_graph G, std::same_as<binding>... B> constexpr double flops(G const& g, B... bound) {
  binding const b[sizeof...(B) + 1]{bound..., binding{axis{u64{0}}, 1}};
  core::slice<binding> const s{b, static_cast<int>(sizeof...(B))};
  if constexpr (std::convertible_to<G const&, graph_view>)
    return detail::flops(static_cast<graph_view>(g), s);
  else return detail::flops(g, s);
}

/// Is the order of the operators series-parallel? As graph/sp/reduction.hpp says of any graph; here nodes are
/// known to be in topological order, so that models need none of its headers. A repeated block counts as the
/// one repetition that the tables hold. O(operators + operands).
constexpr bool is_series_parallel(graph_view const& g) {
  return g.nodes.n > 0 && graph::detail::reduce_ordered(g, g.nodes.n, nullptr).ok;
}
template <class M> constexpr bool is_series_parallel(typed_graph<M> const& g) {
  return is_series_parallel(g.view());
}

/// The shape of an output, its symbols bound. Throws `error` where there is no output of this name (no
/// constant expression).
template <std::same_as<binding>... B>
constexpr shape output_shape(graph_view const& g, std::string_view name, B... bound) {
  binding const b[sizeof...(B) + 1]{bound..., binding{axis{u64{0}}, 1}};
  for (model_port const& p : g.outputs)
    if (p.name.index < 0 && p.name.text == name)
      return bind(g.values[p.value].type, {b, static_cast<int>(sizeof...(B))});
  detail::refuse("the model has no output of this name", "output_shape", "the name of an output");
}

}  // namespace tensorpar
