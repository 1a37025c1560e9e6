// tensorpar/peers/profiles/alpa_price.hpp - Alpa's inter-operator price: sum of the stages' times and (B - 1)
// times the slowest
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/peers/profiles/piper.hpp>
#include <vector>

namespace tensorpar::peers {

/// One way to run consecutive layers as a stage, and how many stages may follow it (each makes it hold one
/// micro-batch more).
struct alpa_candidate {
  double seconds = 0;
  int max_later = 0;
};
/// The table of stage costs that the inter-operator pass is given: layers in a row, submeshes by their device
/// counts, and for layers [first, last] (both included) on a submesh the candidates. Candidates that cannot
/// be run are not in the list.
struct alpa_table {
  int layers = 0;
  std::vector<int> submeshes;
  std::vector<std::vector<alpa_candidate>> candidates;  ///< see at()

  std::vector<alpa_candidate> const& at(int first, int last, int submesh) const {
    return candidates[(idx(first) * idx(layers) + idx(last)) * submeshes.size() +
                      idx(submesh)];
  }
};
/// A stage: layers [first, last], a submesh and a candidate by their indices in the table.
struct alpa_stage {
  int first = 0, last = 0, submesh = 0, candidate = 0;
  friend bool operator==(alpa_stage const&, alpa_stage const&) = default;
};
/// What a pipeline costs, and whether devices add up and no stage is followed by more than it has memory for.
struct alpa_price {
  double seconds = 0, sum = 0, slowest = 0;
  bool fits = true;
};

/// The objective of the inter-operator pass (Zheng et al. 2022, "Alpa", section 5): sum t_i + (B - 1) max
/// t_i, with all `devices` used. Communication between stages is not in it. Throws `error` for stages that do
/// not follow each other or are not in the table. O(stages).
inline alpa_price price_alpa(alpa_table const& t, std::vector<alpa_stage> const& stages, int devices,
                             i64 micro_batches) {
  alpa_price r;
  int next = 0, used = 0;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    alpa_stage const& s = stages[i];
    if (s.first != next || s.last < s.first || s.last >= t.layers || s.submesh < 0 ||
        idx(s.submesh) >= t.submeshes.size() || s.candidate < 0 ||
        idx(s.candidate) >= t.at(s.first, s.last, s.submesh).size())
      throw error("stage " + std::to_string(i) + " does not follow the one before, or is not in the table",
                  "pipeline", "a run of layers");
    alpa_candidate const& c = t.at(s.first, s.last, s.submesh)[idx(s.candidate)];
    r.sum += c.seconds;
    r.slowest = std::max(r.slowest, c.seconds);
    r.fits = r.fits && static_cast<int>(stages.size() - i) - 1 <= c.max_later;
    used += t.submeshes[idx(s.submesh)];
    next = s.last + 1;
  }
  if (next != t.layers)
    throw error("the last layers are in no stage", "pipeline", std::to_string(t.layers) + " layers");
  r.fits = r.fits && used == devices;
  r.seconds = r.sum + static_cast<double>(micro_batches - 1) * r.slowest;
  return r;
}

/// The table of a Piper profile: layers in topological order (smallest number first), a submesh per
/// tensor-parallel degree, and for each two candidates, all nodes in their first configuration or all in
/// their second. Time is the sum of the nodes' (no communication). With `memory` bytes, A activations per
/// micro-batch and B fixed bytes, floor((memory - B) / A - 1) stages may follow. O(layers^2 * degrees).
inline alpa_table alpa_table_of(piper_profile const& g, double memory) {
    alpa_table t;
  std::vector<int> const order = graph::topological_order(g);
  t.layers = g.node_count();
  for (piper_degree const& d : g.degrees[0]) t.submeshes.push_back(d.degree);
  t.candidates.resize(idx(t.layers) * idx(t.layers) * t.submeshes.size());
  for (std::size_t m = 0; m < t.submeshes.size(); ++m)
    for (int way = 0; way < 2; ++way)
      for (int i = 0; i < t.layers; ++i) {
        double seconds = 0, activations = 0, fixed = 0;
        for (int j = i; j < t.layers; ++j) {
          piper_degree const* d = nullptr;
          for (piper_degree const& x : g.degrees[idx(order[idx(j)])])
            if (x.degree == t.submeshes[m] && idx(way) < x.ways.size()) d = &x;
          if (!d) break;
          seconds += d->ways[idx(way)].seconds;
          activations += d->ways[idx(way)].per_sample;
          fixed += d->ways[idx(way)].fixed;
          double const later = activations > 0   ? std::floor((memory - fixed) / activations - 1)
                               : fixed <= memory ? 1e6
                                                 : -1.0;
          if (later < 0) continue;
          auto& list = t.candidates[(idx(i) * idx(t.layers) + idx(j)) * t.submeshes.size() + m];
          list.push_back({seconds, static_cast<int>(std::min(later, 1e6))});
        }
      }
  return t;
}

}  // namespace tensorpar::peers
