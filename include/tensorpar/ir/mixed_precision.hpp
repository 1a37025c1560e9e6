// tensorpar/ir/mixed_precision.hpp - a graph whose weights and activations take two bytes instead of four
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/op/kinds/update.hpp>

namespace tensorpar {

/// Of an operator with bf16 operands: the first real operand that is of another type than it takes there, or
/// -1. Operators take all of their real operands in bf16, but for those that they say to be wide (losses'
/// gradients, statistics) and for updates'.
inline int mixed_operand(computation_graph const& g, graph_node const& n) {
  bool narrow = false;
  for (value_id x : n.in) narrow = narrow || g.type(x).type == dtype::bf16;
  if (!narrow || is_update(n.op)) return -1;
  for (std::size_t k = 0; k < n.in.size(); ++k) {
    dtype const t = g.type(n.in[k]).type;
    bool const wide = k < 32 && (n.op.op->wide_operands >> k & 1);
    if (!is_integer(t) && t != (wide ? dtype::f32 : dtype::bf16)) return static_cast<int>(k);
  }
  return -1;
}
/// Throws `error` for the first operator with such an operand.
inline void require_one_type(computation_graph const& g, char const* where) {
  for (graph_node const& n : g.nodes)
    if (int const k = mixed_operand(g, n); k >= 0)
      throw error("operator " + op::spell(n.op) + " takes bf16 numbers, but operand " + std::to_string(k) +
                      " is " + op::spell(g.type(n.in[idx(k)])) + " in " + name_of(g.type(n.in[idx(k)]).type),
                  where, "operands of one type");
}

/// The same operators on bf16: real inputs, parameters, and the results of both. Losses and statistics over a
/// batch stay in f32, as operators' shape rules say. `differentiate` then adds a state `NAME.master` for
/// every parameter: it holds the parameter in f32, and the optimizer updates it. Parameters' gradients stay
/// in f32 (Micikevicius et al. 2018, section 3.1), unless `optimizer_choice` says otherwise. No loss is
/// scaled, since bf16 has a float's exponent.
/// Inputs that their readers take in f32, such as statistics, stay so.
/// Values and nodes keep their numbers. Throws `error` where an operator would have operands of both types (a
/// `constant` is in f32). Precondition: a forward graph. O(nodes).
/// Law: over scalars that are not floats (double, a prime field) the graph computes what `forward` does,
/// exactly.
inline computation_graph mixed_precision(computation_graph const& forward) {
  computation_graph r;
  std::vector<char> wide(forward.values.size(), 0);
  for (graph_node const& n : forward.nodes)
    for (std::size_t k = 0; k < n.in.size() && k < 32; ++k)
      if (n.op.op->wide_operands >> k & 1) wide[idx(n.in[k])] = 1;
  for (graph_value const& v : forward.values) {
    bool const stays = wide[r.values.size()];
    r.values.push_back(v);
    if (v.producer < 0 && v.type.type == dtype::f32 && !stays) r.values.back().type.type = dtype::bf16;
  }
  r.outputs = forward.outputs;
  for (graph_node const& n : forward.nodes) {
    computation_graph one;                   // its operands alone, for the shape rule
    std::vector<value_id> in;
    for (value_id x : n.in) in.push_back(one.append_value(value_role::input, {}, r.type(x)));
    graph_node const& again = one.node(one.add(n.op, in, n.name));
    for (std::size_t k = 0; k < n.out.size(); ++k) r.value(n.out[k]).type.type = one.type(again.out[k]).type;
    r.nodes.push_back(n);
  }
  require_one_type(r, "mixed_precision");
  return r;
}

}  // namespace tensorpar
