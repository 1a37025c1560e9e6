// tensorpar/peers/profiles/graphpipe_price.hpp - GraphPipe's prices of a planned pipeline, as its planner's
// log shows them
#pragma once
#include <algorithm>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/peers/profiles/graphpipe.hpp>
#include <vector>

namespace tensorpar::peers {

/// What a logged pipeline costs by the formulas, to be compared with what the log says.
struct graphpipe_price {
  double iteration = 0;               ///< B * bottleneck + the slowest path of one micro-batch
  // /< the largest time per sample: at most the logged bottleneck, which is a bound of a bisection
  double slowest_stage = 0;
  std::vector<double> memory;         ///< by stage, MB: weights + activations
  std::vector<i64> in_flight;         ///< by stage, samples
  std::vector<std::vector<int>> next; ///< by stage, the stages that read its results
};

/// Re-prices the log for mini-batches of `mini_batch` samples, by the formulas of GraphPipe's planner, which
/// its thesis leaves out:
///   iteration time   B * TPS + the maximum over paths of stages of the sum of b_s * TPS_s, with TPS the
///                    bottleneck: B / b slots and a whole path
///   memory           weights + activations, weights not divided by the stage's devices
///   in flight        k_s b_s more than the largest of its successors' (row 7 of the thesis's table 3.2,
///                    equal k b on both sides), k b at the end
/// Edges between stages follow from those between operators. Throws `error` if an operator with edges is in
/// no stage, stages form a cycle, or k b differs between neighbours, where row 7 does not hold. O(operators +
/// edges + stages).
inline graphpipe_price price_graphpipe(graphpipe_log const& g, i64 mini_batch) {
    int const n = static_cast<int>(g.stages.size());
  std::vector<int> stage(idx(g.node_count()), -1);
  for (int s = 0; s < n; ++s)
    for (int v : g.stages[idx(s)].nodes) stage[idx(v)] = s;
  std::vector<std::vector<int>> before(idx(n));
  graphpipe_price r;
  r.next.resize(idx(n));
  for (int v = 0; v < g.node_count(); ++v)
    for (int u : g.predecessors(v)) {
      int const a = stage[idx(u)], b = stage[idx(v)];
      if (a < 0 || b < 0)
        throw error("operator " + std::to_string(a < 0 ? u : v) + " is in no stage", "GraphPipe log",
                    "a stage each");
      if (a == b) continue;
      before[idx(b)].push_back(a);
      r.next[idx(a)].push_back(b);
    }
  for (auto& list : r.next) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  std::vector<int> const order = graph::topological_order(before);
  std::vector<double> path(idx(n), 0.0);
  r.in_flight.assign(idx(n), 0);
  double longest = 0;
  for (std::size_t i = order.size(); i-- > 0;) {
    int const s = order[i];
    graphpipe_log_stage const& x = g.stages[idx(s)];
    for (int t : r.next[idx(s)]) {
      graphpipe_log_stage const& y = g.stages[idx(t)];
      if (x.k != y.k || std::max(x.micro_batch, y.micro_batch) > x.k)
        throw error(
            "stages " + std::to_string(s) + " and " + std::to_string(t) + " differ in samples per turn",
            "GraphPipe log", "equal k b");
      path[idx(s)] = std::max(path[idx(s)], path[idx(t)]);
      r.in_flight[idx(s)] = std::max(r.in_flight[idx(s)], r.in_flight[idx(t)]);
    }
    path[idx(s)] += static_cast<double>(x.micro_batch) * x.time_per_sample;
    r.in_flight[idx(s)] += x.k;
    longest = std::max(longest, path[idx(s)]);
    r.slowest_stage = std::max(r.slowest_stage, x.time_per_sample);
  }
  for (graphpipe_log_stage const& x : g.stages) r.memory.push_back(x.weights + x.activations);
  r.iteration = static_cast<double>(mini_batch) * g.bottleneck + longest;
  return r;
}

}  // namespace tensorpar::peers
