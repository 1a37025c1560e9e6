// tensorpar/search/pipeline/to_plan.hpp - what the stage partitioner found, as a plan that can be scheduled,
// unrolled and executed
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/search/pipeline/graph_model.hpp>
#include <tensorpar/search/pipeline/stages.hpp>
#include <tensorpar/search/pipeline/step_times.hpp>

namespace tensorpar::search {

/// The plan of a pipeline of this graph: every operator is sharded over its stage's devices as the stage's
/// choice says, copies of the samples' loop `tensor` devices apart, parts of the operator side by side.
/// `choices`: by stage. The pipeline may lack its order, which then is to be filled in
/// (search/pipeline/schedules/microbatch.hpp). Optimizer and size of numbers are the model's. O(operators).
template <cost::cost_model C>
plan plan_of(computation_graph const& forward, machine const& on, graph_stages<C> const& m,
             tensorpar::pipeline p, std::vector<stage_choice> const& choices) {
  plan r;
  r.graph = forward.hash();
  r.cluster = on;
  r.optimizer = m.options().optimizer;
  r.precision = precision_in(forward);
  r.scalar_bytes = m.options().scalar_bytes;
  if (int const loss = forward.output(m.options().loss); loss >= 0)
    r.reduction =
        ir::reduction_of(forward, loss, m.options().reduction, m.options().mini_batch > m.own_batch(), true);
  r.nodes.resize(forward.nodes.size());
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    stage_choice const& c = choices[s];
    int const first = p.groups[idx(p.stages[s].group)].first;
    for (int v : p.stages[s].nodes)
      r.nodes[idx(v)].sharding = m.sharding_of(v, c, first);
  }
  r.batch = p.mini_batch;
  r.scratch = require_scratch(m.options().scratch, r.scalar_bytes, "stages").policy;
  r.pipeline = std::move(p);
  r.pipeline.unit = m.own_batch();
  return r;
}

}  // namespace tensorpar::search
