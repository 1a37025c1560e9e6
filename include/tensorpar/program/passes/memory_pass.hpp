// tensorpar/program/passes/memory_pass.hpp - a plan's sharded updates and recomputed operators, written
// into the graph of its step
#pragma once
#include <algorithm>
#include <set>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/sharded_update.hpp>
#include <tensorpar/ir/training_hash.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/program/core/planned_step.hpp>

namespace tensorpar::passes {

namespace detail {

/// Operator v and those whose results it needs, through values that pass `through`, ascending. O(result *
/// operands * log).
template <class Through> std::set<int> behind(int v, computation_graph const& g, Through const& through) {
  std::set<int> all{v};
  for (std::vector<int> open{v}; !open.empty();) {
    int const u = open.back();
    open.pop_back();
    for (int x : g.node(u).in)
      if (through(x) && all.insert(g.value(x).producer).second) open.push_back(g.value(x).producer);
  }
  return all;
}

/// Copies forward operators into the backward pass, before the first operator that reads what they make.
class recomputation {
  training_graph const& t_;
  plan const& plan_;
  training_graph r_;
  std::vector<int> again_;                         // by value: its copy, or -1
  std::vector<char> wanted_;                       // by value: some operator of the backward pass reads it

  bool recomputed(int value) const {
    int const p = t_.graph.value(value).producer;
    return p >= 0 && p < t_.forward_nodes && plan_.nodes[idx(p)].recompute;
  }
  void find_wanted() {
    wanted_.assign(t_.graph.values.size(), 0);
    for (int v = t_.graph.node_count() - 1; v >= 0; --v) {
      graph_node const& n = t_.graph.node(v);
      bool reads = n.phase == step_phase::backward;
      if (v < t_.forward_nodes) for (int y : n.out) reads = reads || wanted_[idx(y)];
      if (reads) for (int x : n.in) if (recomputed(x)) wanted_[idx(x)] = 1;
    }
  }
  void read_copies(graph_node& n) const {
    for (value_id& x : n.in) if (again_[idx(x)] >= 0) x = again_[idx(x)];
  }
  void append(graph_node n) {
    int const id = r_.graph.node_count();
    for (int y : n.out) r_.graph.value(y).producer = id;
    r_.graph.nodes.push_back(std::move(n));
  }
  /// The copy of forward operator v, and before it of those that it reads.
  void compute_again(int v) {
    for (int u : behind(v, t_.graph, [&](int x) { return recomputed(x) && again_[idx(x)] < 0; })) {
      graph_node n = t_.graph.node(u);
      n.phase = step_phase::backward;
      n.origin = u;
      n.recomputed = n.refetch_operands = true;
      read_copies(n);
      for (value_id& y : n.out) {
        graph_value x = t_.graph.value(y);
        x.name.clear();
        again_[idx(y)] = static_cast<int>(r_.graph.values.size());
        r_.graph.values.push_back(std::move(x));
        y = again_[idx(y)];
      }
      append(std::move(n));
    }
  }

 public:
  recomputation(training_graph const& t, plan const& p)
      : t_(t), plan_(p), r_(t), again_(t.graph.values.size(), -1) {}
  training_graph run() {
    find_wanted();
    r_.graph.nodes.resize(idx(t_.forward_nodes));
    for (int v = t_.forward_nodes; v < t_.graph.node_count(); ++v) {
      graph_node n = t_.graph.node(v);
      if (n.phase == step_phase::backward) {
        for (int x : n.in)
          if (wanted_[idx(x)] && again_[idx(x)] < 0) compute_again(t_.graph.value(x).producer);
        read_copies(n);
        n.refetch_operands = n.origin >= 0 && plan_.nodes[idx(n.origin)].recompute;
      }
      append(std::move(n));
    }
    return std::move(r_);
  }
};

}  // namespace detail

/// Gives the updates of operator f's weights to the parts of `mesh` that held copies, and the weights
/// themselves: they live where they are updated. With `weights` they are gathered for every pass, else once a
/// step, where they are read first (Megatron: overlap-param-gather). With `gradients` each micro-batch's
/// gradient is scattered; `weights` implies that. `update`: an update operator derived from f.
/// O(axes * loops).
inline void shard_update(training_graph& t, int update, ir::sharding const& mesh, ir::zero_stage s) {
  graph_node& n = t.graph.node(update);
  if (s == ir::zero_stage::none || n.letters.empty()) return;
  ir::update_sharding u = ir::sharded_update(ir::space_of(t.graph, update), std::move(n.letters), mesh);
  n.letters = std::move(u.letters);
  n.share = u.share;
  if (!is_update(n.op)) return;
  int const x = n.in[0];
  t.home[idx(x)] = update;
  t.zero.resize(std::max(t.zero.size(), idx(x) + 1), ir::zero_stage::none);
  t.zero[idx(x)] = s;
  if (s != ir::zero_stage::gradients) return;
  // what adds micro-batches of a pipeline, but where several stages add to one sum
  for (int sum = t.graph.value(n.in[1]).producer; sum >= 0 && t.graph.node(sum).in_place;) {
    graph_node& m = t.graph.node(sum);
    m.origin = n.origin;
    m.letters = n.letters;
    m.share = n.share;
    m.in_parts = true;
    sum = t.graph.value(m.in[0]).producer;
  }
}

/// Writes what a plan's choices save into the graph of its step. Operators with `recompute` run once more in
/// the backward pass, right before the first that reads their results, from what was kept, and move their
/// operands anew; nothing of theirs is kept from the forward pass. Weights with `zero` are updated in
/// parts (`sharded_update`), and with `weights` kept in parts.
/// Throws `error` if the plan decides about another number of operators, or has a pipeline (`pipeline_pass`
/// does all this itself). O(nodes log). Law: the step computes what `t` computes, exactly.
template <class = void>
planned_step memory_pass(training_graph const& t, plan p) {
  require_feasible(p);
  if (static_cast<int>(p.nodes.size()) != t.forward_nodes)
    throw error("the plan decides about " + std::to_string(p.nodes.size()) + " operators, the graph has " +
                    std::to_string(t.forward_nodes),
                "memory_pass", "a plan made for this graph");
  if (!p.pipeline.empty())
    throw error("the plan has a pipeline", "memory_pass",
                "the step that pipeline_pass(graph, plan) makes of it");
  planned_step r{detail::recomputation(t, p).run(), std::move(p), {}, {}, {}};
  r.graph.expanded_from = ir::training_hash(t);
  for (int v = t.forward_nodes; v < r.graph.graph.node_count(); ++v)
    if (graph_node const& n = r.graph.graph.node(v); n.phase == step_phase::update && n.origin >= 0) {
      op_strategy const& c = r.plan.nodes[idx(n.origin)];
      shard_update(r.graph, v, c.sharding, c.zero);
    }
  for (op_strategy& c : r.plan.nodes) c = {c.sharding};
  return r;
}

#ifdef TENSORPAR_COMPILED
extern template planned_step memory_pass<>(training_graph const& t, plan p);
#endif

}  // namespace tensorpar::passes
