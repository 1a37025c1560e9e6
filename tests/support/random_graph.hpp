// tests/support/random_graph.hpp - seeded random graphs for property tests
#pragma once
#include <string>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/graph/sp/measure.hpp>
#include <utility>
#include <vector>

namespace tests {

using tensorpar::u64;
/// A graph in the plainest form: predecessor lists.
using lists = std::vector<std::vector<int>>;

inline std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// Pseudo-random numbers, the same on every machine (the standard distributions are not).
struct random_source {
  u64 state;
  u64 next() { return tensorpar::core::mix(state++); }
  int below(int n) { return static_cast<int>(next() % static_cast<u64>(n)); }
  bool chance(int percent) { return below(100) < percent; }
  std::vector<int> permutation(int n) {
    std::vector<int> p;
    for (int i = 0; i < n; ++i) p.push_back(i);
    for (int i = n - 1; i > 0; --i) std::swap(p[at(i)], p[at(below(i + 1))]);
    return p;
  }
};

inline lists renamed(lists const& g, std::vector<int> const& name) {
  lists r(g.size());
  for (std::size_t v = 0; v < g.size(); ++v)
    for (int u : g[v]) r[at(name[v])].push_back(name[at(u)]);
  return r;
}

/// An acyclic graph whose ids are in no order; `percent` of all forward pairs are edges.
inline lists random_dag(random_source& r, int n, int percent, bool shuffled = true) {
  lists g(at(n));
  for (int v = 0; v < n; ++v)
    for (int u = 0; u < v; ++u)
      if (r.chance(percent)) g[at(v)].push_back(u);
  return shuffled ? renamed(g, r.permutation(n)) : g;
}

/// A random tree over n nodes: parts of random sizes, series and parallel in turn or not.
inline tensorpar::graph::sp_tree random_sp_tree(random_source& r, int n) {
  tensorpar::graph::sp_expr e;
  std::vector<int> pieces;
  for (int v : r.permutation(n)) pieces.push_back(e.leaf(v));
  while (pieces.size() > 1) {
    int const k = std::min(static_cast<int>(pieces.size()), 2 + r.below(3)), from = r.below(static_cast<int>(pieces.size()) - k + 1);
    std::vector<int> const parts(pieces.begin() + from, pieces.begin() + from + k);
    pieces.erase(pieces.begin() + from, pieces.begin() + from + k);
    pieces.insert(pieces.begin() + from, e.compose(r.chance(50) ? tensorpar::graph::sp_kind::series : tensorpar::graph::sp_kind::parallel,
                                                   parts));
  }
  return tensorpar::graph::normalise(e, pieces[0]);
}

/// A graph with exactly the order of the tree: its cover edges, and some edges implied by them.
inline lists graph_of(tensorpar::graph::sp_tree const& t, int n, random_source* extra = nullptr, int percent = 0) {
  lists g(at(n));
  for (auto [u, v] : tensorpar::graph::cover_edges(t)) g[at(v)].push_back(u);
  if (extra) {
    tensorpar::graph::sp_order const order(t, n);
    for (int u = 0; u < n; ++u)
      for (int v = 0; v < n; ++v)
        if (order.precedes(u, v) && extra->chance(percent)) g[at(v)].push_back(u);
  }
  return g;
}

inline std::string text(lists const& g) {
  std::string s = std::to_string(g.size()) + " nodes:";
  for (std::size_t v = 0; v < g.size(); ++v)
    for (int u : g[v]) s += " " + std::to_string(u) + ">" + std::to_string(v);
  return s;
}

}  // namespace tests
