// tests/support/pipelines.hpp - pipelines for tests: chains, V shapes, random stages of random sizes
#pragma once
#include <tensorpar/simulate/pipeline.hpp>
#include "random_graph.hpp"

namespace tests {

/// `stages` in a chain over `groups`, stage s on group s mod groups.
inline tensorpar::pipeline chain_pipeline(int stages, int groups, int micro_batches) {
  tensorpar::pipeline p;
  p.mini_batch = micro_batches;
  for (int g = 0; g < groups; ++g) p.groups.push_back({g, 1});
  p.stages.resize(at(stages));
  for (int s = 0; s < stages; ++s) {
    p.stages[at(s)].nodes = {s};
    p.stages[at(s)].group = s % groups;
  }
  return p;
}
/// 2p stages in a chain, down the groups and up again.
inline tensorpar::pipeline v_pipeline(int groups, int micro_batches) {
  tensorpar::pipeline p = chain_pipeline(2 * groups, groups, micro_batches);
  for (int s = groups; s < 2 * groups; ++s) p.stages[at(s)].group = 2 * groups - 1 - s;
  return p;
}
inline tensorpar::simulation::pipeline_costs even_costs(std::size_t stages, double f, double b, double w, double kept = 1,
                                            double freed_at_backward = 0) {
  tensorpar::simulation::pipeline_costs c;
  c.stages.assign(stages, {f, b, w, 0, kept});
  c.freed_at_backward = freed_at_backward;
  return c;
}

/// A stage for every node of `g` (edges upwards only), each on its own group, micro-batch sizes of which along every edge one divides the
/// other, all of them dividing the mini-batch.
inline tensorpar::pipeline mixed_pipeline(lists const& g, random_source& r, tensorpar::i64 mini_batch = 12) {
  tensorpar::pipeline p = chain_pipeline(static_cast<int>(g.size()), static_cast<int>(g.size()), 1);
  p.mini_batch = mini_batch;
  std::vector<int> const sizes = r.chance(50) ? std::vector<int>{1, 2, 4} : std::vector<int>{1, 3, 6};
  bool const one_size = r.chance(25);
  int const common = sizes[at(r.below(3))];
  for (auto& s : p.stages) s.micro_batch = one_size ? common : sizes[at(r.below(3))];
  return p;
}
/// Whole seconds per sample, so that sums are exact; a stage's passes are proportional to its micro-batch size, or not.
inline tensorpar::simulation::pipeline_costs mixed_costs(tensorpar::pipeline const& p, random_source& r, lists const& edges = {}) {
  tensorpar::simulation::pipeline_costs c;
  for (auto const& s : p.stages) {
    double const b = r.chance(70) ? static_cast<double>(s.micro_batch) : 1.0 + r.below(3);
    c.stages.push_back({b * (1 + r.below(4)), b * (1 + r.below(4)), b * r.below(3), 0, b});
  }
  for (std::size_t s = 0; s < edges.size(); ++s)
    for (int u : edges[s])
      if (r.chance(30)) c.transfers.push_back({u, static_cast<int>(s), double(r.below(4)), double(r.below(4))});
  return c;
}

inline std::string text(tensorpar::pipeline const& p) {
  std::string t = "mini-batch " + std::to_string(p.mini_batch) + ";";
  for (auto const& s : p.stages)
    t += " b=" + std::to_string(s.micro_batch) + " k=" + std::to_string(s.k) + (s.split_backward ? " split" : "") + " group " +
         std::to_string(s.group) + ";";
  for (std::size_t g = 0; g < p.schedule.size(); ++g) {
    t += "\n  group " + std::to_string(g) + ":";
    for (auto const& e : p.schedule[g])
      t += " " + std::string(1, "FBW"[static_cast<int>(e.what)]) + std::to_string(e.stage) + "." + std::to_string(e.micro_batch);
  }
  return t;
}

}  // namespace tests
