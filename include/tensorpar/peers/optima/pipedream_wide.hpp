// tensorpar/peers/optima/pipedream_wide.hpp - PipeDream's flat optimum on graphs with too many states for
// pairs of them
#pragma once
#include <array>
#include <cmath>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/graph/downsets/downsets.hpp>
#include <tensorpar/peers/profiles/pipedream_price.hpp>
#include <utility>
#include <vector>

namespace tensorpar::peers {

/// Models `downset_objective` over the layers that PipeDream plans for, for one level of machines.
/// Precondition: one source; then the states are the downsets but the empty one. Way w is w + 1 machines; all
/// machines must be used; the copies of later stages are the machines that the memory limit counts. Transfers
/// are no nets: a stage takes the longest of computing, receiving and sending.
class pipedream_objective {
  detail::pipedream_layers const& layers_;
  pipedream_setup const& setup_;
  std::vector<int> layer_;                   // by node of the graph, the layer
  std::vector<std::vector<int>> inputs_, nets_;
  mutable std::vector<double> output_;       // by downset, bytes; negative where not yet known

  double output(graph::downset_lattice const& l, int d) const {
    if (output_.empty()) output_.assign(idx(l.count()), -1.0);
    double& r = output_[idx(d)];
    if (r < 0) {
      std::vector<u64> set(idx(layers_.words), 0);
      l.each_between(0, d, [&](int v) { layers_.put(set, layer_[idx(v)]); });
      r = layers_.state(std::move(set)).output;
    }
    return r;
  }
  pipedream_level const& level() const { return setup_.levels[0]; }
  double transfer(double bytes, int machines) const {
    return setup_.compression > 0 ? 2 * bytes / (level().bandwidth * machines * setup_.compression) : 0.0;
  }

 public:
  pipedream_objective(detail::pipedream_layers const& layers, pipedream_setup const& setup)
      : layers_(layers), setup_(setup) {
    std::vector<int> number(layers.kept.size(), -1);
    for (int v = 0; v < layers.g.node_count(); ++v)
      if (layers.kept[idx(v)]) {
        number[idx(v)] = static_cast<int>(layer_.size());
        layer_.push_back(v);
      }
    for (int v : layer_) {
      inputs_.emplace_back();
      for (int u : layers.g.inputs[idx(v)])
        if (number[idx(u)] >= 0) inputs_.back().push_back(number[idx(u)]);
    }
  }
  /// The graph of those layers, as predecessor lists, and the layer of each node.
  std::vector<std::vector<int>> const& graph() const { return inputs_; }
  std::vector<int> const& layer() const { return layer_; }

  int devices() const { return level().machines; }
  int copies() const { return level().machines; }
  bool exact_devices() const { return true; }
  int ways() const { return setup_.straight ? 1 : level().machines; }
  graph::stage_way way(int w) const { return {w + 1, w + 1, 0, w + 1.0}; }
  int tables() const { return 1; }
  double work(int, int v) const {
    auto const i = idx(layer_[idx(v)]);
    return layers_.g.forward[i] + layers_.g.backward[i];
  }
  std::vector<std::vector<int>> const& nets() const { return nets_; }
  graph::net_charge charge(int, int) const { return {}; }
  int measures() const { return 3; }
  double measure(int k, int v) const {
    auto const i = idx(layer_[idx(v)]);
    return k == 0 ? layers_.g.parameter[i] : k == 1 ? layers_.g.activation[i] : work(0, v);
  }
  bool fits(double const* low, double const* high, int w, int later) const {
    return setup_.memory <= 0 ||
           std::ceil(static_cast<double>(later) / (w + 1)) * (high[0] - low[0] + high[1] - low[1]) <=
               setup_.memory;
  }
  /// Computing and synchronising takes no longer than the target (`pipedream_whole` is linear), and what is
  /// kept fits.
  std::array<graph::measure_limit, 2> limits(int w, int later, double target) const {
    auto const whole = [&](double span, double parameters) {
      return detail::pipedream_whole(level(), 1, span, parameters, w + 1);
    };
    graph::measure_limit const time{2, 0, whole(1, 0), whole(0, 1), target * (1 + 1e-9)};
    double const times = std::ceil(static_cast<double>(later) / (w + 1));
    return {time, setup_.memory > 0 ? graph::measure_limit{0, 1, times, times, setup_.memory * (1 + 1e-9)}
                                    : graph::measure_limit{}};
  }
  bool may_start(graph::downset_lattice const& l, int d, int w, double target) const {
    return setup_.compression <= 0 || l.parent(d) < 0 || transfer(output(l, d), w + 1) <= target;
  }
  double seconds(graph::downset_stage const& s, int w, int later) const {
    if (!fits(s.low, s.high, w, later)) return infinity;
    double const time = detail::pipedream_whole(level(), 1, s.work, s.sum(0), w + 1);
    if (s.lattice.parent(s.from) < 0 || setup_.compression <= 0) return time;
    // the last stage sends nothing
    double const sent = later == 0 ? 0.0 : transfer(output(s.lattice, s.to), w + 1);
    return std::max({time, transfer(output(s.lattice, s.from), w + 1), sent});
  }
};

}  // namespace tensorpar::peers
