// tensorpar/search/phase_options.hpp - what each phase of the planner is asked
#pragma once
#include <algorithm>
#include <limits>
#include <tensorpar/program/training_problem.hpp>
#include <tensorpar/search/degrees/ranking.hpp>
#include <tensorpar/search/effort.hpp>
#include <tensorpar/search/intra/search_options.hpp>
#include <tensorpar/search/pipeline/fit_stages.hpp>
#include <vector>

namespace tensorpar::detail {

inline std::vector<search::schedule_kind> schedules_of(planning_options const& o) {
  if (o.schedules) return *o.schedules;
  if (o.effort == effort::quick) return {};
  return {search::schedule_kind::one_f_one_b, search::schedule_kind::zb_h1};
}
/// What each phase is asked of this problem, of its graph on however many samples.
inline search::search_options search_of(training_problem const& p, planning_options const& o) {
  search::search_options s;
  static_cast<search::sharding_knobs&>(s) = o.knobs.shardings;
  s.fewer_devices = s.fewer_devices && o.effort != effort::quick;
  s.model = p.name;
  s.loss = p.loss;
  s.optimizer = p.optimizer;
  s.reduction = p.reduction;
  s.scalar_bytes = p.scalar_bytes();
  s.scratch = p.scratch;
  s.threads = o.threads;
  s.compare = false;
  s.max_listed = std::numeric_limits<i64>::max();                  // max_placed counts here
  return s;
}
/// The same for the stages of pipelines. `saving`: those that compute again and share the optimizer's state.
inline search::graph_stage_options stages_of(training_problem const& p, planning_options const& o,
                                             machine const& on, search::search_options const& each, i64 batch,
                                             bool saving) {
  search::graph_stage_options g;
  g.mini_batch = batch;
  g.loss = p.loss;
  g.optimizer = p.optimizer;
  g.reduction = each.reduction;
  g.scalar_bytes = each.scalar_bytes;
  g.scratch = p.scratch;
  g.max_tensor = o.knobs.max_tensor;
  if (g.max_tensor <= 0) g.max_tensor = on.links.empty() ? 1 : static_cast<int>(on.links.front().group);
  g.recompute = g.shard_optimizer = saving;
  return g;
}
/// The same for degrees of parallelism. `data_alone`: data parallelism and ZeRO.
inline search::degree_limits degrees_of(planning_options const& o, search::search_options const& each,
                                        bool data_alone) {
  search::degree_limits r;
  bool const staged = !o.schedules || std::find(o.schedules->begin(), o.schedules->end(),
                                                search::schedule_kind::one_f_one_b) != o.schedules->end();
  r.max_tensor = data_alone ? 1 : o.knobs.max_tensor;
  r.max_pipeline = data_alone || !staged ? 1 : 0;
  r.micro_batches = o.micro_batches;
  r.simulated = o.effort == effort::quick ? 8 : 16;
  r.threads = o.threads;
  if (!each.save_memory) {
    r.sharding = {ir::zero_stage::none};
    r.recompute = {search::recomputation::none};
  }
  return r;
}

}  // namespace tensorpar::detail
