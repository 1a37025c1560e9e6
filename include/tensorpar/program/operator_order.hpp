// tensorpar/program/operator_order.hpp - the order of a whole step that follows from the one in which a
// plan's operators run
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/plan/order_fault.hpp>

namespace tensorpar::passes {

/// All nodes of a step in the order that one of its forward operators leads to: the forward operators so,
/// then what was derived from them the other way round, except that
///  - sums over a parameter's users wait for the last summand;
///  - what is computed again comes right before the first that reads it, so that it lives no longer than it
///    must;
///  - updates come as soon as the gradient is complete and the parameter was last read.
/// Empty for no order: by number. Law: the order 0, 1, 2 ... gives back that of numbers, but for gradients'
/// shares of a norm, which come with the gradients. Precondition: no fault_of_order. O(nodes + operands).
inline std::vector<int> step_order(training_graph const& t, std::vector<int> const& order) {
  if (order.empty()) return {};
  computation_graph const& g = t.graph;
  int const operators = t.forward_nodes, nodes = g.node_count(), last = 2 * operators - 1;
  // nodes come by turn; within one by number, which no dependency contradicts
  std::vector<int> turn(idx(nodes), last);
  for (int i = 0; i < operators; ++i) turn[idx(order[idx(i)])] = i;
  auto backward = [&](int v, bool again) {
    return g.node(v).phase == step_phase::backward && g.node(v).recomputed == again;
  };
  for (int v = operators; v < nodes; ++v) {
    if (!backward(v, false)) continue;
    turn[idx(v)] = g.node(v).origin < 0 ? operators : last - turn[idx(g.node(v).origin)];
    for (int x : g.node(v).in)
      if (int const p = g.value(x).producer; p >= 0 && !g.node(p).recomputed)
        turn[idx(v)] = std::max(turn[idx(v)], turn[idx(p)]);
  }
  for (int v = nodes - 1; v >= operators; --v)             // readers have larger numbers
    if (g.node(v).phase == step_phase::backward)
      for (int x : g.node(v).in)
        if (int const p = g.value(x).producer; p >= operators && g.node(p).recomputed)
          turn[idx(p)] = std::min(turn[idx(p)], turn[idx(v)]);
  std::vector<int> read(g.values.size(), 0);               // by value: the turn of whoever reads it last
  for (int v = 0; v < nodes; ++v)
    if (g.node(v).phase != step_phase::update)
      for (int x : g.node(v).in) read[idx(x)] = std::max(read[idx(x)], turn[idx(v)]);
  for (int v = operators; v < nodes; ++v) {
    graph_node const& n = g.node(v);
    if (n.phase != step_phase::update) continue;
    turn[idx(v)] = operators;
    for (int x : n.in)
      if (int const p = g.value(x).producer; p >= 0) turn[idx(v)] = std::max(turn[idx(v)], turn[idx(p)]);
    for (int y : n.out)
      if (int const home = g.value(y).stored_in; home >= 0)
        turn[idx(v)] = std::max(turn[idx(v)], read[idx(home)]);
  }
  std::vector<int> all(idx(nodes));
  for (int v = 0; v < nodes; ++v) all[idx(v)] = v;
  std::stable_sort(all.begin(), all.end(), [&](int a, int b) { return turn[idx(a)] < turn[idx(b)]; });
  return all;
}

}  // namespace tensorpar::passes
