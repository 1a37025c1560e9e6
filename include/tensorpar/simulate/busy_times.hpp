// tensorpar/simulate/busy_times.hpp - when any of a device's lanes is busy
#pragma once
#include <algorithm>
#include <array>
#include <cassert>
#include <tensorpar/core/index.hpp>
#include <vector>

namespace tensorpar::simulation {

/// A task's time in its lane.
struct lane_mark {
  std::size_t task;
  double start, end;
};

/// Goes through the times, from one on, at which any of at most 8 lanes is busy: in order, and none overlaps
/// the one before. Precondition: marks of a lane are in order. The lanes outlive it.
class busy_times {
  std::vector<lane_mark> const* lanes_;
  std::size_t count_;
  std::array<std::size_t, 8> at_{};

 public:
  busy_times(std::vector<lane_mark> const* lanes, std::size_t count, double from)
      : lanes_(lanes), count_(count) {
    assert(count <= at_.size());
    for (std::size_t l = 0; l < count; ++l)
      at_[l] = idx(std::partition_point(lanes[l].begin(), lanes[l].end(),
                                        [&](lane_mark const& k) { return k.end <= from; }) -
                   lanes[l].begin());
  }
  /// The next one, from the start of its first task to the end of its last; false: there is none.
  bool next(lane_mark& r) {
    std::size_t first = count_;
    for (std::size_t l = 0; l < count_; ++l)
      if (at_[l] < lanes_[l].size() && (first == count_ || lanes_[l][at_[l]].start < r.start)) {
        first = l;
        r = lanes_[l][at_[l]];
      }
    if (first == count_) return false;
    ++at_[first];
    for (bool grows = true; grows;) {
      grows = false;
      for (std::size_t l = 0; l < count_; ++l)
        for (; at_[l] < lanes_[l].size() && lanes_[l][at_[l]].start < r.end; ++at_[l]) {
          r.end = std::max(r.end, lanes_[l][at_[l]].end);
          grows = true;
        }
    }
    return true;
  }
};

}  // namespace tensorpar::simulation
