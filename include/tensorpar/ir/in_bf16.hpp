// tensorpar/ir/in_bf16.hpp - a graph whose weights and activations take two bytes instead of four
#pragma once
#include <tensorpar/ir/computation_graph.hpp>

namespace tensorpar {

/// The same operators on bf16: real inputs, parameters, and what is made of them. Losses and statistics over a batch stay in f32, as
/// operators' shape rules say. `differentiate` then adds, for every parameter, a state `NAME.master` that holds it in f32 and is what
/// the optimizer updates, and keeps parameters' gradients in f32 (Micikevicius et al. 2018, section 3.1; no loss is scaled, bf16 has a
/// float's exponent).
/// Values and nodes keep their numbers. Precondition: a forward graph. O(nodes).
/// Law: over scalars that are not floats (double, a prime field) the graph computes what `forward` does, exactly.
inline computation_graph in_bf16(computation_graph const& forward) {
  computation_graph r;
  for (graph_value const& v : forward.values) {
    r.values.push_back(v);
    if (v.producer < 0 && v.type.type == dtype::f32) r.values.back().type.type = dtype::bf16;
  }
  r.outputs = forward.outputs;
  for (graph_node const& n : forward.nodes) {
    computation_graph one;                   // its operands alone, for the shape rule
    std::vector<int> in;
    for (int x : n.in) in.push_back(one.add_input({}, r.type(x)));
    graph_node const& again = one.node(one.add(n.op, in, n.name));
    for (std::size_t k = 0; k < n.out.size(); ++k) r.value(n.out[k]).type.type = one.type(again.out[k]).type;
    r.nodes.push_back(n);
  }
  return r;
}

}  // namespace tensorpar
