// tensorpar/peers/profiles/piper_price.hpp - Piper's price of a pipeline: time per micro-batch, and memory by
// micro-batches in flight
#pragma once
#include <algorithm>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/peers/profiles/configurations.hpp>
#include <tensorpar/peers/profiles/piper.hpp>
#include <utility>
#include <vector>

namespace tensorpar::peers {

/// What Piper plans for: K devices of M bytes, BW bytes per unit of time between them, N micro-batches per
/// step.
struct piper_setup {
  double memory = 0, bandwidth = 1;
  int devices = 1;
  i64 micro_batches = 1;
};
/// The setup that the profile's own file names. Where its times are not seconds, the bandwidth is not bytes
/// per that unit either.
inline piper_setup setup_of(piper_profile const& g) {
  return {g.memory, g.bandwidth, g.devices, g.micro_batches};
}

/// A stage: its nodes, all on `tensor` devices, in `data` copies; `configuration` by node of the list.
struct piper_stage {
  std::vector<int> nodes;
  int data = 1, tensor = 1;
  std::vector<int> configuration;
  friend bool operator==(piper_stage const&, piper_stage const&) = default;
};
/// What a stage costs: compute and bytes over edges of one micro-batch, bytes of the weights' synchronisation
/// per micro-batch, time per micro-batch, and bytes on each of its devices with `in_flight` micro-batches.
struct piper_stage_price {
  double compute = 0, edge_bytes = 0, sync_bytes = 0, seconds = 0, memory = 0;
  int in_flight = 0;
};

namespace detail {

inline piper_degree const* piper_find_degree(piper_profile const& g, int v, int tensor) {
  for (piper_degree const& d : g.degrees[idx(v)])
    if (d.degree == tensor) return &d;
  return nullptr;
}
/// Micro-batches in flight: the copies of this and all later stages, by this stage's copies, rounded up.
inline int piper_in_flight(int data, int later) { return (data + later + data - 1) / data; }
/// Bytes that synchronising `parameters` bytes over `data` copies sends, per micro-batch: 4 (d - 1) w / (d
/// N).
inline double piper_sync_bytes(double parameters, int data, i64 micro_batches) {
  return 4.0 * (data - 1) * parameters / (static_cast<double>(data) * static_cast<double>(micro_batches));
}

}  // namespace detail

/// One stage (Tarnawski et al. 2021, section 4): [compute + edges / BW] / d + sync / BW. Every edge across
/// the stage's border is charged, twice (forward and backward), each with its tensor's bytes and with what
/// tensor parallelism moves at this end; an edge to each consumer, even if they read the same tensor.
/// `later`: copies of all later stages.
/// Throws `error` for nodes or configurations that do not exist. O(nodes * degrees + edges).
inline piper_stage_price price_piper_stage(piper_profile const& g, piper_stage const& s,
                                           piper_setup const& setup, int later) {
    std::vector<char> inside(idx(g.node_count()), 0);
  for (int v : s.nodes) {
    if (v < 0 || v >= g.node_count() || inside[idx(v)])
      throw error("node " + std::to_string(v) + " does not exist or stands twice", "stage",
                  "nodes 0 to " + std::to_string(g.node_count() - 1) + ", each once");
    inside[idx(v)] = 1;
  }
  if (s.configuration.size() != s.nodes.size() || s.data < 1)
    throw error("a stage without configurations or copies", "stage", "one per node");
  piper_stage_price r;
  r.in_flight = detail::piper_in_flight(s.data, later);
  for (std::size_t i = 0; i < s.nodes.size(); ++i) {
    int const v = s.nodes[i], c = s.configuration[i];
    piper_degree const* const at = detail::piper_find_degree(g, v, s.tensor);
    if (!at || c < 0 || idx(c) >= at->ways.size())
      throw error("node " + std::to_string(g.id[idx(v)]) + " has no such configuration on " +
                      std::to_string(s.tensor) + " devices",
                  "stage", "a configuration of the profile");
    piper_configuration const& x = at->ways[idx(c)];
    r.compute += x.seconds;
    r.memory += x.per_sample * r.in_flight + x.fixed;
    r.sync_bytes += detail::piper_sync_bytes(x.parameters, s.data, setup.micro_batches);
    for (std::size_t k = 0; k < g.in[idx(v)].size(); ++k)
      if (piper_edge const& e = g.edges[idx(g.in[idx(v)][k])]; !inside[idx(e.from)])
        r.edge_bytes += 2 * (e.bytes + x.sync_in[k]);
    for (std::size_t k = 0; k < g.out[idx(v)].size(); ++k)
      if (piper_edge const& e = g.edges[idx(g.out[idx(v)][k])]; !inside[idx(e.to)])
        r.edge_bytes += 2 * (e.bytes + x.sync_out[k]);
  }
  r.seconds = (r.compute + r.edge_bytes / setup.bandwidth) / s.data + r.sync_bytes / setup.bandwidth;
  return r;
}

/// The stage with the configurations that Piper chooses: the fastest, and where they do not fit, swaps by
/// time lost per byte saved until they do (`greedy_swaps`). Where no choice fits, the fastest. Precondition:
/// every node has this degree, checked. O(nodes log nodes).
inline piper_stage greedy_piper_stage(piper_profile const& g, std::vector<int> const& nodes, int data,
                                      int tensor, piper_setup const& setup, int later) {
  piper_stage s{nodes, data, tensor, {}};
  int const in_flight = detail::piper_in_flight(data, later);
  double over = -setup.memory;
  std::vector<memory_swap> swaps;
  std::vector<std::size_t> whose;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    piper_degree const* const at = detail::piper_find_degree(g, nodes[i], tensor);
    if (!at)
      throw error("a node cannot run on " + std::to_string(tensor) + " devices", "stage",
                  "a degree of the profile");
    int const fast = at->ways.size() > 1 && at->ways[1].seconds < at->ways[0].seconds ? 1 : 0;
    piper_configuration const& a = at->ways[idx(fast)];
    s.configuration.push_back(fast);
    over += a.per_sample * in_flight + a.fixed;
    if (at->ways.size() < 2) continue;
    piper_configuration const& b = at->ways[idx(1 - fast)];
    double const saved = (a.per_sample - b.per_sample) * in_flight + (a.fixed - b.fixed);
    if (saved <= 0) continue;
    swaps.push_back({saved, b.seconds - a.seconds});
    whose.push_back(i);
  }
  for (int i : greedy_swaps(swaps, over).taken) {
    int& c = s.configuration[whose[idx(i)]];
    c = 1 - c;
  }
  return s;
}

/// What a pipeline costs: its stages, first one first, and the dearest one's time per micro-batch ("TPS").
struct piper_price {
  std::vector<piper_stage_price> stages;
  double seconds = 0;
  int devices = 0;
  bool fits = true;  ///< memory, devices, copies (at most one per micro-batch, and a divisor of their number)
};

/// All stages, first one first. Throws `error` as `price_piper_stage`, and if a node is in no stage or in
/// two. O(V + E) per stage.
inline piper_price price_piper(piper_profile const& g, std::vector<piper_stage> const& stages,
                               piper_setup const& setup) {
  piper_price r;
  int later = 0;
  std::vector<char> placed(idx(g.node_count()), 0);
  for (std::size_t i = stages.size(); i-- > 0;) {
    piper_stage const& s = stages[i];
    r.stages.push_back(price_piper_stage(g, s, setup, later));
    later += s.data;
    r.devices += s.data * s.tensor;
    r.seconds = std::max(r.seconds, r.stages.back().seconds);
    r.fits = r.fits && r.stages.back().memory <= setup.memory && setup.micro_batches % s.data == 0;
    for (int v : s.nodes)
      if (std::exchange(placed[idx(v)], 1))
        throw error("node " + std::to_string(v) + " is in two stages", "pipeline", "each once");
  }
  for (char p : placed)
    if (!p) throw error("a node is in no stage", "pipeline", "each node in one stage");
  r.fits = r.fits && r.devices <= setup.devices && later <= setup.micro_batches;
  std::reverse(r.stages.begin(), r.stages.end());
  return r;
}

}  // namespace tensorpar::peers
