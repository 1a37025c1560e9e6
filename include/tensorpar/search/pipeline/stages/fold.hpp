// tensorpar/search/pipeline/stages/fold.hpp - several stages take turns on one group of devices, as
// interleaved and V schedules want
#pragma once
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/plan/pipeline.hpp>

namespace tensorpar::search {

/// How stages come round to the groups again: in the same order (interleaved 1F1B: stage s on group s mod g),
/// or back and forth (V shapes: 0 1 2 2 1 0).
enum class fold_kind : int { round, back_and_forth };

/// A pipeline of v * `groups` stages, each on a group of its own and all of one number of devices, on the
/// first `groups` groups. Orders are dropped. Throws `error` where that is not so.
inline pipeline fold_stages(pipeline p, int groups, fold_kind kind) {
  int const n = static_cast<int>(p.stages.size());
  if (groups < 1 || n < 1 || n % groups || static_cast<int>(p.groups.size()) != n)
    throw error(std::to_string(n) + " stages on " + std::to_string(groups) + " groups", "fold_stages",
                "a multiple of the number of groups, each stage on a group of its own");
  device_range const first = p.groups.front();
  for (device_range const& g : p.groups)
    if (g.count != first.count) throw error("groups of different size", "fold_stages", "equal groups");
  p.groups.clear();
  for (int g = 0; g < groups; ++g) p.groups.push_back({g * first.count, first.count});
  for (int s = 0; s < n; ++s) {
    int const turn = s / groups, at = s % groups;
    p.stages[idx(s)].group =
        kind == fold_kind::back_and_forth && turn % 2 ? groups - 1 - at : at;
  }
  p.schedule.clear();
  return p;
}

}  // namespace tensorpar::search
