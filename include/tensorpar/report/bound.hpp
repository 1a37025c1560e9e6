// tensorpar/report/bound.hpp - which plans a search's bound is about
#pragma once
#include <algorithm>
#include <string>
#include <tensorpar/search/intra/optimize.hpp>

namespace tensorpar::report {

/// Which devices a search's bound is about, of so many: "these devices or a part of them" (any), neighbours
/// among them, or the numbers of devices of the parts.
inline std::string bound_holds_for(search::search_space const& s, int devices) {
  if (devices == 1) return "this device";
  if (s.every_part) return "these devices or a part of them";
  if (s.neighbours) return "these devices or neighbours among them";
  std::string r = "these devices";
  std::size_t const told = std::min<std::size_t>(s.part_sizes.size(), 8);
  for (std::size_t i = 0; i < told; ++i) r += (i ? ", " : ", or on ") + std::to_string(s.part_sizes[i]);
  return told < s.part_sizes.size() ? r + " ... of them" : told ? r + " of them" : r;
}

}  // namespace tensorpar::report
