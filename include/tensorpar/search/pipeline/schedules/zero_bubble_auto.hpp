// tensorpar/search/pipeline/schedules/zero_bubble_auto.hpp - zero-bubble schedules for any costs, stages and
// memory, by trying
#pragma once
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/pipeline/schedules/weight_filling.hpp>
#include <tensorpar/search/pipeline/schedules/zero_bubble.hpp>

namespace tensorpar::search {

/// What an automatic zero-bubble schedule is to be.
struct zero_bubble_options {
  double limit = infinity;          // activation units on each group
  // shortest span of the slowest group, for iterations that follow without waiting; else shortest iteration
  bool by_span = false;
};

/// The best of a family of schedules, in virtual time. The family has 1F1B, ZB-H1, ZB-H2 and orders like
/// theirs with warm-ups from 1F1B's to three times that, as far as memory allows. Their weights passes fill
/// the waits (the idea of the automatic scheduler of Qi et al. 2024, arXiv 2401.10241, section 3; the family
/// is ours). Of equal ones, the one that holds least. Never slower than ZB-H1 or ZB-H2 where these fit.
/// Nothing if none fits in the memory. Splits every stage. 54 schedules tried, each O(passes * edges per
/// stage). Throws `error` if a group has several stages.
inline std::optional<pipeline> zb_automatic(pipeline p, passes::stage_edges const& e,
                                            simulation::pipeline_costs const& c,
                                            zero_bubble_options const& how = {}) {
  detail::require_own_groups(p, e, "a zero-bubble schedule");
  for (pipeline_stage& s : p.stages) {
    s.k = 1;
    s.split_backward = true;
  }
  simulation::pipeline_simulator run(p, e, c);
  std::optional<pipeline> best;
  double least = 0, held = 0;
  auto const consider = [&](pipeline&& q) {
    simulation::pipeline_run const* r = run.attempt(q.schedule);
    if (!r) return;
    double const holds =
        r->activations.empty() ? 0 : *std::max_element(r->activations.begin(), r->activations.end());
    double const time = how.by_span ? r->span() : r->makespan;
    if (holds > how.limit * (1 + 1e-9)) return;
    if (best && (time > least * (1 + 1e-12) || (time >= least * (1 - 1e-12) && holds >= held))) return;
    best = std::move(q);
    least = time;
    held = holds;
  };
  consider(one_f_one_b(p, e));
  consider(zb_h1(p, e));
  consider(zb_h2(p, e));
  std::vector<i64> const in_flight = in_flight_samples(p, e, search::in_flight);
  for (int eighths = 0; eighths <= 16; ++eighths) {
    pipeline q = p;
    q.schedule.assign(q.groups.size(), {});
    for (std::size_t s = 0; s < q.stages.size(); ++s) {
      i64 const i = in_flight[s] / q.stages[s].micro_batch, m = q.micro_batches(static_cast<int>(s));
      double const kept = c.stages[s].activation, room = kept > 0 ? how.limit / kept * (1 + 1e-9) : infinity;
      i64 first = std::min<i64>(m, i + (i - 1) * eighths / 8);
      if (room < static_cast<double>(first)) first = std::max<i64>(1, static_cast<i64>(room));
      q.stages[s].split_backward = false;   // forward and backward passes only; the weights passes follow
      q.schedule[idx(q.stages[s].group)] =
          k_f_k_b_order(q, static_cast<int>(s), first, 1);
      q.stages[s].split_backward = true;
    }
    for (double fits : {1.0, 0.5, 0.0})
      if (pipeline r = q; fill_weights(r, e, c, {fits, how.limit})) consider(std::move(r));
  }
  return best;
}

}  // namespace tensorpar::search
