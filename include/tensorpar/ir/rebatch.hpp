// tensorpar/ir/rebatch.hpp - the same graph on a larger batch: types inferred anew, ids and weights unchanged
#pragma once
#include <tensorpar/ir/computation_graph.hpp>

namespace tensorpar {

/// A forward graph whose inputs have `factor` times as many entries along axis 0. Values and nodes keep their ids; parameters keep their
/// shapes. Throws `error` where an operator's attributes fix the batch, so that its shape rule refuses or its weights would change.
/// Precondition: g is a forward graph. O(nodes). Law: rebatch(g, 1) == g; rebatch(rebatch(g, a), b) == rebatch(g, a * b).
inline computation_graph rebatch(computation_graph g, i64 factor) {
  if (factor < 1) throw error("a batch " + std::to_string(factor) + " times as large", "rebatch", "a factor of 1 or more");
  if (factor == 1) return g;
  for (graph_value& v : g.values)
    if (v.role == value_role::input && v.type.rank > 0) v.type.d[0].n *= factor;
  for (int v = 0; v < g.node_count(); ++v) {
    graph_node const& n = g.node(v);
    auto refuse = [&](std::string const& why) {
      throw error("operator " + spell(n.op) + (n.name.empty() ? "" : " '" + n.name + "'") + " cannot run on " + std::to_string(factor) +
                      " times its batch: " + why, "rebatch", "operators whose attributes leave the batch open");
    };
    pool<shape> in;
    for (int k = 0; k < n.activations; ++k) in.push(g.type(n.in[static_cast<std::size_t>(k)]));
    inference const r = n.op.op->infer(n.op.attr, in.view());
    if (!r.ok()) refuse(std::string(r.rule) + ": " + spell(r.out[0]) + ", " + spell(r.out[1]));
    weight_list const w = n.op.op->weights(n.op.attr, in.view());
    for (int k = 0; k < w.n && n.activations + k < static_cast<int>(n.in.size()); ++k) {
      shape const &now = w.w[k].type, &had = g.type(n.in[static_cast<std::size_t>(n.activations + k)]);
      bool same = now.rank == had.rank;
      for (int d = 0; same && d < now.rank; ++d) same = now.d[d].n == had.d[d].n;
      if (!same) refuse("its weights depend on the batch");
    }
    for (int k = 0; k < r.n; ++k) g.value(n.out[static_cast<std::size_t>(k)]).type = r.out[k];
  }
  return g;
}

}  // namespace tensorpar
