// tensorpar/graph/sp/duplication.hpp - series-parallel trees by doing work twice instead of waiting longer
#pragma once
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/order.hpp>
#include <tensorpar/graph/sp/tree.hpp>
#include <vector>

namespace tensorpar::graph {

namespace detail {

/// One item of a run: a node, or (node -1) runs side by side.
struct strand {
  int node = -1;
  std::vector<std::vector<strand>> branches;
  friend bool operator==(strand const&, strand const&) = default;
};
using strands = std::vector<strand>;

/// Runs side by side; those with the same first node (or bundle) have it once: P(S(1,2),S(1,3)) is
/// S(1,P(2,3)).
inline strands coalesce(std::vector<strands> const& runs) {
  std::vector<strands> left;
  for (strands const& r : runs)
    if (!r.empty()) left.push_back(r);
  if (left.empty()) return {};
  if (left.size() == 1) return left[0];
  std::vector<std::pair<strand, std::vector<strands>>> heads;
  for (strands const& r : left) {
    std::size_t k = 0;
    while (k < heads.size() && !(heads[k].first == r.front())) ++k;
    if (k == heads.size()) heads.push_back({r.front(), {}});
    heads[k].second.emplace_back(r.begin() + 1, r.end());
  }
  std::vector<strands> merged;
  for (auto const& [head, tails] : heads) {
    strands s{head};
    strands const rest = coalesce(tails);
    s.insert(s.end(), rest.begin(), rest.end());
    merged.push_back(s);
  }
  if (merged.size() == 1) return merged[0];
  return {strand{-1, merged}};
}

inline int count_leaves(strands const& s) {
  int n = 0;
  for (strand const& x : s) {
    n += x.node >= 0;
    for (strands const& b : x.branches) n += count_leaves(b);
  }
  return n;
}

inline int to_expr(sp_expr& e, strands const& s) {
  std::vector<int> parts;
  for (strand const& x : s) {
    if (x.node >= 0) {
      parts.push_back(e.leaf(x.node));
      continue;
    }
    std::vector<int> side;
    for (strands const& b : x.branches) side.push_back(to_expr(e, b));
    parts.push_back(e.parallel(side));
  }
  return e.series(parts);
}

}  // namespace detail

/// How runs that start alike are treated.
enum class duplication : unsigned char { naive, coalesced };

/// A tree with the critical path of the graph and no added dependency, in which nodes occur several times:
/// before a node stand, side by side, the trees of its predecessors. `coalesced` shares common starts, which
/// gives far fewer copies.
/// Laws: critical_path(t, w) == longest_path(g, w).length for all w; the set of leaves is the set of nodes.
/// The result can be exponential in V: throws `error` beyond `limit` leaves, on a cycle and on the empty
/// graph.
template <topology G>
sp_tree relax_by_duplication(G const& g, duplication how = duplication::coalesced, int limit = 100'000) {
  adjacency const& a = detail::as_adjacency(g);
  int const n = a.node_count();
  if (n == 0) throw error("the empty graph has no series-parallel tree", "duplication", "at least one node");
  std::vector<detail::strands> upto(idx(n), detail::strands{}), ends;
  auto const side_by_side = [how](std::vector<detail::strands> runs) -> detail::strands {
    if (how == duplication::coalesced) return detail::coalesce(runs);
    if (runs.empty()) return {};
    return {detail::strand{-1, std::move(runs)}};
  };
  for (int v : detail::topological_order(a)) {
    std::vector<detail::strands> runs;
    for (int u : a.predecessors(v)) runs.push_back(upto[idx(u)]);
    detail::strands& mine = upto[idx(v)];
    mine = side_by_side(std::move(runs));
    mine.push_back({v, {}});
    if (detail::count_leaves(mine) > limit)
      throw error("duplicating work gives more than " + std::to_string(limit) + " leaves",
                  "node " + std::to_string(v), "a larger limit, or a relaxation that adds dependencies");
    if (a.successors(v).empty()) ends.push_back(mine);
  }
  sp_expr e;
  int const root = detail::to_expr(e, side_by_side(std::move(ends)));
  return normalise(e, root);
}

}  // namespace tensorpar::graph
