// tensorpar/program/node_spaces.hpp - the iteration spaces of all nodes of a graph
#pragma once
#include <algorithm>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/iteration_space.hpp>
#include <unordered_map>
#include <vector>

namespace tensorpar::passes {

/// The iteration spaces of all nodes; one operator on equal shapes is resolved once. O(nodes + resolved).
inline std::vector<ir::iteration_space> spaces_of(computation_graph const& g) {
  auto const like = [&](node_id a, node_id b) {
    auto const& x = g.node(a);
    auto const& y = g.node(b);
    auto const same = [&](value_id u, value_id v) { return g.type(u) == g.type(v); };
    return x.op == y.op && std::equal(x.in.begin(), x.in.end(), y.in.begin(), y.in.end(), same) &&
           std::equal(x.out.begin(), x.out.end(), y.out.begin(), y.out.end(), same);
  };
  std::vector<ir::iteration_space> r;
  r.reserve(g.nodes.size());
  std::unordered_map<u64, node_id> first;                // by hash: of two kinds of nodes with one the first
  for (int v = 0; v < g.node_count(); ++v) {
    core::hasher h;
    h.add(g.node(v).op.hash());
    for (auto const* list : {&g.node(v).in, &g.node(v).out})
      for (value_id x : *list) {
        shape const& s = g.type(x);
        h.add(s.rank);
        for (int d = 0; d < s.rank; ++d) h.add(s.d[d].n);
      }
    node_id const known = first.try_emplace(h.value(), node_id(v)).first->second;
    r.push_back(known != v && like(known, v) ? r[idx(known)] : ir::space_of(g, v));
  }
  return r;
}

}  // namespace tensorpar::passes
