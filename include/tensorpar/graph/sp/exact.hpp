// tensorpar/graph/sp/exact.hpp - the best series-parallel relaxation of a small graph, by dynamic programming
// over sets of nodes
#pragma once
#include <bit>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/reachability.hpp>
#include <tensorpar/graph/sp/tree.hpp>
#include <vector>

namespace tensorpar::graph {

/// The tree with the least critical path of all that keep the dependencies; among the cuts of each set of
/// nodes, the fewest added pairs. 3^V steps, 2^V memory. Throws `error` on a cycle, on the empty graph and on
/// more than 16 nodes.
template <topology G, node_weights W = detail::unit_weight>
sp_tree relax_exactly(G const& g, W const& weight = {}) {
  using T = detail::weight_type<W>;
  reachability const reach(g);
  int const n = reach.node_count();
  if (n < 1 || n > 16)
    throw error("an exact series-parallel relaxation of " + std::to_string(n) + " nodes", "relax_exactly",
                "1 to 16 nodes");
  std::vector<unsigned> above(idx(n), 0), below(above);
  for (int u = 0; u < n; ++u)
    for (int v = 0; v < n; ++v)
      if (reach.reaches(u, v)) {
        above[idx(v)] |= 1u << u;
        below[idx(u)] |= 1u << v;
      }
  struct best {
    T cost{};
    int added = -1;
    unsigned part = 0;
    bool series = false;
  };
  std::vector<best> of(std::size_t{1} << n);
  for (unsigned set = 1; set < of.size(); ++set) {
    best& b = of[set];
    int const low = std::countr_zero(set);
    if ((set & (set - 1)) == 0) {
      b = {detail::weight_at(weight, low), 0, set, false};
      continue;
    }
    for (unsigned part = (set - 1) & set; part; part = (part - 1) & set) {
      unsigned const rest = set & ~part;
      bool upper = true, apart = true;  // nothing of rest before part; nothing of one before the other
      int pairs = 0;
      for (unsigned p = part; p; p &= p - 1) {
        auto const u = idx(std::countr_zero(p));
        upper = upper && !(above[u] & rest);
        apart = apart && !((above[u] | below[u]) & rest);
        pairs += std::popcount(rest & ~below[u]);
      }
      best const &x = of[part], &y = of[rest];
      auto const consider = [&b, part](T cost, int added, bool series) {
        if (b.added < 0 || cost < b.cost || (cost == b.cost && added < b.added))
          b = {cost, added, part, series};
      };
      if (apart && (part >> low & 1)) consider(x.cost < y.cost ? y.cost : x.cost, x.added + y.added, false);
      if (upper) consider(x.cost + y.cost, x.added + y.added + pairs, true);
    }
  }
  sp_expr e;
  auto const build = [&](auto const& self, unsigned set) -> int {  // depth at most V
    best const& b = of[set];
    if ((set & (set - 1)) == 0) return e.leaf(std::countr_zero(set));
    int const x = self(self, b.part), y = self(self, set & ~b.part);
    return b.series ? e.series({x, y}) : e.parallel({x, y});
  };
  int const root = build(build, static_cast<unsigned>(of.size() - 1));
  return normalise(e, root);
}

}  // namespace tensorpar::graph
