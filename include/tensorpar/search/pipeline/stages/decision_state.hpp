// tensorpar/search/pipeline/stages/decision_state.hpp - what the decision for one limit has at hand
#pragma once
#include <tensorpar/search/pipeline/stages/joins.hpp>
#include <tensorpar/search/pipeline/stages/partial_pipelines.hpp>
#include <tensorpar/search/pipeline/stages/prices.hpp>

namespace tensorpar::search::detail {

/// A tree, prices whose limit holds, and the partial pipelines that were found.
template <stage_model M> struct stage_decision_state {
  stage_tree const& tree_;
  stage_blocks& prepared_;
  stage_prices<M>& prices_;
  in_flight_needs& needs_;
  int devices_ = prices_.model().devices();
  partial_pipelines pool_{needs_};
  bool uniform_ = prices_.model().uniform();

  int end_of(int offset) const { return devices_ - offset; }
  int batchings() const { return static_cast<int>(needs_.batchings().size()); }

  bool fits(partial_pipeline const& a, partial_pipeline const& b, int offset) {
    return a.devices + b.devices <= devices_ - offset && prices_.room(a.devices + b.devices, a.area + b.area);
  }

  /// Does the list hold what is as good as the piece after so many devices, even on the fewest that could be
  /// fast enough? `slow` as the argument `start` of stage_prices::fit.
  bool needless(std::vector<int> const& list, core::slice<leaf_interval> piece, int batching, int devices,
                int need, int left, int* slow) {
    if (!uniform_ || list.empty()) return false;
    int const least = prices_.at_least(piece, batching, left, slow);
    return least > 0 && pool_.covers(list, devices + least, need);
  }
};

}  // namespace tensorpar::search::detail
