// tensorpar/peers/optima/max_load.hpp - dnn-partitioning's optimum in its own space: contiguous splits with
// the least largest load
#pragma once
#include <array>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/graph/downsets/downsets.hpp>
#include <tensorpar/peers/optima/max_load_space.hpp>
#include <tensorpar/peers/profiles/max_load.hpp>
#include <utility>
#include <vector>

namespace tensorpar::peers {

/// The devices that a split may use; bytes of an accelerator.
struct max_load_limits {
  int accelerators = 1, cpus = 0;
  double memory = 0;
};

/// Models `downset_objective` over the groups of `max_load_space`: way 0 is an accelerator, way 1 a CPU (a
/// copy). The nets are the profile's results with their readers, in either pass: a result that crosses a
/// stage's border is charged once per stage. Colours whose forward parts are contiguous may have backward
/// parts that are not: a net does not care in which direction it is cut.
class max_load_objective {
  max_load_limits limits_;
  std::vector<double> accelerator_, cpu_, bytes_;
  std::vector<std::vector<int>> nets_;
  std::vector<double> charge_;

 public:
  max_load_objective(dnn_partitioning_profile const& g, max_load_space const& space,
                     max_load_limits const& limits)
      : limits_(limits), accelerator_(space.nodes.size(), 0.0), cpu_(accelerator_), bytes_(accelerator_) {
        std::vector<std::vector<int>> readers(idx(g.node_count()));
    for (int v = 0; v < g.node_count(); ++v) {
      auto const k = idx(space.group[idx(v)]);
      accelerator_[k] += g.on_accelerator[idx(v)] ? g.accelerator[idx(v)] : infinity;
      cpu_[k] += g.cpu[idx(v)];
      bytes_[k] += g.size[idx(v)];
      for (int u : g.predecessors(v)) readers[idx(u)].push_back(space.group[idx(v)]);
    }
    std::map<std::vector<int>, double> alike;  // equal sets of groups are cut together
    for (int u = 0; u < g.node_count(); ++u) {
      auto& net = readers[idx(u)];
      net.push_back(space.group[idx(u)]);
      std::sort(net.begin(), net.end());
      net.erase(std::unique(net.begin(), net.end()), net.end());
      if (net.size() > 1 && g.send[idx(u)] > 0) alike[net] += g.send[idx(u)];
    }
    for (auto& [net, cost] : alike) {
      nets_.push_back(net);
      charge_.push_back(cost);
    }
  }

  int ways() const { return limits_.cpus > 0 ? 2 : 1; }
  graph::stage_way way(int w) const {
    return w == 0 ? graph::stage_way{1, 0, 0, 1} : graph::stage_way{0, 1, 1, 1};
  }
  int tables() const { return ways(); }
  double work(int t, int v) const { return (t == 0 ? accelerator_ : cpu_)[idx(v)]; }
  std::vector<std::vector<int>> const& nets() const { return nets_; }
  graph::net_charge charge(int t, int h) const {
    double const c = t == 0 ? charge_[idx(h)] : 0.0;
    return {c, c, c};
  }
  int measures() const { return 1; }
  double measure(int, int v) const { return bytes_[idx(v)]; }
  double seconds(graph::downset_stage const& s, int w, int) const {
    return w == 0 && s.sum(0) > limits_.memory ? infinity : s.work + s.boundary;
  }
  std::array<graph::measure_limit, 1> limits(int w, int, double) const {
    if (w != 0) return {};
    return {{{0, 0, 1, 0, limits_.memory * (1 + 1e-9)}}};
  }
  int devices() const { return limits_.accelerators; }
  int copies() const { return limits_.cpus; }
};

/// An optimal split, first stage first among accelerators and CPUs, or the answer that none fits.
struct max_load_optimum {
  bool feasible = false;
  double seconds = infinity;  ///< as `price_max_load` prices the split
  device_split split;
  graph::downset_pipeline pipeline;          ///< in groups of the space; way 1 is a CPU
};

/// dnn-partitioning's exact optimum (Tarnawski et al. 2020, section 5: dynamic programming over ideals):
/// forward parts of devices are contiguous, colours stay together, accelerators respect the memory, CPUs pay
/// no communication. Complexity: as `min_bottleneck`.
inline max_load_optimum min_max_load(dnn_partitioning_profile const& g, max_load_limits const& limits,
                                       int max_downsets = 400'000) {
  max_load_space const space = space_of(g);
  max_load_optimum r;
  r.pipeline = graph::min_bottleneck(space, max_load_objective(g, space, limits), max_downsets);
  r.feasible = r.pipeline.feasible;
  if (!r.feasible) return r;
  for (graph::downset_part const& s : r.pipeline.stages) {
    auto& list = (s.way == 0 ? r.split.accelerators : r.split.cpus).emplace_back();
    for (int k : s.nodes)
      list.insert(list.end(), space.nodes[idx(k)].begin(), space.nodes[idx(k)].end());
    std::sort(list.begin(), list.end());
  }
  r.seconds = price_max_load(g, r.split, limits.memory).seconds;
  return r;
}

}  // namespace tensorpar::peers
