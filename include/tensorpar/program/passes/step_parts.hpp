// tensorpar/program/passes/step_parts.hpp - which operators of a step serve the weights alone: what a
// pipeline may put off, and what it need not cut
#pragma once
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/op/kinds/structural.hpp>

namespace tensorpar::passes::detail {

/// By node: does it only feed gradients of parameters, through additions at most? Such a backward operator
/// may wait until all gradients of activations have gone on (Qi et al. 2024: W). One whose result an
/// activation's gradient is made from, too, may not. O(operands).
inline std::vector<bool> weight_parts(training_graph const& t) {
  computation_graph const& g = t.graph;
  std::vector<int> readers(g.values.size(), 0), adds(g.values.size(), 0);        // not counting updates
  std::vector<bool> goal(g.values.size(), false), r(g.nodes.size(), false);
  for (std::size_t x = 0; x < t.gradient.size(); ++x)
    if (g.values[x].role == value_role::parameter && t.gradient[x] >= 0) goal[idx(t.gradient[x])] = true;
  for (int v = g.node_count() - 1; v >= 0; --v) {
    graph_node const& n = g.node(v);
    if (n.phase == step_phase::update) continue;
    if (n.phase == step_phase::backward) {
      bool all = true;
      for (int x : n.out)
        all = all && (goal[idx(x)] || readers[idx(x)] > 0) && adds[idx(x)] == readers[idx(x)];
      r[idx(v)] = all;
    }
    bool const passes_on = r[idx(v)] && n.op.is<add>();
    for (int x : n.in) { ++readers[idx(x)]; adds[idx(x)] += passes_on; }
  }
  return r;
}

/// By forward operator: does it follow from parameters and constants alone? Then its results are the same for
/// all samples, as those of a weight that operators make are, and their gradients are sums over samples.
/// O(operands).
inline std::vector<bool> made_of_parameters(computation_graph const& forward) {
  std::vector<bool> r(forward.nodes.size(), false);
  for (int v = 0; v < forward.node_count(); ++v) {
    // drops anew for every micro-batch
    bool all = !forward.node(v).op.is<dropout>();
    for (int x : forward.node(v).in) {
      graph_value const& y = forward.value(x);
      all = all &&
            (y.role == value_role::parameter || (y.producer >= 0 && r[idx(y.producer)]));
    }
    r[idx(v)] = all;
  }
  return r;
}

/// By loop of v, whose first operand `maker` makes: the letter of the maker's loop over the same axis, in
/// `theirs` if there are any. 0 where it has none.
inline std::string letters_from(computation_graph const& g, int v, int maker, std::string const& theirs) {
  ir::iteration_space const from = ir::space_of(g, maker);
  auto const slot = idx(g.value(g.node(v).in[0]).slot);
  std::string letters;
  for (ir::node_loop const& l : ir::space_of(g, v).loops) {
    char c = '\0';
    for (std::size_t i = 0; i < from.loops.size(); ++i)
      if (from.loops[i].out[slot] == l.out[0] && l.out[0] >= 0)
        c = theirs.empty() ? from.loops[i].letter : theirs[i];
    letters.push_back(c);
  }
  return letters;
}

}  // namespace tensorpar::passes::detail
