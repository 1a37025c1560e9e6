// tensorpar/peers/profiles/max_load.hpp - dnn-partitioning's price of a split: the load of the busiest device
#pragma once
#include <algorithm>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/peers/profiles/dnn_partitioning.hpp>
#include <vector>

namespace tensorpar::peers {

/// Which nodes run where: one list per device.
struct device_split {
  std::vector<std::vector<int>> accelerators, cpus;
  friend bool operator==(device_split const&, device_split const&) = default;
};
/// What a split costs: loads in the profile's unit, bytes by accelerator, and the largest load.
struct max_load_price {
  std::vector<double> accelerators, cpus, bytes;
  double seconds = 0;
  bool fits = true;  ///< every accelerator within the memory, every node where it may run
};

/// The max-load price (Tarnawski et al. 2020, section 4): an accelerator computes its nodes and moves each
/// result that crosses its border once, be it its own or another's; a CPU computes and moves nothing. The
/// largest load is the time between two results of a pipeline. `memory`: bytes of an accelerator. Throws
/// `error` for a node that does not exist, stands in two lists or in none. O(V + E + lists).
inline max_load_price price_max_load(dnn_partitioning_profile const& g, device_split const& s,
                                     double memory) {
  std::vector<int> device(idx(g.node_count()), -1);
  int const accelerators = static_cast<int>(s.accelerators.size()),
            all = accelerators + static_cast<int>(s.cpus.size());
  max_load_price r;
  r.accelerators.assign(s.accelerators.size(), 0.0);
  r.bytes.assign(s.accelerators.size(), 0.0);
  r.cpus.assign(s.cpus.size(), 0.0);
  auto const load = [&](int d) -> double& {
    return d < accelerators ? r.accelerators[idx(d)] : r.cpus[idx(d - accelerators)];
  };
  for (int d = 0; d < all; ++d)
    for (int v : d < accelerators ? s.accelerators[idx(d)] : s.cpus[idx(d - accelerators)]) {
      if (v < 0 || v >= g.node_count())
        throw error("node " + std::to_string(v) + " does not exist", "split",
                    "nodes 0 to " + std::to_string(g.node_count() - 1));
      if (device[idx(v)] >= 0)
        throw error("node " + std::to_string(v) + " stands in two lists", "split", "each node once");
      device[idx(v)] = d;
      load(d) += d < accelerators ? g.accelerator[idx(v)] : g.cpu[idx(v)];
      if (d < accelerators) {
        r.bytes[idx(d)] += g.size[idx(v)];
        r.fits = r.fits && g.on_accelerator[idx(v)];
      }
    }
  // by source: the other devices that read it
  std::vector<std::vector<int>> away(idx(g.node_count()));
  for (int v = 0; v < g.node_count(); ++v) {
    if (device[idx(v)] < 0)
      throw error("node " + std::to_string(v) + " stands in no list", "split", "each node once");
    for (int u : g.predecessors(v))
      if (device[idx(u)] != device[idx(v)])
        away[idx(u)].push_back(device[idx(v)]);
  }
  for (int u = 0; u < g.node_count(); ++u) {
    auto& list = away[idx(u)];
    if (list.empty()) continue;
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
    list.push_back(device[idx(u)]);
    for (int d : list)
      if (d < accelerators) load(d) += g.send[idx(u)];
  }
  for (int d = 0; d < all; ++d) r.seconds = std::max(r.seconds, load(d));
  for (double b : r.bytes) r.fits = r.fits && b <= memory;
  return r;
}

}  // namespace tensorpar::peers
