// tensorpar/peers/profiles/pipedream_states.hpp - the prefixes that PipeDream may cut at, with their totals
#pragma once
#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/peers/profiles/pipedream.hpp>
#include <utility>
#include <vector>

namespace tensorpar::peers {

/// A set of layers closed under predecessors: totals over it, and the bytes that leave it.
struct pipedream_state {
  std::vector<u64> layers;  ///< bits
  double seconds = 0, activations = 0, parameters = 0;
  double output = 0;        ///< bytes of its last layers, and of those before them that the peer counts too
};

namespace detail {

/// The layers that PipeDream plans for: sources called "Input..." are dropped, then sinks called
/// "__getitem__...".
struct pipedream_layers {
  pipedream_profile const& g;
  int words = 0;
  std::vector<char> kept;
  std::vector<std::vector<int>> next;
  // /< by layer: it and all before it; layers before it that are counted with its output
  std::vector<std::vector<u64>> above, extra;

  static bool has(std::vector<u64> const& s, int v) { return (s[idx(v / 64)] >> (v % 64)) & 1; }
  static void put(std::vector<u64>& s, int v) { s[idx(v / 64)] |= u64{1} << (v % 64); }
  static bool within(std::vector<u64> const& a, std::vector<u64> const& b) {
    for (std::size_t i = 0; i < a.size(); ++i)
      if (a[i] & ~b[i]) return false;
    return true;
  }

  explicit pipedream_layers(pipedream_profile const& profile)
      : g(profile),
        words((profile.node_count() + 63) / 64),
        kept(idx(profile.node_count()), 1),
        next(profile.successors_of_all()) {
    int const n = g.node_count();
    for (int v = 0; v < n; ++v)
      if (g.inputs[idx(v)].empty() && g.description[idx(v)].starts_with("Input")) kept[idx(v)] = 0;
    std::vector<char> const sources(kept);
    for (int v = 0; v < n; ++v) {
      bool sink = sources[idx(v)];
      for (int w : next[idx(v)]) sink = sink && !sources[idx(w)];
      if (sink && g.description[idx(v)].starts_with("__getitem__")) kept[idx(v)] = 0;
    }
    above.assign(idx(n), std::vector<u64>(idx(words), 0));
    extra = above;
    for (int v : graph::topological_order(g)) {
      if (!kept[idx(v)]) continue;
      for (int u : g.inputs[idx(v)])
        if (kept[idx(u)])
          for (int k = 0; k < words; ++k) above[idx(v)][idx(k)] |= above[idx(u)][idx(k)];
      put(above[idx(v)], v);
    }
    for (int v = 0; v < n; ++v)
      for (int u = 0; u < n && kept[idx(v)]; ++u) {
        if (u == v || !has(above[idx(v)], u)) continue;
        for (int w : next[idx(u)])
          if (kept[idx(w)] && !has(above[idx(v)], w)) put(extra[idx(v)], u);
      }
  }

  /// A closed set's totals. Its last layers are those without a successor in it; `extra` of each is counted
  /// once.
  pipedream_state state(std::vector<u64> layers) const {
    pipedream_state s{std::move(layers), 0, 0, 0, 0};
    std::vector<u64> out(idx(words), 0);
    for (int v = 0; v < g.node_count(); ++v) {
      if (!has(s.layers, v)) continue;
      s.seconds += g.forward[idx(v)] + g.backward[idx(v)];
      s.activations += g.activation[idx(v)];
      s.parameters += g.parameter[idx(v)];
      bool last = true;
      for (int w : next[idx(v)]) last = last && !(kept[idx(w)] && has(s.layers, w));
      if (!last) continue;
      put(out, v);
      for (int k = 0; k < words; ++k) out[idx(k)] |= extra[idx(v)][idx(k)];
    }
    for (int v = 0; v < g.node_count(); ++v)
      if (has(out, v)) s.output += g.activation[idx(v)];
    return s;
  }
};

}  // namespace detail

/// All states, smaller ones first; the last holds every layer that is reached. They start at the first source
/// (in the file's order) and grow by one layer and all before it. So a later source comes with the first
/// layer that needs it, and layers that nothing reached needs are in no state. A layer's output counts while
/// it is last. The peer also counts a layer before a last one if it feeds anything that is not before that
/// one, even if that is in the state (Narayanan et al. 2019, section 3.1, as its optimiser computes it).
/// Throws `error` if no layer is left, and beyond `most` states. O(states * V (degree + words)).
inline std::vector<pipedream_state> pipedream_states(pipedream_profile const& g, int most = 50'000) {
    detail::pipedream_layers const layers(g);
  int first = -1;
  for (int v = g.node_count() - 1; v >= 0; --v) {
    bool source = layers.kept[idx(v)];
    for (int u : g.inputs[idx(v)]) source = source && !layers.kept[idx(u)];
    if (source) first = v;
  }
  if (first < 0) throw error("no layer is left to plan for", "PipeDream profile", "layers beside inputs");
  std::vector<std::vector<u64>> found{layers.above[idx(first)]};
  std::map<std::vector<u64>, int> number{{found[0], 0}};
  for (std::size_t i = 0; i < found.size(); ++i)
    for (int v = 0; v < g.node_count(); ++v) {
      if (!layers.kept[idx(v)] || layers.has(found[i], v)) continue;
      bool next = false;
      for (int u : g.inputs[idx(v)]) next = next || (layers.kept[idx(u)] && layers.has(found[i], u));
      if (!next) continue;
      std::vector<u64> grown = found[i];
      for (std::size_t k = 0; k < grown.size(); ++k) grown[k] |= layers.above[idx(v)][k];
      if (!number.try_emplace(grown, static_cast<int>(found.size())).second) continue;
      if (static_cast<int>(found.size()) >= most)
        throw error("the graph has more than " + std::to_string(most) + " states", "PipeDream profile",
                    "a narrower graph");
      found.push_back(std::move(grown));
    }
  std::vector<pipedream_state> r;
  for (auto& s : found) r.push_back(layers.state(std::move(s)));
  auto const size = [](pipedream_state const& s) {
    int n = 0;
    for (u64 w : s.layers) n += std::popcount(w);
    return n;
  };
  std::stable_sort(r.begin(), r.end(),
                   [&](pipedream_state const& a, pipedream_state const& b) { return size(a) < size(b); });
  return r;
}

/// The state that these layers make up; layers that are not planned for may be among them. The others must be
/// closed under predecessors. O(V^2 + E).
inline pipedream_state pipedream_prefix(detail::pipedream_layers const& layers,
                                        std::vector<int> const& nodes) {
  std::vector<u64> set(idx(layers.words), 0);
  for (int v : nodes)
    if (layers.kept[idx(v)]) layers.put(set, v);
  for (int v : nodes)
    if (layers.kept[idx(v)] && !layers.within(layers.above[idx(v)], set))
      throw error("a layer before " + layers.g.id[idx(v)] + " is missing", "prefix",
                  "a set of layers closed under predecessors");
  return layers.state(std::move(set));
}

}  // namespace tensorpar::peers
