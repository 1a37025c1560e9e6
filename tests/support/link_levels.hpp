// tests/support/link_levels.hpp - clusters whose links of several levels have lanes of their own
#pragma once
#include <tensorpar/ir/machine/machine.hpp>

namespace tests {

/// The same devices in pairs, in fours and all together; groups of three have members of different levels.
inline tensorpar::machine on_link_levels(tensorpar::machine m) {
  m.links.clear();
  for (tensorpar::i64 g : {2, 4})
    if (g < m.size()) m.links.push_back({"in " + std::to_string(g), g, 1e-6, 1e10 / static_cast<double>(g)});
  m.links.push_back({"all", m.size(), 1e-5, 1e9});
  m.lane_per_link = true;
  return m;
}

}  // namespace tests
