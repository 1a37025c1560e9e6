// tensorpar/search/effort.hpp - how hard `plan_training` looks
#pragma once
#include <optional>
#include <tensorpar/program/training_problem.hpp>
#include <tensorpar/search/joint/joint.hpp>
#include <tensorpar/search/pipeline/fit_stages.hpp>

namespace tensorpar {

/// - quick: shardings on all devices; seconds for billions of parameters on hundreds of devices.
/// - normal: parts of the machine and pipelines too.
/// - thorough: the same again after rewrite rules; no plan is slower than that of `normal`.
enum class effort : int { quick, normal, thorough };

/// For experts: what each phase of the planner may do. Its documentation stands with the phase.
struct planner_knobs {
  search::sharding_knobs shardings;              // search/intra/search_options.hpp
  search::rewriting_knobs rules;                 // search/joint/develop.hpp
  search::stage_options stages;                  // search/pipeline/answer.hpp; its micro-batches are samples
  // parts of an operator inside stages; 0: as many as the innermost links join
  int max_tensor = 0;
  // operators times micro-batches times devices of a program that is unrolled. 300,000 of them take 260 MB;
  // of pipelines as many programs are there at once as threads, up to 4
  i64 max_placed = i64{1} << 21;
};

struct planning_options {
  tensorpar::effort effort = tensorpar::effort::normal;
  // of plans without stages: numbers that are tried; empty: 1 and, where memory is short, more
  std::vector<int> micro_batches = {};
  // of pipelines; empty: no pipelines; nothing: 1F1B and ZB-H1, unless the effort is quick
  std::optional<std::vector<search::schedule_kind>> schedules = {};
  int threads = 0;                       // 0: one per processor. The result is the same for any number
  planner_knobs knobs = {};
};

namespace detail {

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
  s.max_listed = std::numeric_limits<i64>::max();                  // max_placed is what counts here
  return s;
}

}  // namespace detail

}  // namespace tensorpar
