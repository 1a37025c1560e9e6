// tensorpar/search/pipeline/stages/device_places.hpp - of the devices that a stage may stand on, the slowest
// and the ones furthest apart
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/machine/machine.hpp>
#include <vector>

namespace tensorpar::search::detail {

/// The kind with the least FLOP/s among n devices from `first` on. O(n).
inline int slowest_kind(machine const& on, int first, int n) {
  int worst = on.device[idx(first)];
  for (int i = first; i < first + n; ++i) {
    int const k = on.device[idx(i)];
    if (on.kinds[idx(k)].flops < on.kinds[idx(worst)].flops)
      worst = k;
  }
  return worst;
}

/// Of groups of equal devices that lie aligned, by log2 of a group's size: the first device of one that
/// reaches over most levels of links. O(devices * log).
inline std::vector<int> farthest_places(machine const& on) {
  std::vector<int> r;
  for (int n = 1; n <= on.size(); n *= 2) {
    auto const reach = [&](int first) { return n < 2 ? nullptr : &on.between(first, first + n - 1); };
    int worst = 0;
    for (int first = n; first + n <= on.size(); first += n)
      if (reach(first) > reach(worst)) worst = first;
    r.push_back(worst);
  }
  return r;
}

}  // namespace tensorpar::search::detail
