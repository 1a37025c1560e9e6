// tensorpar/search/pipeline/schedules/zero_bubble_v.hpp - ZB-V: two chunks of the chain on each group, down
// and up again
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/pipeline/schedules/weight_filling.hpp>

namespace tensorpar::search {

namespace detail {

/// A chain of 2p stages with one micro-batch size, stages s and 2p-1-s on group s?
inline void require_v(pipeline const& p, passes::stage_edges const& e, std::string const& schedule) {
  passes::require_schedulable(p, e);
  int const n = static_cast<int>(p.groups.size()), all = static_cast<int>(p.stages.size());
  if (n == 0 || all != 2 * n)
    throw error(std::to_string(all) + " stages on " + std::to_string(n) + " groups", schedule,
                "twice as many stages as groups");
  for (int s = 0; s < all; ++s) {
    auto const i = idx(s);
    bool const chained = s == 0 ? e[i].empty() : e[i] == std::vector<int>{s - 1};
    if (!chained || p.stages[i].group != (s < n ? s : 2 * n - 1 - s) ||
        p.stages[i].micro_batch != p.stages[0].micro_batch)
      throw error("stage " + std::to_string(s), schedule,
                  "a chain with one micro-batch size, stages s and 2p-1-s on group s");
  }
}
/// What the two chunks of a group keep of one micro-batch, where they keep most.
inline double chunk_units(pipeline const& p, simulation::pipeline_costs const& c) {
  double most = 0;
  if (c.stages.size() == p.stages.size())   // else whoever simulates will say so
    for (simulation::stage_seconds const& s : c.stages) most = std::max(most, 2 * s.activation);
  return most;
}

/// Forward and backward passes of group g of p. Stage g is the way down, stage 2p-1-g the way up. Let F = B =
/// W. Every group first fills the time until micro-batch 0 comes back (2(p-g)-1 forward passes down). Then it
/// keeps the last group fed from both sides (g pairs), and turns micro-batches round as they come (p-g
/// pairs). From then on it takes one of each kind in turn.
inline std::vector<pass_entry> v_order(pipeline const& p, int g) {
  int const n = static_cast<int>(p.groups.size()), m = p.micro_batches(0), stage[2] = {g, 2 * n - 1 - g};
  int done[2][2] = {{0, 0}, {0, 0}};   // chunk, pass
  std::vector<pass_entry> o;
  o.reserve(idx(m) * 6);
  auto const put = [&](int chunk, pass what) {
    int& k = done[chunk][static_cast<int>(what)];
    if (k < m) o.push_back({stage[chunk], what, k++});
  };
  for (int i = 0; i < 2 * (n - g) - 1; ++i) put(0, pass::forward);
  for (int i = 0; i < g; ++i) {
    put(1, pass::forward);
    put(0, pass::forward);
  }
  for (int i = 0; i < n - g; ++i) {
    put(1, pass::forward);
    put(1, pass::backward);
  }
  while (done[0][1] < m || done[1][1] < m) {
    put(0, pass::forward);
    put(0, pass::backward);
    put(1, pass::forward);
    put(1, pass::backward);
  }
  return o;
}

}  // namespace detail

/// ZB-V (Qi et al. 2024, arXiv 2401.10241, section 6): a chain of 2p stages on p groups, stage s on group s,
/// stage 2p-1-s on the same. So the first group also has the last stage and every group holds the same.
/// Weights passes fill waits as far as the first group of 1F1B would have memory. Splits every stage. At F =
/// B = W and at least 2p micro-batches: no bubble within a group's span, p micro-batches of activations on
/// every group where a chunk keeps half of one. Otherwise the bubble grows. Of five ways to fill, the one
/// with the shortest iteration, then the shortest span. O(passes). Throws `error` unless the stages are such
/// a chain.
inline pipeline zb_v(pipeline p, passes::stage_edges const& e, simulation::pipeline_costs const& c) {
  detail::require_v(p, e, "ZB-V");
  int const n = static_cast<int>(p.groups.size());
  double const limit = n * detail::chunk_units(p, c);
  for (pipeline_stage& s : p.stages) s.split_backward = true;
  p.schedule.assign(p.groups.size(), {});
  for (int g = 0; g < n; ++g) p.schedule[idx(g)] = detail::v_order(p, g);
  simulation::pipeline_simulator split(p, e, c);
  pipeline best;
  double least = 0, min_span = 0;
  for (double fits : {1.0, 0.75, 0.5, 0.25, 0.0}) {
    pipeline q = p;
    if (!fill_weights(q, e, c, {fits, limit})) continue;
    simulation::pipeline_run const* r = split.attempt(q.schedule);
    if (!r || (!best.empty() && (r->makespan > least || (r->makespan == least && r->span() >= min_span))))
      continue;
    least = r->makespan;
    min_span = r->span();
    best = std::move(q);
  }
  return best;
}

}  // namespace tensorpar::search
