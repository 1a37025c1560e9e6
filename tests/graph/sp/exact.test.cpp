// tests/graph/sp/exact.test.cpp - the exact relaxation against all series-parallel orders there are
#include <doctest/doctest.h>
#include "support/graph_oracles.hpp"
#include <tensorpar/graph/digraph.hpp>
#include <tensorpar/graph/sp/exact.hpp>
#include <tensorpar/graph/sp/measure.hpp>

using namespace tensorpar;
using tests::lists;

namespace {

/// All labelled series-parallel orders of n <= 5 nodes, as graphs: 1, 3, 19, 195, 2791 of them.
std::vector<lists> all_orders(int n) {
  std::vector<lists> r;
  for (unsigned bits = 0; bits < (1u << (n * (n - 1))); ++bits) {
    lists g(tests::at(n));
    unsigned k = 0;
    for (int u = 0; u < n; ++u)
      for (int v = 0; v < n; ++v)
        if (u != v && (bits >> k++ & 1)) g[tests::at(v)].push_back(u);
    bool order = true;
    unsigned before[5] = {};
    for (int v = 0; v < n; ++v)
      for (int u : g[tests::at(v)]) before[v] |= 1u << u;
    for (int v = 0; v < n; ++v)
      for (int u : g[tests::at(v)]) order = order && !(before[u] >> v & 1) && (before[u] & ~before[v]) == 0;
    if (order && tests::free_of_n(tests::closure(g))) r.push_back(g);
  }
  return r;
}

}  // namespace

TEST_CASE("no series-parallel order that keeps the dependencies has a shorter critical path") {
  tests::random_source r{401};
  int relaxed = 0;
  for (int n = 1; n <= 5; ++n) {
    std::vector<lists> const orders = all_orders(n);
    for (int i = 0; i < (n < 4 ? 20 : 60); ++i) {
      lists const g = tests::random_dag(r, n, 30 + r.below(30));
      std::vector<int> const w = tests::random_weights(r, n);
      tests::matrix const m = tests::closure(g);
      int best = -1;
      for (lists const& o : orders) {
        bool keeps = true;
        for (int v = 0; v < n && keeps; ++v)
          for (int u = 0; u < n && keeps; ++u)
            keeps = !m[tests::at(u)][tests::at(v)] || std::find(o[tests::at(v)].begin(), o[tests::at(v)].end(), u) != o[tests::at(v)].end();
        if (!keeps) continue;
        int const cost = tests::longest(o, w);
        if (best < 0 || cost < best) best = cost;
      }
      graph::sp_tree const t = graph::relax_exactly(g, w);
      CHECK(graph::keeps_dependencies(g, t));
      CHECK(graph::critical_path(t, w) == best);
      relaxed += !tests::free_of_n(m);
    }
  }
  CHECK(relaxed > 5);
}

TEST_CASE("sizes") {
  CHECK(graph::to_string(graph::relax_exactly(graph::digraph(1))) == "0");
  CHECK_THROWS_AS(graph::relax_exactly(graph::digraph()), error);
  CHECK_THROWS_AS(graph::relax_exactly(graph::digraph(17)), error);
  CHECK_THROWS_AS(graph::relax_exactly(graph::digraph(2, {{0, 1}, {1, 0}})), error);
}
