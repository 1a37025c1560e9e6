// tensorpar/peers/optima/piper_stages.hpp - what Piper searches, under any stage model: sequences of nested
// downsets
#pragma once
#include <tensorpar/peers/optima/lines.hpp>
#include <tensorpar/search/pipeline/nested.hpp>

namespace tensorpar::peers {

/// What Piper knows, in this model (Tarnawski et al. 2021): stages are differences of nested downsets, in
/// sequence, with one micro-batch size; all sizes are tried; the least bottleneck, exactly. Stages that
/// neither send to nor read from each other are possible (operators of different branches together), which is
/// why it grows exponentially with the number of branches. Precondition: m.uniform(). Throws `error` where
/// the graph has more than `max_downsets` downsets, where sending a tensor costs more than receiving it, and
/// as `find_stages` does.
template <graph::topology G, search::stage_model M>
search::stage_result piper_stages(G const& graph, M const& m, search::stage_options const& o = {},
                          int max_downsets = 400'000) {
  using namespace search::detail;
  if (graph::node_count(graph) != m.operators())
    throw error("graph and model differ in size", "piper_stages", "one operator for each node");
  if (!m.uniform()) throw error("devices of several kinds", "piper_stages", "a uniform model");
  search::stage_result r;
  r.source = search::stage_source::nested;
  std::vector<stage_batching> all;
  std::vector<i64> const sizes = sizes_to_try(m, o, "piper_stages");
  for (i64 b : sizes)
    if (downset_stages<M>(m, b).ways() > 0) all.push_back({b, 1});
  if (all.empty())
    throw error("the model admits no micro-batch size on any number of devices", "piper_stages",
                "a size that some degree divides");
  std::optional<priced_stages> best =
      min_nested(graph, m, sizes, max_downsets, o.objective == search::stage_objective::iteration, true);
  r.bound = bottleneck_bound(m, all);
  if (!best) {
    graph::sp_tree const tree = stage_relaxation(graph::detail::as_adjacency(graph), m,
                                                 sizes.back()).tree;
    r.infeasible = min_shortage(m, line_of(tree), {all.front()});
    return r;
  }
  write_pipeline(m, std::move(*best), true, r);
  if (o.objective != search::stage_objective::iteration) r.family_bound = r.cost.bottleneck;
  r.gap = (r.cost.bottleneck - r.bound) / r.cost.bottleneck;
  return r;
}

}  // namespace tensorpar::peers
