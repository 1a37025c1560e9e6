// examples/own_profiler.cpp - a trainer's own profile as a graph, its own price of a stage, and the best pipeline of both
#include "standard_output.hpp"
#include <cstdio>
#include <limits>
#include <string>
#include <tensorpar/graph/downsets/downsets.hpp>
#include <tensorpar/peers/profiles/pipedream.hpp>
#include <vector>

// [quoted: graph]
// What a trainer measured: layers in its own structure. Two free functions next to it make it a `topology`.
namespace trainer {
struct layer {
  std::string name;
  std::vector<int> inputs;
  double milliseconds, output_mb, weights_mb;
};
struct profile {
  std::vector<layer> layers;
};
int node_count(profile const& p) { return static_cast<int>(p.layers.size()); }
std::vector<int> const& predecessors(profile const& p, int v) { return p.layers[static_cast<std::size_t>(v)].inputs; }
}  // namespace trainer
// [end]

// [quoted: price]
/// The trainer's price of a stage on d devices: (compute + transfers) / d, and weights are synchronised at 1 GB/s. An output goes to each
/// stage that reads it once, at 10 GB/s. Weights and outputs must fit into 400 MB of every device.
struct trainer_price {
  trainer::profile const& p;
  std::vector<std::vector<int>> readers;  // by layer: it and all that read it

  explicit trainer_price(trainer::profile const& measured) : p(measured) {
    for (int v = 0; v < node_count(p); ++v) readers.push_back({v});
    for (int v = 0; v < node_count(p); ++v)
      for (int u : predecessors(p, v)) readers[static_cast<std::size_t>(u)].push_back(v);
  }
  trainer::layer const& at(int v) const { return p.layers[static_cast<std::size_t>(v)]; }

  int devices() const { return 4; }
  int copies() const { return 4; }
  int ways() const { return 4; }                                                   // 1 to 4 devices
  tensorpar::graph::stage_way way(int w) const { return {w + 1, w + 1, 0, w + 1.0}; }     // devices, copies, table of costs, share
  int tables() const { return 1; }
  double work(int, int v) const { return at(v).milliseconds; }
  std::vector<std::vector<int>> const& nets() const { return readers; }
  tensorpar::graph::net_charge charge(int, int v) const { return {at(v).output_mb / 10, at(v).output_mb / 10, at(v).output_mb / 10}; }
  int measures() const { return 2; }
  double measure(int k, int v) const { return k == 0 ? at(v).weights_mb : at(v).output_mb; }
  double seconds(tensorpar::graph::downset_stage const& s, int w, int /*copies of later stages*/) const {
    double const d = w + 1.0, weights = s.sum(0), outputs = s.sum(1);
    if (weights + outputs / d > 400) return std::numeric_limits<double>::infinity();
    return (s.work + s.boundary) / d + 2 * weights * (d - 1) / d;
  }
};
static_assert(tensorpar::graph::downset_objective<trainer_price>);
// [end]

int main() {
  // [quoted: plan]
  trainer::profile const measured{{{"image", {}, 30, 40, 2},
                                   {"text", {}, 20, 10, 90},
                                   {"image encoder", {0}, 60, 40, 8},
                                   {"text encoder", {1}, 50, 20, 60},
                                   {"join", {2, 3}, 10, 20, 4},
                                   {"head", {4}, 30, 1, 40}}};
  static_assert(tensorpar::graph::topology<trainer::profile>);
  auto const best = tensorpar::graph::min_bottleneck(measured, trainer_price(measured));
  std::printf("%.3f ms per batch\n", best.seconds);
  for (auto const& stage : best.stages) {
    std::printf("%d device(s), %.3f ms:", stage.way + 1, stage.seconds);
    for (int v : stage.nodes) std::printf(" %s", measured.layers[static_cast<std::size_t>(v)].name.c_str());
    std::printf("\n");
  }
  // [end]

  // [quoted: file]
  // A profile that another tool wrote: read into a graph that models `topology`, or one error that says file, line and column.
  auto const file = tensorpar::peers::parse_pipedream(
      "a -- Linear(4, 4) -- forward_compute_time=1.0, backward_compute_time=2.0, activation_size=16.0, parameter_size=64.0\n"
      "b -- ReLU() -- forward_compute_time=0.5, backward_compute_time=0.5, activation_size=16.0, parameter_size=0.0\n"
      "\ta -- b\n",
      "mine.txt");
  std::printf("%d layers, %.1f ms forward\n", file.node_count(), 1000 * (file.forward[0] + file.forward[1]));
  // [end]
  double total = 0;
  for (auto const& l : measured.layers) total += l.milliseconds;
  return best.feasible && best.stages.size() > 1 && best.seconds < total && best.seconds >= total / 4 ? 0 : 1;
}
