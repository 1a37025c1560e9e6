// tensorpar/peers/optima/pipedream.hpp - PipeDream's optimum in its own space: chains of states, machines in
// levels
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/peers/optima/pipedream_wide.hpp>
#include <vector>

namespace tensorpar::peers {

/// An optimal pipeline of the outermost level, or the answer that none fits.
struct pipedream_optimum {
  bool feasible = false;
  double seconds = infinity;
  std::vector<pipedream_stage> stages;
  int states = 0;
};

namespace detail {

/// Dynamic programming over states and machines, level by level (Narayanan et al. 2019, section 3.1).
class pipedream_search {
  struct cell {
    double seconds = infinity;
    // the last stage starts at state `split` (-1: it is the only one) and has so many machines
    int split = -1, machines = 0;
  };
  pipedream_setup const& setup_;
  std::vector<pipedream_state> states_;
  int n_ = 0;
  std::vector<std::vector<int>> below_;  // by state: the states it contains, ascending
  // by level: seconds of the span behind a state (0: from the start, i + 1: behind state i) up to another, in
  // one machine of the next level
  std::vector<std::vector<double>> span_;

  std::size_t at(int from, int to) const { return idx(from) * idx(n_) + idx(to); }
  double compute(int from, int to) const {
    return states_[idx(to)].seconds - (from ? states_[idx(from - 1)].seconds : 0.0);
  }
  double parameters(int from, int to) const {
    return states_[idx(to)].parameters - (from ? states_[idx(from - 1)].parameters : 0.0);
  }
  double bytes(int from, int to) const {
    return states_[idx(to)].activations - (from ? states_[idx(from - 1)].activations : 0.0) +
           parameters(from, to);
  }

  /// All spans that start at `from`, at this level: row `to`, column machines - 1. O(contained pairs *
  /// machines^2).
  std::vector<cell> level(std::size_t depth, int from) const {
    pipedream_level const& l = setup_.levels[depth];
    int const most = l.machines, within = depth == 0 ? 1 : setup_.levels[depth - 1].machines;
    std::vector<cell> r(idx(n_) * idx(most));
    std::vector<char> inside(idx(n_), from == 0);
    if (from > 0)
      for (int j = from; j < n_; ++j)
        inside[idx(j)] = pipedream_layers::within(states_[idx(from - 1)].layers, states_[idx(j)].layers);
    if (from > 0) inside[idx(from - 1)] = 0;
    std::vector<double> last(idx(most));
    for (int j = 0; j < n_; ++j) {
      if (!inside[idx(j)]) continue;
      cell* const mine = r.data() + idx(j) * idx(most);
      double const whole = span_[depth][at(from, j)], p = parameters(from, j), b = bytes(from, j);
      for (int m = 1; m <= (setup_.straight ? 1 : most); ++m)
        if (whole < infinity && pipedream_fits(setup_, most, m, m, b))
          mine[m - 1] = {pipedream_whole(l, within, whole, p, m), -1, m};
      double const output = j == n_ - 1 ? 0.0 : states_[idx(j)].output;
      for (int k : below_[idx(j)]) {
        if (!inside[idx(k)]) continue;
        double const span = span_[depth][at(k + 1, j)];
        if (!(span < infinity)) continue;
        double const q = parameters(k + 1, j), kept = bytes(k + 1, j);
        for (int m = 1; m < most; ++m)
          last[idx(m)] = pipedream_last(setup_, l, span, q, m, states_[idx(k)].output, output);
        cell const* const front = r.data() + idx(k) * idx(most);
        for (int m = 2; m <= most; ++m)
          for (int here = 1; here <= (setup_.straight ? 1 : m - 1); ++here) {
            double const t = std::max(front[m - here - 1].seconds, last[idx(here)]);
            if (t < mine[m - 1].seconds && pipedream_fits(setup_, most, m, here, kept))
              mine[m - 1] = {t, k, here};
          }
      }
    }
    return r;
  }

  std::vector<int> layers(int from, int to) const {
    std::vector<int> r;
    auto const in = [&](int state, int v) { return pipedream_layers::has(states_[idx(state)].layers, v); };
    for (int v = 0, n = static_cast<int>(states_[idx(to)].layers.size()) * 64; v < n; ++v)
      if (in(to, v) && !(from && in(from - 1, v))) r.push_back(v);
    return r;
  }

  std::vector<pipedream_stage> unfold(std::size_t depth, int from, int to) const {
    std::vector<cell> const table = level(depth, from);
    std::vector<pipedream_stage> r;
    int m = setup_.levels[depth].machines;
    for (int j = to; j >= 0;) {
      cell const& c = table[idx(j) * idx(setup_.levels[depth].machines) + idx(m - 1)];
      int const start = c.split < 0 ? from : c.split + 1;
      r.push_back({layers(start, j), c.machines,
                   depth ? unfold(depth - 1, start, j) : std::vector<pipedream_stage>{}});
      m -= c.machines;
      j = c.split;
    }
    std::reverse(r.begin(), r.end());
    return r;
  }

 public:
  pipedream_search(pipedream_profile const& g, pipedream_setup const& setup, int max_states)
      : setup_(setup),
        states_(pipedream_states(g, max_states)),
        n_(static_cast<int>(states_.size())),
        below_(idx(n_)) {
    for (int j = 0; j < n_; ++j)
      for (int i = 0; i < j; ++i)
        if (pipedream_layers::within(states_[idx(i)].layers, states_[idx(j)].layers))
          below_[idx(j)].push_back(i);
  }

  pipedream_optimum operator()() {
    std::vector<double> first(idx(n_ + 1) * idx(n_), infinity);
    for (int j = 0; j < n_; ++j) {
      first[at(0, j)] = compute(0, j);
      for (int i : below_[idx(j)]) first[at(i + 1, j)] = compute(i + 1, j);
    }
    span_.push_back(std::move(first));
    for (std::size_t depth = 0; depth + 1 < setup_.levels.size(); ++depth) {
      int const most = setup_.levels[depth].machines;
      std::vector<double> next(idx(n_ + 1) * idx(n_), infinity);
      for (int i = 0; i < n_; ++i) {
        std::vector<cell> const table = level(depth, i);
        for (int j = 0; j < n_; ++j) next[at(i, j)] = table[idx(j) * idx(most) + idx(most - 1)].seconds;
      }
      span_.push_back(std::move(next));
    }
    std::size_t const top = setup_.levels.size() - 1;
    int const most = setup_.levels[top].machines;
    pipedream_optimum r;
    r.states = n_;
    r.seconds = level(top, 0)[idx(n_ - 1) * idx(most) + idx(most - 1)].seconds;
    r.feasible = r.seconds < infinity;
    if (r.feasible) r.stages = unfold(top, 0, n_ - 1);
    return r;
  }
};

}  // namespace detail

/// PipeDream's exact optimum: over chains of states (see `pipedream_states`), stages on any number of
/// machines that add up to all of them, and at an outer level every span as the inner level's best pipeline.
/// The single level is the flat topology.
/// Complexity: S states, M machines: O(S^2 M^2) at the outermost level, O(S^3 M^2) below it, of which only
/// nested states are visited; memory O(S^2) per level. In the flat topology, graphs with one source and more
/// than `table_up_to` states are searched by `min_bottleneck` instead, up to 400,000 states. Throws `error`
/// as `pipedream_states`, and if there is no level or one without machines or bandwidth.
inline pipedream_optimum min_pipedream(pipedream_profile const& g, pipedream_setup const& setup,
                                         int max_states = 5'000, int table_up_to = 2'000) {
  if (setup.levels.empty()) throw error("no level of machines", "setup", "at least one");
  for (pipedream_level const& l : setup.levels)
    if (l.machines < 1 || !(l.bandwidth > 0))
      throw error("a level without machines or bandwidth", "setup", "at least one machine");
  if (setup.levels.size() > 1) return detail::pipedream_search(g, setup, max_states)();
  detail::pipedream_layers const layers(g);
  pipedream_objective const o(layers, setup);
  if (graph::sources(o.graph()).size() != 1) return detail::pipedream_search(g, setup, max_states)();
  if (graph::downset_lattice(o.graph(), 400'000).count() - 1 <= table_up_to)
    return detail::pipedream_search(g, setup, max_states)();
  graph::downset_pipeline const best = graph::min_bottleneck(o.graph(), o);
  pipedream_optimum r{best.feasible, best.seconds, {}, best.downsets - 1};
  for (graph::downset_part const& s : best.stages) {
    r.stages.push_back({{}, s.way + 1, {}});
    for (int v : s.nodes) r.stages.back().nodes.push_back(o.layer()[idx(v)]);
  }
  return r;
}

}  // namespace tensorpar::peers
