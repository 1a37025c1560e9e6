// tensorpar/search/overlapped.hpp - a plan's step simulated, and how far ahead its collectives should start
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/program/training_problem.hpp>
#include <tensorpar/search/degrees/configured.hpp>
#include <tensorpar/search/intra/fitting.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <vector>

namespace tensorpar::search {

/// What a plan's step takes when computing and communicating overlap.
struct simulated_plan {
  int prefetch = 0;                      // plan::prefetch
  double seconds = 0;
  // of these the device that computes most does it for so many, and the one that communicates most
  double computing = 0, communicating = 0;
  i64 peak = 0;                          // bytes of the largest arena
  std::optional<shortage> infeasible;    // what the arenas lack
};

/// The step of a plan, unrolled and simulated. O(unrolling).
template <cost::cost_model M>
simulated_plan simulated(computation_graph const& graph, plan const& p, training_problem const& asked,
                         M const& model) {
  program const q = step_to_simulate(graph, p, asked.loss, asked.scratch).program;
  timeline const t = simulate(q, p.cluster, model, {true, false});
  simulated_plan r{p.prefetch, t.seconds, 0, 0, *std::max_element(q.arena.begin(), q.arena.end()),
                   shortage_in(q.arena, p.cluster.memories(), false)};
  std::vector<double> computing(q.arena.size(), 0), communicating = computing;
  for (span const& s : t.spans)
    (s.where == lane::compute ? computing : communicating)[idx(s.device)] += s.end - s.start;
  r.computing = *std::max_element(computing.begin(), computing.end());
  r.communicating = *std::max_element(communicating.begin(), communicating.end());
  return r;
}

/// A plan with the prefetch that makes its step fastest, of those with which it fits. A number of operators
/// is tried after half of it, and only while steps get shorter; none where computing alone takes `bar`
/// seconds, or all but a hundredth of the step. `only`: the one that is tried, where the plan fits with
/// it. O(unrolling).
template <cost::cost_model M>
simulated_plan overlapped(computation_graph const& graph, plan& p, training_problem const& asked,
                          M const& model, double bar, std::optional<int> only = {}) {
  if (only) {
    p.prefetch = *only;
    if (simulated_plan x = simulated(graph, p, asked, model); !x.infeasible) return x;
  }
  p.prefetch = 0;
  simulated_plan best = simulated(graph, p, asked, model);
  constexpr int most = 16;
  for (int ahead = 1; ahead <= most; ahead *= 2) {
    if (best.computing >= bar || best.computing >= 0.99 * best.seconds) break;
    p.prefetch = ahead;
    simulated_plan x = simulated(graph, p, asked, model);
    bool const fits = !x.infeasible || best.infeasible, faster = x.seconds < best.seconds * (1 - 1e-3);
    if (!fits || (!faster && (x.infeasible || !best.infeasible))) break;
    best = std::move(x);
  }
  p.prefetch = best.prefetch;
  return best;
}
/// The prefetch for a configuration's pipeline of many micro-batches, found with as many as it has groups of
/// devices, and eight at least: what overlaps is the same in each. Nothing where its own step has few enough.
/// O(unrolling).
template <cost::cost_model M>
std::optional<int> prefetch_of_few(configurations<M>& all, parallel_config const& c,
                                   training_problem const& asked, M const& model) {
  i64 const few = c.pipeline * ((7 + c.pipeline) / c.pipeline), each = c.micro_batch * c.data;
  if (c.pipeline == 1 || all.samples() < 4 * few * each) return {};
  configured_plan x = all.plan_of(c, all.on(), few * each);
  return overlapped(x.graph, x.plan, asked, model, infinity).prefetch;
}

}  // namespace tensorpar::search
