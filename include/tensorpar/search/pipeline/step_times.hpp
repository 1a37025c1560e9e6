// tensorpar/search/pipeline/step_times.hpp - what a pipeline takes when its passes are simulated, and which
// of several is best
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/pipeline/answer.hpp>
#include <tensorpar/search/pipeline/schedules/orders.hpp>
#include <tensorpar/simulate/pipeline.hpp>

namespace tensorpar::search {

/// The edges that a result was priced with: those of the graph and, for sequential planners, from each stage
/// to the next.
inline passes::stage_edges edges_of(stage_result const& r) {
  passes::stage_edges e(r.cost.next.size());
  for (std::size_t s = 0; s < e.size(); ++s)
    for (int y : r.cost.next[s]) e[idx(y)].push_back(static_cast<int>(s));
  return e;
}

/// Seconds of every stage's passes as the model prices them (transfers are part of the passes), for schedules
/// and their simulation. Activation units are bytes of a micro-batch on each device.
inline simulation::pipeline_costs costs_of(stage_result const& r) {
  simulation::pipeline_costs c;
  for (std::size_t s = 0; s < r.cost.work.size(); ++s) {
    stage_work const& w = r.cost.work[s];
    c.stages.push_back(
        {w.forward, w.backward, w.weights, w.once, w.kept * static_cast<double>(r.choices[s].micro_batch)});
    if (r.cost.shared.empty()) continue;
    c.stages.back().update += r.cost.shared.join[s];
    c.stages.back().wait = r.cost.shared.wait[s];
  }
  return c;
}

/// Seconds of a step under 1F1B (kFkB where a stage has a k), simulated. O(passes). Throws `error` for sizes
/// that no schedule can run.
inline double simulated_step(stage_result const& r) {
  passes::stage_edges const e = edges_of(r);
  return simulation::simulate_pipeline(k_f_k_b(r.pipeline, e,
                                               in_flight_samples(r.pipeline, e, in_flight_grouped)), e,
                           costs_of(r))
      .makespan;
}

/// Who knows better than estimates what a pipeline comes to (see `find_stages`). Law: equal pipelines, equal
/// seconds.
class step_judge {
 public:
  virtual ~step_judge() = default;
  /// All that it is going to be asked about, in this order: who likes may work on several at once.
  virtual void look_ahead(std::vector<stage_result> const&) {}
  /// Seconds of a step; infinity: it cannot be run, or cannot be the fastest. The pipeline has stages,
  /// choices and cost, but no order yet.
  virtual double seconds(stage_result const& r) = 0;
};

namespace detail {

/// Of the pipelines with the least estimates the one whose step `judge` says is least. Without a judge it is
/// the simulated step under 1F1B (kFkB where a stage has a k), and the estimate stands where a step has more
/// than 50,000 passes. Left out are those of which it says infinity or throws `error` (sizes of which none
/// divides the other); the estimate stands if all are.
template <stage_model M>
void settle(M const& m, best_stages& best, bool sequential, step_judge* judge = nullptr) {
  double least = infinity;
  std::size_t winner = 0;
  best.widen();
  std::vector<stage_result> all(best.shortlist.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    write_pipeline(m, best.shortlist[i].pipeline, sequential, all[i]);
    all[i].source = best.shortlist[i].source;
  }
  if (judge) judge->look_ahead(all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    double passes = 0;
    for (stage_choice const& c : all[i].choices)
      passes += 2 * static_cast<double>(m.mini_batch()) / static_cast<double>(c.micro_batch);
    if (!judge && passes > 5e4) return;
    try {
      double const t = judge ? judge->seconds(all[i]) : simulated_step(all[i]);
      if (t >= least * (1 - 1e-9)) continue;
      least = t;
      winner = i;
    } catch (error const&) {
    }
  }
  if (least == infinity) return;
  best.best = std::move(best.shortlist[winner].pipeline);
  best.source = best.shortlist[winner].source;
}

}  // namespace detail

}  // namespace tensorpar::search
