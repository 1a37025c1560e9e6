// tests/support/graph_oracles.hpp - slow and obvious versions of the graph algorithms
#pragma once
#include <optional>
#include <tensorpar/graph/sp/tree.hpp>
#include "random_graph.hpp"

namespace tests {

using matrix = std::vector<std::vector<char>>;

/// Warshall.
inline matrix closure(lists const& g) {
  std::size_t const n = g.size();
  matrix m(n, std::vector<char>(n, 0));
  for (std::size_t v = 0; v < n; ++v)
    for (int u : g[v]) m[at(u)][v] = 1;
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t u = 0; u < n; ++u)
      for (std::size_t v = 0; v < n; ++v) m[u][v] = m[u][v] || (m[u][k] && m[k][v]);
  return m;
}

/// A finite order is series-parallel exactly if it contains no N: a < c, b < c, b < d and no other relation among the four.
inline bool free_of_n(matrix const& m) {
  std::size_t const n = m.size();
  auto const apart = [&](std::size_t x, std::size_t y) { return !m[x][y] && !m[y][x]; };
  for (std::size_t a = 0; a < n; ++a)
    for (std::size_t b = 0; b < n; ++b)
      for (std::size_t c = 0; c < n; ++c)
        for (std::size_t d = 0; d < n; ++d)
          if (a != b && c != d && m[a][c] && m[b][c] && m[b][d] && apart(a, b) && apart(c, d) && apart(a, d)) return false;
  return true;
}

/// One step at a time on the closed order: two elements with the same elements above and below are put together, in series if one
/// precedes the other and nothing stands between, else in parallel. Ends with one element exactly if the order is series-parallel.
inline std::optional<tensorpar::graph::sp_tree> decompose_slowly(lists const& g) {
  if (g.empty()) return std::nullopt;
  matrix m = closure(g);
  tensorpar::graph::sp_expr e;
  std::vector<int> handle;
  std::vector<std::size_t> live;
  for (std::size_t v = 0; v < g.size(); ++v) {
    if (m[v][v]) return std::nullopt;
    handle.push_back(e.leaf(static_cast<int>(v)));
    live.push_back(v);
  }
  auto const twins = [&](std::size_t x, std::size_t y) {
    for (std::size_t z : live)
      if (z != x && z != y && (m[x][z] != m[y][z] || m[z][x] != m[z][y])) return false;
    return true;
  };
  auto const step = [&] {
    for (std::size_t x : live)
      for (std::size_t i = 0; i < live.size(); ++i) {
        std::size_t const y = live[i];
        if (x == y || m[y][x] || !twins(x, y)) continue;
        handle[x] = m[x][y] ? e.series({handle[x], handle[y]}) : e.parallel({handle[x], handle[y]});
        live.erase(live.begin() + static_cast<std::ptrdiff_t>(i));
        return true;
      }
    return false;
  };
  while (live.size() > 1)
    if (!step()) return std::nullopt;
  return tensorpar::graph::normalise(e, handle[live[0]]);
}

/// The heaviest path by trying all of them.
inline int longest(lists const& g, std::vector<int> const& w) {
  std::vector<int> memo(g.size(), -1);
  auto const upto = [&](auto const& self, std::size_t v) -> int {
    if (memo[v] >= 0) return memo[v];
    int best = 0;
    for (int u : g[v]) best = std::max(best, self(self, at(u)));
    return memo[v] = best + w[v];
  };
  int best = 0;
  for (std::size_t v = 0; v < g.size(); ++v) best = std::max(best, upto(upto, v));
  return best;
}

inline std::vector<int> random_weights(random_source& r, int n) {
  std::vector<int> w;
  for (int v = 0; v < n; ++v) w.push_back(r.chance(20) ? 10 * r.below(20) : r.below(8));
  return w;
}

}  // namespace tests
