// tensorpar/peers/profiles/pipedream_price.hpp - PipeDream's price of a pipeline: time per mini-batch of its
// slowest stage, by level
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <tensorpar/peers/profiles/pipedream_states.hpp>
#include <vector>

namespace tensorpar::peers {

/// One level of machines, innermost first: how many, and bytes per second between them.
struct pipedream_level {
  int machines = 1;
  double bandwidth = 1;
};
/// What the peer's optimiser was asked. `compression` 0: transfers of activations cost nothing (the peer's
/// default); 1: they cost what they cost; `memory` 0: no limit. `straight`: one machine per stage.
struct pipedream_setup {
  std::vector<pipedream_level> levels;
  double compression = 0, memory = 0;
  bool straight = false;
};
/// A stage on `machines` of a level's machines; at an inner level within one machine of the next. `inner` is
/// empty at the innermost level.
struct pipedream_stage {
  std::vector<int> nodes;
  int machines = 1;
  std::vector<pipedream_stage> inner;
};

namespace detail {

/// Bytes of all machines but this stage's and those before it, per machine of the stage: what must be kept.
inline bool pipedream_fits(pipedream_setup const& s, int level_machines, int used, int here, double bytes) {
  return s.memory <= 0 || std::ceil(static_cast<double>(level_machines - used) / here) * bytes <= s.memory;
}
/// A stage that is the whole span of its level. `span` is what one machine of this level needs for it;
/// `within` the machines inside one.
inline double pipedream_whole(pipedream_level const& l, int within, double span, double parameters,
                              int machines) {
  return (span + 4.0 * (machines - 1) * parameters / (l.bandwidth * machines) / within) / machines;
}
/// A stage behind others: computation and synchronisation over its machines, or a transfer if that takes
/// longer. The synchronisation is not divided by the machines within one, unlike above: so does the peer.
inline double pipedream_last(pipedream_setup const& s, pipedream_level const& l, double span,
                             double parameters, int machines, double input, double output) {
  double const time = (span + 4.0 * (machines - 1) * parameters / (l.bandwidth * machines)) / machines;
  if (s.compression <= 0) return time;
  return std::max({time, 2 * input / (l.bandwidth * machines * s.compression),
                   2 * output / (l.bandwidth * machines * s.compression)});
}

struct pipedream_pricing {
  pipedream_layers const& layers;
  pipedream_setup const& setup;
  std::size_t all_nodes;  // of the last state, whose output nobody receives
  bool fits = true;

  /// Time of consecutive stages at a level, where `before` holds the layers in front of them.
  double operator()(std::vector<pipedream_stage> const& stages, std::size_t level, std::vector<int> before) {
    if (stages.empty()) throw error("no stage", "pipeline", "at least one at each level");
    pipedream_level const& l = setup.levels[level];
    int const within = level == 0 ? 1 : setup.levels[level - 1].machines;
    double time = 0;
    int used = 0;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      pipedream_stage const& s = stages[i];
      if (s.machines < 1) throw error("a stage without machines", "pipeline", "at least one");
      if (level > 0 && s.inner.empty())
        throw error("a stage without an inner pipeline", "pipeline", "one at each inner level");
      for (int v : s.nodes)
        if (v < 0 || v >= layers.g.node_count())
          throw error("layer " + std::to_string(v), "pipeline",
                      "layers 0 to " + std::to_string(layers.g.node_count() - 1));
      pipedream_state const from = before.empty() ? pipedream_state{} : pipedream_prefix(layers, before);
      std::vector<int> const start = before;
      before.insert(before.end(), s.nodes.begin(), s.nodes.end());
      pipedream_state const to = pipedream_prefix(layers, before);
      used += s.machines;
      double const span = level == 0 ? to.seconds - from.seconds : (*this)(s.inner, level - 1, start);
      double const parameters = to.parameters - from.parameters,
                   bytes = to.activations - from.activations + parameters;
      fits = fits && pipedream_fits(setup, l.machines, used, s.machines, bytes);
      double const output = before.size() == all_nodes ? 0.0 : to.output;
      time = std::max(time,
                      i == 0 ? pipedream_whole(l, within, span, parameters, s.machines)
                             : pipedream_last(setup, l, span, parameters, s.machines, from.output, output));
    }
    fits = fits && used == l.machines;
    return time;
  }
};

}  // namespace detail

/// What a pipeline costs: seconds per profiled mini-batch of its slowest stage, and whether it keeps the
/// memory limit and uses exactly the machines of each level.
struct pipedream_price {
  double seconds = 0;
  bool fits = true;
};

/// The objective of PipeDream's hierarchical optimiser. Take a stage on r of a level's machines, with D the
/// difference of the states at its ends. It takes [time of D + 4 (r-1) parameters of D / (BW r)] / r. Behind
/// the first stage it takes at least 2 * output / (BW r R) of either end. At the outer levels the time of D
/// is that of the inner level's pipeline. `stages`: of the outermost level, first one first. Throws `error`
/// for stages that do not follow each other, or levels that do not match. O(stages * V degree).
inline pipedream_price price_pipedream(pipedream_profile const& g, std::vector<pipedream_stage> const& stages,
                                       pipedream_setup const& setup) {
  if (setup.levels.empty()) throw error("no level of machines", "setup", "at least one");
  detail::pipedream_layers const layers(g);
  std::size_t nodes = 0;
  for (pipedream_stage const& s : stages) nodes += s.nodes.size();
  detail::pipedream_pricing price{layers, setup, nodes};
  pipedream_price r;
  r.seconds = price(stages, setup.levels.size() - 1, {});
  r.fits = price.fits;
  return r;
}

}  // namespace tensorpar::peers
