// tensorpar/search/intra/nested_forks.hpp - does a branch of a network fork again?
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/sp/relaxation.hpp>
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/search/solve/dealt_tree.hpp>
#include <vector>

namespace tensorpar::search::detail {

/// Is a fork within a branch of another one, or has one so many branches that it is searched as forks of
/// forks, or is the network not series-parallel? If not, devices that are numbered from the fastest to the
/// slowest serve every plan as well as in any other order: a branch is as fast as the slowest of its devices.
/// A branch that forks again may be best on a fast and a slow one.
/// O(operators + edges) for series-parallel networks.
template <class = void>
bool has_nested_forks(computation_graph const& g) {
  std::vector<std::vector<int>> before(idx(g.node_count()));
  for (int v = 0; v < g.node_count(); ++v) before[idx(v)] = g.predecessors(v);
  auto const r = graph::relax(before, [](int) { return 1; });
  if (!r.added.empty()) return true;
  std::vector<char> forks(idx(r.tree.size()), 0);
  for (int i = 0; i < r.tree.size(); ++i) {
    if (r.tree.kind(i) == graph::sp_kind::leaf) continue;
    bool within = false;
    for (int p : r.tree.parts(i)) within = within || forks[idx(p)];
    bool const parallel = r.tree.kind(i) == graph::sp_kind::parallel;
    // halves fork again
    bool const dealt_out = idx(r.tree.parts(i).size()) > max_in_a_row;
    if (parallel && (within || dealt_out)) return true;
    forks[idx(i)] = parallel || within;
  }
  return false;
}

#ifdef TENSORPAR_COMPILED
extern template bool has_nested_forks<>(computation_graph const& g);
#endif

}  // namespace tensorpar::search::detail
