// tests/support/wide_profile.hpp - made-up profiles with the shape of Inception-v3 (some 36,000 downsets), and small random ones
#pragma once
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/peers/profiles/dnn_partitioning.hpp>
#include <tensorpar/peers/profiles/pipedream.hpp>
#include <tensorpar/peers/profiles/piper.hpp>
#include <vector>

#include "random_graph.hpp"

namespace wide {

using tensorpar::idx;
using tests::random_source;

/// Grows a graph of layers: chains that fork and join.
struct layers {
  std::vector<std::vector<int>> inputs;
  int node(std::vector<int> in) {
    inputs.push_back(std::move(in));
    return static_cast<int>(inputs.size()) - 1;
  }
  int chain(int from, int length) {
    for (int i = 0; i < length; ++i) from = node({from});
    return from;
  }
};

/// Inception-v3: convolutions are three layers each, modules have three or four branches, the last two fork within branches.
/// 317 layers, 35,686 downsets (the published profile has 326 and 36,596).
inline std::vector<std::vector<int>> inception() {
  layers g;
  int at = g.chain(g.node({}), 3 * 5 + 2);
  auto const module = [&](std::vector<int> lengths) {
    std::vector<int> ends;
    for (int n : lengths) ends.push_back(g.chain(at, n));
    at = g.node(ends);
  };
  for (int i = 0; i < 3; ++i) module({3, 6, 9, 4});
  module({3, 9, 1});
  for (int i = 0; i < 4; ++i) module({3, 9, 15, 4});
  module({6, 12, 1});
  for (int i = 0; i < 2; ++i) {
    std::vector<int> ends{g.chain(at, 3)};
    for (int before : {3, 6}) {
      int const fork = g.chain(at, before);
      int const a = g.chain(fork, 3), b = g.chain(fork, 3);
      ends.push_back(g.node({a, b}));
    }
    ends.push_back(g.chain(at, 4));
    at = g.node(ends);
  }
  g.chain(at, 4);
  return g.inputs;
}

/// Times of every third layer (the convolutions) are some ten times the others', results shrink with depth. `send` scales communication,
/// 1 being that of published files in consistent units on 2 GiB/s. Training adds a backward layer per layer, of its colour, twice as long.
inline tensorpar::peers::dnn_partitioning_profile timed(std::vector<std::vector<int>> const& inputs, double send, bool training,
                                                 tensorpar::u64 seed) {
  random_source r{seed};
  tensorpar::peers::dnn_partitioning_profile g;
  int const n = static_cast<int>(inputs.size());
  for (int v = 0; v < n * (training ? 2 : 1); ++v) {
    int const layer = v < n ? v : v - n;
    g.id.push_back(v);
    g.name.push_back("layer " + std::to_string(v));
    double const heavy = layer % 3 == 1 ? 10 : 1, time = heavy * (50 + r.below(100)) / 1000.0 * (v < n ? 1 : 2);
    g.accelerator.push_back(time);
    g.cpu.push_back(10 * time);
    g.size.push_back(1e6 * (1 + r.below(100)));
    g.send.push_back(send * (2 + r.below(40)) * (1.5 - static_cast<double>(layer) / n));
    g.colour.push_back(layer);
    g.backward.push_back(v >= n);
    g.on_accelerator.push_back(1);
    g.inputs.emplace_back();
    if (v < n) g.inputs.back() = inputs[idx(v)];
  }
  g.colours = n;
  for (int v = 0; v < n && training; ++v) {
    g.inputs[idx(n + v)].push_back(v);
    for (int u : inputs[idx(v)]) g.inputs[idx(n + u)].push_back(n + v);
  }
  for (auto& list : g.inputs) std::sort(list.begin(), list.end());
  g.memory = 1e18;
  g.accelerators = 6;
  g.cpus = 1;
  return g;
}

/// The same layers as PipeDream has them.
inline tensorpar::peers::pipedream_profile pipedream(std::vector<std::vector<int>> const& inputs, tensorpar::u64 seed) {
  random_source r{seed};
  tensorpar::peers::pipedream_profile g;
  g.inputs = inputs;
  for (int v = 0; v < static_cast<int>(inputs.size()); ++v) {
    g.id.push_back("node" + std::to_string(v));
    g.description.push_back("layer");
    g.forward.push_back((v % 3 == 1 ? 10 : 1) * (50 + r.below(100)) / 1e6);
    g.backward.push_back(2 * g.forward.back());
    g.activation.push_back(1e6 * (1 + r.below(40)));
    g.parameter.push_back(1e5 * r.below(30));
    g.stage.push_back(-1);
  }
  return g;
}

/// The same layers as Piper has them: one degree, keep or recompute.
inline tensorpar::peers::piper_profile piper(std::vector<std::vector<int>> const& inputs, tensorpar::u64 seed,
                                      std::vector<int> const& degrees = {1}) {
  random_source r{seed};
  tensorpar::peers::piper_profile g;
  int const n = static_cast<int>(inputs.size());
  g.inputs = inputs;
  g.in.resize(idx(n));
  g.out.resize(idx(n));
  for (int v = 0; v < n; ++v)
    for (int u : inputs[idx(v)]) {
      g.in[idx(v)].push_back(static_cast<int>(g.edges.size()));
      g.out[idx(u)].push_back(static_cast<int>(g.edges.size()));
      g.edges.push_back({u, v, 1e5 * (1 + r.below(50))});
    }
  for (int v = 0; v < n; ++v) {
    g.id.push_back(v);
    g.name.push_back("layer " + std::to_string(v));
    double const time = (v % 3 == 1 ? 10 : 1) * (50 + r.below(100)) / 1e5, bytes = 1e5 * (1 + r.below(40)), weights = 1e5 * r.below(30);
    g.degrees.emplace_back();
    for (int t : degrees) {
      std::vector<double> const in(g.in[idx(v)].size(), t > 1 ? 1e4 : 0.0), out(g.out[idx(v)].size(), t > 1 ? 1e4 : 0.0);
      double const part = t == 1 ? 1.0 : (0.5 + 0.1 * r.below(3)) * 2 / t;
      double const held = weights / t, kept = bytes * part;
      g.degrees.back().push_back({t, {{"vanilla", time * part, held, kept, 2 * held, in, out},
                                      {"activation recomp", 1.3 * time * part, held, kept / 10, 2 * held + bytes, in, out}}});
    }
  }
  g.memory = 1e18;
  g.bandwidth = 2.5e10;
  g.devices = 8;
  g.micro_batches = 256;
  return g;
}

}  // namespace wide
