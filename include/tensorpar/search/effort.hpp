// tensorpar/search/effort.hpp - how hard `plan_training` looks
#pragma once
#include <optional>
#include <tensorpar/program/training_problem.hpp>
#include <tensorpar/search/intra/sharding_knobs.hpp>
#include <tensorpar/search/joint/rewriting_knobs.hpp>
#include <tensorpar/search/pipeline/schedules/schedule_kind.hpp>
#include <tensorpar/search/pipeline/stage_options.hpp>
#include <tensorpar/search/plan_watch.hpp>
#include <vector>

namespace tensorpar {

/// - quick: shardings on all devices, and degrees of parallelism; seconds on hundreds of devices, up to
///   minutes for hundreds of billions of parameters on thousands.
/// - normal: parts of the machine too, and pipelines whose stages are searched.
/// - thorough: the same again after rewrite rules; no plan is slower than that of `normal`.
enum class effort : int { quick, normal, thorough };

/// For experts: what each phase of the planner may do. Its documentation stands with the phase.
struct planner_knobs {
  search::sharding_knobs shardings;              // search/intra/sharding_knobs.hpp
  search::rewriting_knobs rules;                 // search/joint/rewriting_knobs.hpp
  // search/pipeline/stage_options.hpp; its micro-batches are samples
  search::stage_options stages;
  // parts of an operator inside stages; 0: as many as the innermost links join
  int max_tensor = 0;
  // operators times micro-batches of a program that is unrolled, on one device of those that do the same.
  // 300,000 of them take 260 MB; of pipelines as many programs are there at once as threads, up to 4
  i64 max_placed = i64{1} << 19;
  // the same times devices: beyond that `planned::step` lists one device of those that do the same
  i64 max_listed = i64{1} << 21;
};

struct planning_options {
  tensorpar::effort effort = tensorpar::effort::normal;
  // of plans without stages: numbers that are tried; empty: 1 and, where memory is short, more
  std::vector<int> micro_batches = {};
  // of pipelines; empty: no pipelines; nothing: 1F1B and ZB-H1, or with quick what degrees have
  std::optional<std::vector<search::schedule_kind>> schedules = {};
  int threads = 0;                       // 0: one per processor. The result is the same for any number
  planner_knobs knobs = {};
  search::plan_watch* watch = nullptr;   // told of every plan that is compared (search/plan_watch.hpp)
};

}  // namespace tensorpar
