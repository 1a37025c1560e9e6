// tensorpar/program/step_of.hpp - one training step of any plan, with stages or without: what executors,
// checker and simulator take
#pragma once
#include <algorithm>
#include <string>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/ir/rebatch.hpp>
#include <tensorpar/plan/step_fit.hpp>
#include <tensorpar/program/passes/memory_pass.hpp>
#include <tensorpar/program/training.hpp>
#include <tensorpar/program/unroll.hpp>

namespace tensorpar {

namespace detail {
template <class Ready>
planned_step step_of(computation_graph const& forward, plan const& p, std::string const& loss,
                     unroll_options const& o, Ready const& ready) {
  require_graph(p, forward);
  planned_step s = !p.pipeline.empty() ? passes::pipeline_pass(forward, p, loss)
                                       : passes::memory_pass(differentiate(forward, training_of(p, loss)), p);
  ready(s.graph);
  s.program = unroll(s, o);
  return s;
}
}  // namespace detail

/// The step that a plan makes of the forward graph that it runs. Its pipeline, its recomputation and its ZeRO
/// stages are written into the graph (program/passes/), which is then unrolled. `w`: the scratch space of a
/// backend. `ready(graph)` is called with the step's graph before that. Throws `error` for a plan of another
/// graph, and as the passes and `unroll` do. O(unrolling).
template <class Ready>
planned_step step_of(computation_graph const& forward, plan const& p, std::string const& loss,
                     workspace_rule w, Ready const& ready) {
  return detail::step_of(forward, p, loss, {w}, ready);
}
/// The same without a policy's kernels being looked for: with the scratch space that a search or a
/// certificate was told of, or none.
inline planned_step step_of(computation_graph const& forward, plan const& p, std::string const& loss = "loss",
                            scratch_space const& scratch = {}) {
  return step_of(forward, p, loss, require_scratch(scratch, p.scalar_bytes, "step_of").rule,
                 [](training_graph const&) {});
}
/// The same with one device listed only of those that do the same (`program::listed_for`): for simulators, in
/// time and space that do not grow with replicas.
inline planned_step step_to_simulate(computation_graph const& forward, plan const& p,
                                     std::string const& loss = "loss", scratch_space const& scratch = {}) {
  workspace_rule const w = require_scratch(scratch, p.scalar_bytes, "step_to_simulate").rule;
  return detail::step_of(forward, p, loss, {.workspace = w, .lockstep = true}, [](training_graph const&) {});
}

/// The graph that a plan for so many `samples` runs, from the graph of few that it was searched for with
/// (search/plan_training.hpp): in the plan's precision, on as many samples as a micro-batch has; a pipeline
/// runs the given one. For plans that come from a file. If the plan has rewrites, the one that they begin
/// with: `rewritten(graph_of(few, p, samples), p)` (program/rewritten.hpp) is what any plan runs.
/// Throws `error` where the plan is of another graph or batch. O(nodes).
inline computation_graph graph_of(computation_graph const& few, plan const& p, i64 samples) {
  require_feasible(p);
  i64 const own = samples_of(few);
  bool const staged = !p.pipeline.empty();
  i64 const parts = staged ? 1 : own * std::max(1, p.micro_batches);
  if (samples < 1 || (staged ? samples != p.pipeline.mini_batch : samples % parts != 0))
    throw error("a batch of " + std::to_string(samples) + " for a plan of " + detail::training_text(p),
                detail::plan_named(p),
                staged ? std::to_string(p.pipeline.mini_batch) + ", the pipeline's"
                       : "a multiple of " + std::to_string(parts));
  computation_graph const in_format = at_precision(few, p.precision);
  computation_graph g = staged ? in_format : ir::rebatch(in_format, samples / parts);
  if (p.rewrites.empty() || g.hash() != p.serial) require_graph(p, g);
  return g;
}

#ifdef TENSORPAR_COMPILED
extern template planned_step passes::pipeline_pass<>(computation_graph const&, plan const&,
                                                     std::string const&);
#endif

}  // namespace tensorpar
