// tensorpar/peers/optima/lines.hpp - sequential pipelines under the same stage model: PipeDream's, and equal
// counts of operators
#pragma once
#include <tensorpar/search/pipeline/stages.hpp>

namespace tensorpar::peers {

/// What PipeDream knows, in this model: operators in one line (branch by branch), stages contiguous in it,
/// each waiting for the one before it, whether the graph says so or not. All stages have one micro-batch
/// size; all sizes are tried (Narayanan et al. 2019 and 2021; the thesis's SPP). Exact for the bottleneck
/// within `tolerance`; for `iteration` as `find_stages`. Throws as `find_stages` does.
template <graph::topology G, search::stage_model M>
search::stage_result pipedream_stages(G const& graph, M const& m, search::stage_options const& o = {}) {
  using namespace tensorpar::detail;
  using namespace search::detail;
  search::stage_result r;
  std::vector<i64> const sizes = sizes_to_try(m, o, "pipedream_stages");
  graph::sp_tree const tree = stage_relaxation(graph::detail::as_adjacency(graph), m, sizes.back()).tree;
  auto const order = order_of_sizes(m, o, sizes, o.objective != search::stage_objective::bottleneck);
  best_stages best = best_sequential(m, o, order_of(tree), order, r.statistics, r.family_bound);
  r.source = search::stage_source::line;
  r.bound = bottleneck_bound(m, batchings_of(m, o, sizes));
  if (!best.best) {
    r.infeasible = min_shortage(m, line_of(tree), batchings_of(m, o, {sizes.front()}));
    return r;
  }
  write_pipeline(m, std::move(*best.best), true, r);
  r.family_bound = std::min(r.family_bound, r.cost.bottleneck);
  r.gap = (r.cost.bottleneck - r.bound) / r.cost.bottleneck;
  return r;
}

/// A line of operators cut into so many stages of as equal counts as possible, each with the same number of
/// devices. Of all such numbers of stages, sizes and degrees the one with the best objective that fits into
/// memory.
template <graph::topology G, search::stage_model M>
search::stage_result uniform_stages(G const& graph, M const& m, search::stage_options const& o = {}) {
  using namespace tensorpar::detail;
  using namespace search::detail;
  search::stage_result r;
  std::optional<priced_stages> best;
  std::vector<i64> const sizes = sizes_to_try(m, o, "uniform_stages");
  graph::sp_tree const line = line_of(stage_relaxation(graph::detail::as_adjacency(graph), m,
                                                       sizes.back()).tree);
  std::vector<int> order;
  for (int i = 0; i < line.size(); ++i)
    if (line.kind(i) == graph::sp_kind::leaf) order.push_back(line.node(i));
  std::optional<search::stage_shortage> least;
  std::vector<stage_batching> all;
  for (i64 b : sizes)
    for (int k : o.ks)
      for (search::stage_choice c : m.degrees()) {
        c.micro_batch = b;
        c.k = k;
        if (!m.admits(c)) continue;
        int const stages = std::min(m.devices() / c.devices(), m.operators());
        if (stages < 1) continue;
        all.push_back({b, k});
        priced_stages p;
        for (int s = 0; s < stages; ++s) {
          auto const cut = [&](int i) {
            return order.begin() + static_cast<i64>(i) * m.operators() / stages;
          };
          p.stages.push_back({std::vector<int>(cut(s), cut(s + 1)), c, s * c.devices()});
          std::sort(p.stages.back().nodes.begin(), p.stages.back().nodes.end());
        }
        p.cost = search::cost_of(m, p.stages, true);
        ++r.statistics.limits;
        if (p.cost.shortage) {
          if (!least || p.cost.shortage->lacks < least->lacks) least = p.cost.shortage;
          continue;
        }
        if (!best || better_stages(o.objective != search::stage_objective::bottleneck, p.cost, best->cost))
          best = std::move(p);
      }
  if (all.empty())
    throw error("the model admits no micro-batch size on any number of devices", "uniform_stages",
                "a size that some degree divides");
  r.bound = bottleneck_bound(m, all);
  r.source = search::stage_source::line;
  if (!best) {
    r.infeasible = least;
    return r;
  }
  write_pipeline(m, std::move(*best), true, r);
  r.family_bound = r.cost.bottleneck;
  r.gap = (r.cost.bottleneck - r.bound) / r.cost.bottleneck;
  return r;
}

}  // namespace tensorpar::peers
