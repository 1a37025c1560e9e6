// tensorpar/program/passes/stage_steps.hpp - the training steps of a pipeline's stages, one per size of
// micro-batches, and which stage has what
#pragma once
#include <map>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/ir/rebatch.hpp>
#include <tensorpar/plan/pipeline_form.hpp>
#include <tensorpar/plan/step_fit.hpp>
#include <tensorpar/program/passes/step_parts.hpp>
#include <utility>
#include <vector>

namespace tensorpar::passes::detail {

struct stage_steps {
  std::map<i64, training_graph> made;                 // by samples per micro-batch; all have the same ids
  loss_reduction reduction = loss_reduction::mean;    // of the losses of micro-batches
  std::vector<int> stage;                             // by node of those graphs; -1: of none
  std::vector<bool> weight_part;                      // by node: only adds to the gradient of a parameter
  // by forward node: of parameters alone, the same for all samples
  std::vector<bool> of_weights;
  // by node: adds what several stages give to the gradient of a parameter
  std::vector<bool> joins;
  // by node: a sum where its summands are made: that operator, and its letters there
  std::map<int, std::pair<int, std::string>> summed;

  /// Throws `error` as `stages_of_operators`, `reduction_of`, `rebatch` and `differentiate` do. O(sizes *
  /// operators).
  stage_steps(computation_graph const& forward, plan const& p, std::string const& loss) {
    pipeline const& pipe = p.pipeline;
    stage = tensorpar::detail::stages_of_operators(forward.node_count(), p);
    int const y = forward.output(loss);
    node_id const last = y < 0 ? node_id() : forward.value(y).producer;
    bool const several = last >= 0 && pipe.mini_batch > pipe.unit;
    reduction = y < 0 ? p.reduction : ir::reduction_of(forward, y, p.reduction, several, true);
    for (pipeline_stage const& s : pipe.stages) {
      if (made.contains(s.micro_batch)) continue;
      training_options o;
      o.loss = loss;
      o.optimizer = p.optimizer;
      o.reduction = reduction;
      // the gradient starts there, whatever the sizes elsewhere
      o.micro_batches = last < 0 ? 1 : pipe.micro_batches(stage[idx(last)]);
      made.emplace(s.micro_batch, differentiate(ir::rebatch(forward, s.micro_batch / pipe.unit), o));
    }
    computation_graph const& g = any().graph;
    for (int v = forward.node_count(); v < g.node_count(); ++v) {
      int const o = g.node(v).origin;
      stage.push_back(o < 0 ? -1 : stage[idx(o)]);
    }
    weight_part = weight_parts(any());
    of_weights = made_of_parameters(forward);
    sum_where_made(forward.node_count());
    joins.assign(g.nodes.size(), false);
    for (int v = 0; v < g.node_count(); ++v)
      for (int x : g.node(v).in)
        if (int const maker = g.value(x).producer;
            weight_part[idx(v)] && g.node(v).op.is<add>() && maker >= 0)
          joins[idx(v)] = joins[idx(v)] || joins[idx(maker)] || stage[idx(maker)] != stage[idx(v)];
  }

  training_graph const& any() const { return made.begin()->second; }

 private:

  /// What several operators of one stage give to the gradient of a value from another stage is added in
  /// theirs and sent once. The other stage would come to it in an order of its own, which theirs would have
  /// to wait for.
  void sum_where_made(int forward_nodes) {
    computation_graph const& g = any().graph;
    for (int v = forward_nodes; v < g.node_count(); ++v) {
      graph_node const& n = g.node(v);
      if (n.phase != step_phase::backward || weight_part[idx(v)] || !n.op.is<add>()) continue;
      int const a = g.value(n.in[0]).producer, b = g.value(n.in[1]).producer;
      if (a < forward_nodes || b < forward_nodes || stage[idx(a)] != stage[idx(b)] ||
          stage[idx(a)] == stage[idx(v)])
        continue;
      auto const before = summed.find(a);
      node_id const origin = before != summed.end() ? node_id(before->second.first) : g.node(a).origin;
      std::string const& theirs = before != summed.end() ? before->second.second : g.node(a).letters;
      if (origin < 0) continue;
      stage[idx(v)] = stage[idx(a)];
      summed[v] = {origin, letters_from(g, v, a, theirs)};
    }
  }
};

/// What a pipeline's plan says of all operators alike holds for its step, whose shardings these are.
inline plan plan_of_step(plan p, std::vector<op_strategy> nodes, training_graph const& t) {
  p.nodes = std::move(nodes);
  p.graph = ir::forward_part_hash(t);
  p.reduction = t.reduction;
  if (p.batch == 0) p.batch = p.pipeline.mini_batch;
  p.pipeline = {};
  p.micro_batches = 1;
  p.serial = 0;
  p.rewrites.clear();
  return p;
}

}  // namespace tensorpar::passes::detail
