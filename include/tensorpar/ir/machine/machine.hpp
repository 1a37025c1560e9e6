// tensorpar/ir/machine/machine.hpp - a cluster: devices of one or several kinds, links in levels
#pragma once
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <vector>

namespace tensorpar {

/// What matrix products compute with. Numbers of f32 and tf32 take four bytes, numbers of bf16 two
/// (ir/mixed_precision.hpp). fp8: as bf16, but products with weights run at the rate of eight bits; such
/// plans are priced, and no executor takes them.
enum class precision : int { f32, tf32, bf16, fp8 };
inline constexpr int precisions = 4;

/// FLOP/s of matrix products by number format: dense peaks (figures with sparsity are twice as high). 0:
/// none, or none is published.
struct format_rates {
  double f32 = 0, tf32 = 0, bf16 = 0, fp8 = 0;
  double in(precision p) const {
    double const all[precisions] = {f32, tf32, bf16, fp8};
    return all[static_cast<int>(p)];
  }
  friend bool operator==(format_rates const&, format_rates const&) = default;
};

/// What share of its peaks a kind reaches. 0: not known; the cost model's own share counts.
struct kernel_efficiency {
  double products = 0;          // of FLOP/s, in large matrix products
  double attention = 0;         // of FLOP/s, in fused attention
  double memory = 0;            // of bytes/s
  // a product of so many results, or of sums of so many terms, runs at half of that rate
  double half_results = 0, half_terms = 0;
  // of its speed in computing, while a collective runs on it: its kernels take multiprocessors and bandwidth
  double while_communicating = 0;
  double sustained = 0;         // of all these, in hours of training instead of one kernel's benchmark
  friend bool operator==(kernel_efficiency const&, kernel_efficiency const&) = default;
};

/// One kind of device. Rates are peaks; a cost model applies its own efficiencies.
struct device_kind {
  std::string name;
  double flops = 0;             // FLOP/s in the format that is trained in (ir/machine/precision.hpp)
  double memory_bandwidth = 0;  // bytes/s
  i64 memory = 0;               // bytes
  double launch = 0;            // seconds an operator costs however small it is
  format_rates rates = {};      // what `flops` may be; all 0: `flops` counts in every format
  kernel_efficiency efficiency = {};
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
  // a device communicates over links of one level beside what it does over others, as with a stream for each
  // (Megatron-LM, a communicator per kind of parallelism); else in one lane, one operation after another
  bool lane_per_link = false;
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
  /// The level that joins two different devices, and hence all between them: its place in `links`.
  /// O(levels).
  int level_joining(int a, int b) const {
    int l = 0;
    while (l + 1 < static_cast<int>(links.size()) && a / links[idx(l)].group != b / links[idx(l)].group) ++l;
    return l;
  }
  link_level const& between(int a, int b) const { return links[idx(level_joining(a, b))]; }
  /// In how many lanes a device communicates.
  int communication_lanes() const {
    return lane_per_link && !links.empty() ? static_cast<int>(links.size()) : 1;
  }
  bool uniform() const { for (int k : device) if (k != device.front()) return false; return true; }
  u64 hash() const {
    core::hasher h;
    for (device_kind const& k : kinds) {
      h.add(k.flops).add(k.memory_bandwidth).add(k.memory).add(k.launch);
      if (format_rates const& r = k.rates; r != format_rates())
        h.add(r.f32).add(r.tf32).add(r.bf16).add(r.fp8);
      if (kernel_efficiency const& e = k.efficiency; e != kernel_efficiency())
        h.add(e.products).add(e.attention).add(e.memory).add(e.half_results).add(e.half_terms);
      if (kernel_efficiency const& e = k.efficiency; e.while_communicating != 0 || e.sustained != 0)
        h.add(e.while_communicating).add(e.sustained);
    }
    for (int d : device) h.add(d);
    for (link_level const& l : links) h.add(l.group).add(l.latency).add(l.bandwidth);
    if (lane_per_link) h.add(std::string_view("lane per link"));
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
