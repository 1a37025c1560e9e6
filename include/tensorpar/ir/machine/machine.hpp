// tensorpar/ir/machine/machine.hpp - a cluster: devices of one or several kinds, links in levels
#pragma once
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <vector>

namespace tensorpar {

/// One kind of device. Rates are peaks; a cost model applies its own efficiencies.
struct device_kind {
  std::string name;
  double flops = 0;             // FLOP/s in the scalar that is trained with
  double memory_bandwidth = 0;  // bytes/s
  i64 memory = 0;               // bytes
  double launch = 0;            // seconds an operator costs however small it is
  friend bool operator==(device_kind const&, device_kind const&) = default;
};

/// One level of the network: any two devices within the same group of `group` consecutive devices reach each
/// other with this latency and bandwidth, unless an inner level joins them. Levels stand from the innermost
/// to the outermost; the last one's group holds all devices.
struct link_level {
  std::string name;
  i64 group = 1;
  double latency = 0;           // seconds (alpha)
  double bandwidth = 0;         // bytes/s of one device, one direction (1 / beta)
  friend bool operator==(link_level const&, link_level const&) = default;
};

/// A cluster. Devices are numbered 0 .. n-1, node by node. Models: a regular value.
struct machine {
  std::string name;
  std::vector<device_kind> kinds;
  std::vector<int> device;      // device -> index into kinds
  std::vector<link_level> links;
  friend bool operator==(machine const&, machine const&) = default;

  int size() const { return static_cast<int>(device.size()); }
  device_kind const& kind_of(int d) const {
    return kinds[idx(device[idx(d)])];
  }
  /// Bytes of every device.
  std::vector<i64> memories() const {
    std::vector<i64> r(device.size());
    for (int d = 0; d < size(); ++d) r[idx(d)] = kind_of(d).memory;
    return r;
  }
  /// The level that joins two different devices. O(levels).
  link_level const& between(int a, int b) const {
    for (link_level const& l : links) if (a / l.group == b / l.group) return l;
    return links.back();
  }
  bool uniform() const { for (int k : device) if (k != device.front()) return false; return true; }
  u64 hash() const {
    core::hasher h;
    for (device_kind const& k : kinds) h.add(k.flops).add(k.memory_bandwidth).add(k.memory).add(k.launch);
    for (int d : device) h.add(d);
    for (link_level const& l : links) h.add(l.group).add(l.latency).add(l.bandwidth);
    return h.value();
  }
};

/// n equal devices in nodes of `per_node`: fast links inside a node, slow ones between nodes; a single node
/// needs no `outer`, and nodes of one device need no `inner`.
/// Throws `error` unless per_node divides n, and where several nodes have no link between them.
inline machine make_cluster(std::string name, device_kind const& kind, int n, int per_node, link_level inner,
                            link_level outer) {
  if (n < 1 || per_node < 1 || n % per_node)
    throw error("a cluster of " + std::to_string(n) + " devices in nodes of " + std::to_string(per_node),
                name, "a positive multiple of the node size");
  if (n > per_node && outer == link_level{})
    throw error("no link between " + std::to_string(n / per_node) + " nodes of " + std::to_string(per_node),
                name, "an outer link with latency and bandwidth");
  machine m{std::move(name), {kind}, std::vector<int>(idx(n), 0), {}};
  link_level none;
  none.group = inner.group = per_node;
  if (per_node > 1 || inner != none) m.links.push_back(std::move(inner));
  if (n > per_node) { outer.group = n; m.links.push_back(std::move(outer)); }
  return m;
}

}  // namespace tensorpar
