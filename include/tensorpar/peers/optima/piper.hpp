// tensorpar/peers/optima/piper.hpp - Piper's optimum in its own space: downsets, data and tensor parallelism,
// recomputation
#pragma once
#include <algorithm>
#include <array>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/graph/downsets/downsets.hpp>
#include <tensorpar/peers/profiles/configurations.hpp>
#include <tensorpar/peers/profiles/piper_price.hpp>
#include <utility>
#include <vector>

namespace tensorpar::peers {

/// Models `downset_objective` over the nodes of a Piper profile. A way is a pair (d, t) of data-parallel
/// copies d, a divisor of N, and a tensor-parallel degree t: d * t devices, d copies, the costs of degree t
/// divided by d. Nets are the edges, charged at both ends. A stage's work is that of the fastest
/// configurations; where they do not fit, swaps to the others are chosen by `min_swaps`, exactly, where
/// Piper chooses greedily.
class piper_objective {
  struct node_choice_of {
    double fast = infinity, per_sample = 0, fixed = 0;          // the fastest configuration
    double other = infinity, other_per_sample = 0, other_fixed = 0;
    int first = 0, second = -1;                                          // their indices
  };
  piper_setup setup_;
  std::vector<int> degrees_;
  std::vector<graph::stage_way> ways_;
  std::vector<std::vector<node_choice_of>> nodes_;      // by table and node
  std::vector<std::vector<double>> parameters_;
  std::vector<std::vector<graph::net_charge>> charges_;
  std::vector<std::vector<int>> nets_;
  // Measures of a table: parameters, the fastest configurations' per-sample and fixed bytes, and for each
  // number of micro-batches in flight on a mesh the least bytes and, for some prices of a byte, what swaps at
  // that price would gain.
  static constexpr int prices = 8;
  std::vector<int> mesh_;
  std::vector<std::vector<double>> price_;  // by table
  mutable i64 inexact_ = 0;

  int table_measures() const { return 3 + static_cast<int>(mesh_.size()) * (1 + prices); }
  /// Between two mesh points the sums of the measures are bounded by the line through them; `part` is how far
  /// the second one counts.
  struct mesh_place {
    int at;
    double part;
  };
  mesh_place place(int in_flight) const {
    int const i =
        static_cast<int>(std::upper_bound(mesh_.begin(), mesh_.end(), in_flight) - mesh_.begin()) - 1;
    if (i + 1 >= static_cast<int>(mesh_.size())) return {i, 0};
    return {i, static_cast<double>(in_flight - mesh_[idx(i)]) /
                   (mesh_[idx(i + 1)] - mesh_[idx(i)])};
  }
  int first_of(int table, mesh_place p) const { return table * table_measures() + 3 + p.at * (1 + prices); }
  double on_mesh(double const* low, double const* high, int table, mesh_place p, int k) const {
    int const one = first_of(table, p) + k, two = p.part > 0 ? one + 1 + prices : one;
    return (high[one] - low[one]) * (1 - p.part) + (high[two] - low[two]) * p.part;
  }
  void make_prices() {
    for (std::size_t t = 0; t < nodes_.size(); ++t) {
      std::vector<double> all;
      for (int y : mesh_)
        for (int v = 0; v < static_cast<int>(nodes_[t].size()); ++v)
          if (memory_swap const x = swap_of(static_cast<int>(t), v, y); x.saved > 0)
            all.push_back(x.extra / x.saved);
      std::sort(all.begin(), all.end());
      price_.emplace_back();
      for (std::size_t i = 0; i < prices; ++i)
        price_.back().push_back(all.empty() ? 0.0 : all[(2 * i + 1) * all.size() / (2 * prices)]);
    }
  }

  void add_degree(piper_profile const& g, int degree) {
        degrees_.push_back(degree);
    auto& nodes = nodes_.emplace_back();
    auto& parameters = parameters_.emplace_back();
    for (int v = 0; v < g.node_count(); ++v) {
      node_choice_of& x = nodes.emplace_back();
      parameters.push_back(0);
      piper_degree const* const at = detail::piper_find_degree(g, v, degree);
      if (!at) continue;
      auto const& ways = at->ways;
      int const fast = ways.size() > 1 && ways[1].seconds < ways[0].seconds ? 1 : 0;
      x = {ways[idx(fast)].seconds,
           ways[idx(fast)].per_sample,
           ways[idx(fast)].fixed,
           infinity,
           0,
           0,
           fast,
           -1};
      parameters.back() = ways[idx(fast)].parameters;
      if (ways.size() < 2) continue;
      piper_configuration const &a = ways[idx(fast)], &b = ways[idx(1 - fast)];
      if (a.sync_in != b.sync_in || a.sync_out != b.sync_out || a.parameters != b.parameters)
        throw error("the configurations of node " + std::to_string(g.id[idx(v)]) +
                        " differ in what they send",
                    "Piper profile",
                    "configurations of a degree that differ in time and memory only");
      x.other = b.seconds, x.other_per_sample = b.per_sample, x.other_fixed = b.fixed, x.second = 1 - fast;
    }
    auto& charges = charges_.emplace_back();
    for (piper_edge const& e : g.edges)
      charges.push_back({2 * e.bytes / setup_.bandwidth, 2 * e.bytes / setup_.bandwidth, 0});
    for (int v = 0; v < g.node_count(); ++v) {
      piper_degree const* const at = detail::piper_find_degree(g, v, degree);
      if (!at) continue;
      auto const &in = g.in[idx(v)], &out = g.out[idx(v)];
      for (std::size_t k = 0; k < in.size(); ++k)
        charges[idx(in[k])].in += 2 * at->ways[0].sync_in[k] / setup_.bandwidth;
      for (std::size_t k = 0; k < out.size(); ++k)
        charges[idx(out[k])].out += 2 * at->ways[0].sync_out[k] / setup_.bandwidth;
    }
  }

  /// What a node of table t saves by its other configuration with `in_flight` micro-batches; saved <= 0:
  /// nothing.
  memory_swap swap_of(int t, int v, int in_flight) const {
    node_choice_of const& x = nodes_[idx(t)][idx(v)];
    if (x.second < 0) return {};
    return {(x.per_sample - x.other_per_sample) * in_flight + (x.fixed - x.other_fixed), x.other - x.fast};
  }

  /// The price with the fastest configurations, and by how many bytes they exceed the memory.
  double without_swaps(graph::downset_stage const& s, int w, int later, double& over) const {
    graph::stage_way const& x = ways_[idx(w)];
    int const k = table_measures() * x.table;
    over = s.sum(k + 1) * detail::piper_in_flight(x.copies, later) + s.sum(k + 2) - setup_.memory;
    double const sync = detail::piper_sync_bytes(s.sum(k), x.copies, setup_.micro_batches) / setup_.bandwidth;
    return (s.work + s.boundary) / x.share + sync;
  }
  std::vector<memory_swap> swaps_of(graph::downset_stage const& s, int w, int later) const {
    graph::stage_way const& x = ways_[idx(w)];
    int const in_flight = detail::piper_in_flight(x.copies, later);
    std::vector<memory_swap> r;
    s.each([&](int v) {
      if (memory_swap const y = swap_of(x.table, v, in_flight); y.saved > 0) r.push_back(y);
    });
    return r;
  }

 public:
  /// Throws `error` for a setup without devices, micro-batches or bandwidth.
  piper_objective(piper_profile const& g, piper_setup const& setup) : setup_(setup) {
    if (setup.devices < 1 || setup.micro_batches < 1 || !(setup.bandwidth > 0))
      throw error(std::to_string(setup.devices) + " devices, " + std::to_string(setup.micro_batches) +
                      " micro-batches, bandwidth " + std::to_string(setup.bandwidth),
                  "piper_setup", "at least one of each, and a bandwidth above 0");
    for (piper_edge const& e : g.edges) nets_.push_back({e.from, e.to});
    std::vector<int> degrees;
    for (auto const& list : g.degrees)
      for (piper_degree const& d : list) degrees.push_back(d.degree);
    std::sort(degrees.begin(), degrees.end());
    degrees.erase(std::unique(degrees.begin(), degrees.end()), degrees.end());
    for (int t : degrees) {
      if (t > setup.devices) break;
      add_degree(g, t);
      for (int d = 1; d <= copies() && d <= setup.devices / t; ++d)
        if (setup.micro_batches % d == 0)
          ways_.push_back({d * t, d, static_cast<int>(degrees_.size()) - 1, static_cast<double>(d)});
    }
    for (int y = 1; y <= copies(); y += std::max(1, y / 4)) mesh_.push_back(y);
    if (mesh_.back() < copies()) mesh_.push_back(copies());
    make_prices();
  }

  int ways() const { return static_cast<int>(ways_.size()); }
  graph::stage_way way(int w) const { return ways_[idx(w)]; }
  int tables() const { return static_cast<int>(degrees_.size()); }
  int degree(int t) const { return degrees_[idx(t)]; }
  double work(int t, int v) const { return nodes_[idx(t)][idx(v)].fast; }
  std::vector<std::vector<int>> const& nets() const { return nets_; }
  graph::net_charge charge(int t, int h) const { return charges_[idx(t)][idx(h)]; }
  int measures() const { return table_measures() * tables(); }
  double measure(int k, int v) const {
    int const t = k / table_measures(), i = k % table_measures();
    node_choice_of const& x = nodes_[idx(t)][idx(v)];
    if (i == 0) return parameters_[idx(t)][idx(v)];
    if (i < 3) return i == 1 ? x.per_sample : x.fixed;
    int const in_flight = mesh_[idx((i - 3) / (1 + prices))], price = (i - 3) % (1 + prices);
    memory_swap const y = swap_of(t, v, in_flight);
    if (price == 0) return x.per_sample * in_flight + x.fixed - std::max(y.saved, 0.0);
    return std::max(price_[idx(t)][idx(price - 1)] * y.saved - y.extra, 0.0);
  }
  double seconds(graph::downset_stage const& s, int w, int later) const {
    double over = 0;
    double const base = without_swaps(s, w, later, over);
    if (over <= 0) return base;
    if (graph::measure_limit const m = limits(w, later, infinity)[0]; m.of(s.high) - m.of(s.low) > m.most)
      return infinity;
    swap_choice const choice = min_swaps(swaps_of(s, w, later), over);
    inexact_ += choice.exact ? 0 : 1;
    return choice.feasible ? base + choice.extra / ways_[idx(w)].share : infinity;
  }
  /// Decided from below by prices of a byte and by the fractional knapsack, from above by the greedy choice.
  /// (Lagrange: at any price p, extra time is at least p * bytes - the gain of all swaps at p.) Only between
  /// them is the knapsack solved. The gain is convex in the micro-batches in flight, hence at most the line
  /// between mesh points.
  bool within(graph::downset_stage const& s, int w, int later, double target) const {
    double over = 0;
    double const base = without_swaps(s, w, later, over);
    if (base > target) return false;
    if (over <= 0) return true;
    graph::stage_way const& x = ways_[idx(w)];
    double const room = (target - base) * x.share;
    mesh_place const at = place(detail::piper_in_flight(x.copies, later));
    for (int i = 0; i < prices; ++i)
      if (double const gain = on_mesh(s.low, s.high, x.table, at, 1 + i),
          value = price_[idx(x.table)][idx(i)] * over;
          value - gain > room + 1e-9 * value)
        return false;
    priced_swaps const swaps(swaps_of(s, w, later));
    swap_bounds const b = bounds_of_swaps(swaps, over);
    if (!(b.greedy < infinity) || b.fractional > room * (1 + 1e-12)) return false;
    if (b.greedy <= room) return true;
    swap_choice const choice = min_swaps(swaps, over);
    inexact_ += choice.exact ? 0 : 1;
    return choice.feasible && choice.extra <= room;
  }
  /// The least bytes are concave in the micro-batches in flight, hence at least the line between mesh points.
  std::array<graph::measure_limit, 1> limits(int w, int later, double) const {
    graph::stage_way const& x = ways_[idx(w)];
    mesh_place const p = place(detail::piper_in_flight(x.copies, later));
    int const at = first_of(x.table, p);
    return {{{at, p.part > 0 ? at + 1 + prices : at, 1 - p.part, p.part, setup_.memory * (1 + 1e-9)}}};
  }
  /// The stage of these nodes, ascending, as Piper's, with the configurations that `seconds` chooses.
  piper_stage stage(std::vector<int> const& nodes, int w, int later) const {
        graph::stage_way const& x = ways_[idx(w)];
    piper_stage r{nodes, x.copies, degrees_[idx(x.table)], {}};
    int const in_flight = detail::piper_in_flight(x.copies, later);
    double over = -setup_.memory;
    std::vector<memory_swap> swaps;
    std::vector<std::size_t> whose;
    for (int v : nodes) {
      node_choice_of const& c = nodes_[idx(x.table)][idx(v)];
      over += c.per_sample * in_flight + c.fixed;
      if (memory_swap const y = swap_of(x.table, v, in_flight); y.saved > 0) {
        swaps.push_back(y);
        whose.push_back(r.configuration.size());
      }
      r.configuration.push_back(c.first);
    }
    for (int i : min_swaps(swaps, over).taken)
      r.configuration[whose[idx(i)]] = nodes_[idx(x.table)][idx(nodes[whose[idx(i)]])].second;
    return r;
  }
  int devices() const { return setup_.devices; }
  int copies() const { return static_cast<int>(std::min<i64>(setup_.devices, setup_.micro_batches)); }
  /// How many prices came from a knapsack that was cut short; 0: the optimum is exact.
  i64 inexact() const { return inexact_; }
};

/// An optimal pipeline, first stage first, or the answer that none fits.
struct piper_optimum {
  bool feasible = false, exact = true;
  double seconds = infinity;  ///< of the dearest stage, as `price_piper` prices it
  std::vector<piper_stage> stages;
  graph::downset_pipeline pipeline;
};

/// The optimum of Piper's objective over Piper's space (Tarnawski et al. 2021):
///  - stages are differences of nested downsets;
///  - all nodes of a stage have the same degree, each one configuration;
///  - memory is by micro-batches in flight;
///  - the sum of d * t is at most K, d a divisor of N, the sum of d at most min(K, N).
/// Never above Piper's result, which chooses configurations greedily. `exact` is false only where a knapsack
/// had to be cut short. Complexity: as `min_bottleneck`.
inline piper_optimum min_piper(piper_profile const& g, piper_setup const& setup,
                                 int max_downsets = 400'000) {
  piper_objective const o(g, setup);
  piper_optimum r;
  r.pipeline = graph::min_bottleneck(g, o, max_downsets);
  r.feasible = r.pipeline.feasible;
  r.exact = o.inexact() == 0;
  if (!r.feasible) return r;
  int later = 0;
  for (std::size_t i = r.pipeline.stages.size(); i-- > 0;) {
    graph::downset_part const& s = r.pipeline.stages[i];
    r.stages.push_back(o.stage(s.nodes, s.way, later));
    later += o.way(s.way).copies;
  }
  std::reverse(r.stages.begin(), r.stages.end());
  r.seconds = price_piper(g, r.stages, setup).seconds;
  return r;
}

}  // namespace tensorpar::peers
