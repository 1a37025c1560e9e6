// tensorpar/report/choices.hpp - what a plan decided about operators besides shardings, read from its step
#pragma once
#include <string>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/ir/gradient_sums.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/report/tasks.hpp>
#include <vector>

namespace tensorpar::report {

/// How memory is saved at an operator, and whether a collective that serves it starts ahead.
struct operator_choice {
  ir::zero_stage zero = ir::zero_stage::none;
  bool recomputed = false, prefetched = false;
  friend bool operator==(operator_choice const&, operator_choice const&) = default;
};

/// "computed again", "ZeRO: weights in parts", "prefetched": those that hold.
inline std::vector<std::string> choice_words(operator_choice const& c) {
  std::vector<std::string> r;
  if (c.recomputed) r.push_back("computed again");
  if (c.zero == ir::zero_stage::updates) r.push_back("ZeRO: updates in parts");
  if (c.zero == ir::zero_stage::gradients) r.push_back("ZeRO: gradients in parts");
  if (c.zero == ir::zero_stage::weights) r.push_back("ZeRO: weights in parts");
  if (c.prefetched) r.push_back("prefetched");
  return r;
}

namespace detail {

/// Does an update follow an axis of its operator's mesh on which copies of the weight stand?
inline bool shares_update(computation_graph const& g, graph_node const& update, plan const& p) {
  graph_node const& n = g.node(update.origin);
  ir::iteration_space const space = ir::space_of(g, update.origin);
  for (ir::mesh_axis const& a : p.nodes[idx(update.origin)].sharding.axes) {
    if (a.degree < 2 || !a.letter || update.letters.find(a.letter) == std::string::npos) continue;
    ir::node_loop const* const loop = space.find(a.letter);
    for (std::size_t k = 0; loop && k < n.in.size(); ++k)
      if (n.in[k] == update.in[0] && loop->in[k] < 0) return true;
  }
  return false;
}
/// Marks operators of which a reshard stands before other operators' work, which it may overlap with.
inline void find_prefetched(training_graph const& t, program const& q, std::vector<operator_choice>& all) {
  std::vector<int> last(idx(t.graph.node_count()), -1);  // by node: its next reshard's place among the work
  int work = 0;
  for (task const& x : q.tasks) {
    if (x.node < 0 || x.node >= t.graph.node_count()) continue;
    int& before = last[idx(x.node)];
    if (x.kind == task_kind::reshard && communicates(x)) {
      if (before < 0) before = work;
    } else if (x.kind == task_kind::compute) {
      node_id const v = served(t.graph, x);
      if (before >= 0 && before < work && v >= 0 && idx(v) < all.size()) all[idx(v)].prefetched = true;
      before = -1;
      ++work;
    }
  }
}

}  // namespace detail

/// By forward operator. `t`, `p`, `q`: graph, plan and program of one step; what the step's passes wrote into
/// the graph counts, and flags that the plan still has. O(nodes * operands + tasks).
inline std::vector<operator_choice> choices_of(training_graph const& t, plan const& p, program const& q) {
  computation_graph const& g = t.graph;
  std::vector<operator_choice> r(std::min(idx(t.forward_nodes), p.nodes.size()));
  for (std::size_t v = 0; v < r.size(); ++v) r[v] = {p.nodes[v].zero, p.nodes[v].recompute, false};
  for (int u = t.forward_nodes; u < g.node_count(); ++u) {
    graph_node const& n = g.node(u);
    if (n.origin < 0 || idx(n.origin) >= r.size()) continue;
    operator_choice& c = r[idx(n.origin)];
    if (n.recomputed) c.recomputed = true;
    if (!is_update(n.op) || n.in.empty() || c.zero == ir::zero_stage::weights) continue;
    if (ir::updates_in_parts(t, u))
      c.zero = ir::zero_stage::weights;
    else if (ir::sums_in_parts(t, u))
      c.zero = ir::zero_stage::gradients;
    else if (detail::shares_update(g, n, p))
      c.zero = ir::zero_stage::updates;
  }
  if (p.prefetch > 0) detail::find_prefetched(t, q, r);
  return r;
}

}  // namespace tensorpar::report
