// tensorpar/search/pipeline/stage_options.hpp - what partitioning into stages is asked
#pragma once
#include <string_view>
#include <tensorpar/core/config.hpp>
#include <vector>

namespace tensorpar::search {

/// What is made small.
/// - iteration: the estimate of an iteration (`cost_of`), which also counts how the pipeline fills and
///   drains.
/// - bottleneck: the time per sample of the slowest stage (thesis, equation 3.1), whatever it costs in depth.
/// - thesis: for each micro-batch size the least bottleneck within `tolerance`, of such pipelines the one
///   with the fewest samples in flight at its sources (section 3.5); of the sizes the one with the least
///   iteration (section 3.10.3).
enum class stage_objective : int { iteration, bottleneck, thesis };
constexpr std::string_view name_of(stage_objective o) {
  return o == stage_objective::iteration    ? "iteration"
         : o == stage_objective::bottleneck ? "bottleneck"
                                            : "thesis";
}

struct stage_options {
  stage_objective objective = stage_objective::iteration;
  // samples; empty: own batch times powers of two up to the mini-batch that divide it
  std::vector<i64> micro_batches;
  std::vector<int> ks{1};          // of kFkB
  bool mixed = true;               // stages may differ in micro-batch size (see `find_stages`)
  double tolerance = 1e-4;         // of the bottleneck, relative; 0: exact in each family up to rounding
  bool line = true;                // consider contiguous stages of a line too, where the tree leaves a gap
  int max_up_sets = 192;          // graphs with at most so many: every convex partition is considered
  // bottleneck, equal devices, where any gap is left: nested downsets if there are at most so many
  int max_downsets = 400'000;
  // bottleneck, at most 512 operators, where a gap is left: steps of annealing from each start
  int exchanges = 200'000;
  // of fit_stages, which unrolls several programs at once; 0: one per processor. The result is the same
  int threads = 0;
};

}  // namespace tensorpar::search
