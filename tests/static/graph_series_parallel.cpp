// tests/static/graph_series_parallel.cpp - recognition in constant evaluation, up to 1,000 nodes within the compilers' default limits
#include <tensorpar/graph/digraph.hpp>
#include <tensorpar/graph/sp/series_parallel.hpp>

using namespace tensorpar;

constexpr bool sp(int n, std::vector<graph::edge> const& e) { return graph::is_series_parallel(graph::digraph(n, e)); }
static_assert(!sp(0, {}) && sp(1, {}) && sp(2, {}) && sp(2, {{0, 1}}) && sp(3, {{0, 1}, {0, 2}}));
static_assert(sp(6, {{0, 1}, {0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 5}}));
static_assert(sp(4, {{0, 2}, {0, 3}, {1, 2}, {1, 3}}) && !sp(4, {{0, 2}, {1, 2}, {1, 3}}));
static_assert(sp(4, {{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3}}) && sp(4, {{3, 2}, {2, 1}, {1, 0}, {3, 0}}));
static_assert(!sp(2, {{0, 1}, {1, 0}}) && !sp(5, {{0, 1}, {1, 3}, {0, 2}, {2, 4}, {0, 4}, {1, 4}}));

struct few {
  int p[3], n;
  constexpr int const* begin() const { return p; }
  constexpr int const* end() const { return p + n; }
};
/// Residual blocks of three nodes: every skip edge is implied.
struct residual {
  int n;
  constexpr int node_count() const { return n; }
  constexpr few predecessors(int v) const { return v == 0 ? few{{}, 0} : v % 3 == 0 ? few{{v - 1, v - 3}, 2} : few{{v - 1}, 1}; }
};
/// A diamond after the other.
struct diamonds {
  int n;
  constexpr int node_count() const { return n; }
  constexpr few predecessors(int v) const { return v == 0 ? few{{}, 0} : v % 3 == 0 ? few{{v - 1, v - 2}, 2} : few{{v / 3 * 3}, 1}; }
};
/// Diamonds, and an N at the very end.
struct spoiled {
  int n;
  constexpr int node_count() const { return n; }
  constexpr few predecessors(int v) const {
    if (v < n - 4) return diamonds{n}.predecessors(v);
    return v < n - 2 ? few{{n - 5}, 1} : v == n - 2 ? few{{n - 4}, 1} : few{{n - 4, n - 3}, 2};
  }
};
static_assert(graph::is_series_parallel(residual{1000}));
static_assert(graph::is_series_parallel(diamonds{1000}));
static_assert(!graph::is_series_parallel(spoiled{1000}));
