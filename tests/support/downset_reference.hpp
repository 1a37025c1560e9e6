// tests/support/downset_reference.hpp - the same optimum by a plain recursion over all pairs of downsets:
// the oracle
#pragma once
#include <algorithm>
#include <map>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/graph/downsets/objective.hpp>
#include <tuple>
#include <vector>

namespace tensorpar {

/// The optimum of `min_bottleneck`, without bounds, buckets or bisection: for each downset, devices and
/// copies of its complement, the least largest price, over every pair of nested downsets and every way. For
/// small graphs: O(L^2 * ways * devices * copies) prices. Stages may not be empty. Returns infinity where
/// nothing fits. Throws `error` as `min_bottleneck` does.
template <graph::topology G, graph::downset_objective O>
double min_bottleneck_reference(G const& g, O const& o, int max_downsets = 4096) {
  graph::downset_lattice const l(g, max_downsets);
  int const count = l.count(), devices = o.devices(), copies = o.copies();
  int full = 0;
  for (int d = 0; d < count; ++d) {
    bool all = true;
    for (int v = 0; v < l.node_count() && all; ++v) all = l.contains(d, v);
    if (all) full = d;
  }
  std::map<std::tuple<int, int, int>, double> known;
  // With exactly `used` devices and `made` copies for what is not in d.
  auto const least = [&](auto const& self, int d, int used, int made) -> double {
    if (d == full) return used == 0 && made == 0 ? 0.0 : infinity;
    auto const [slot, fresh] = known.try_emplace({d, used, made}, infinity);
    if (!fresh) return slot->second;
    double best = infinity;
    for (int to = 0; to < count; ++to) {
      if (to == d || !l.within(d, to)) continue;
      for (int w = 0; w < o.ways(); ++w) {
        graph::stage_way const x = o.way(w);
        if (x.devices > used || x.copies > made) continue;
        double const rest = self(self, to, used - x.devices, made - x.copies);
        if (rest < best)
          best = std::min(best, std::max(rest, graph::detail::downset_price(o, l, d, to, w, made - x.copies)));
      }
    }
    return known[{d, used, made}] = best;
  };
  double best = infinity;
  for (int used = 0; used <= devices; ++used)
    for (int made = 0; made <= copies; ++made) best = std::min(best, least(least, 0, used, made));
  return best;
}

}  // namespace tensorpar
