// tests/graph/sp/series_parallel.test.cpp - recognition and decomposition, against two slow versions and against all small orders
#include <doctest/doctest.h>
#include "support/graph_oracles.hpp"
#include "support/networks.hpp"
#include "support/shrink.hpp"
#include <tensorpar/graph/digraph.hpp>
#include <tensorpar/graph/reachability.hpp>
#include <tensorpar/graph/sp/series_parallel.hpp>

using namespace tensorpar;
using tests::lists;

namespace {

std::string tree(int n, std::vector<graph::edge> const& e) {
  auto const t = graph::sp_decomposition(graph::digraph(n, e));
  CHECK(t.has_value() == graph::is_series_parallel(graph::digraph(n, e)));
  return t ? graph::to_string(*t) : "none";
}

std::string loose(lists const& g, std::vector<int> const& leading) {
  auto const t = graph::sp_decomposition(g, [&](int v) { return std::find(leading.begin(), leading.end(), v) != leading.end(); });
  return t ? graph::to_string(*t) : "none";
}

/// Everything that must be true of the answer for one graph.
bool right(lists const& g) {
  auto const t = graph::sp_decomposition(g);
  if (t.has_value() != graph::is_series_parallel(g) || t != tests::decompose_slowly(g)) return false;
  if (!t) return true;
  std::vector<graph::edge> covers;
  for (auto [u, v] : graph::cover_edges(*t)) covers.push_back({u, v});
  return graph::keeps_dependencies(g, *t) && graph::edges(graph::transitive_reduction(g)) == covers;
}

}  // namespace

TEST_CASE("basic graphs") {
  CHECK(tree(0, {}) == "none");
  CHECK(tree(1, {}) == "0");
  CHECK(tree(2, {}) == "P(0,1)");
  CHECK(tree(2, {{0, 1}}) == "S(0,1)");
  CHECK(tree(3, {{0, 1}, {0, 2}}) == "S(0,P(1,2))");
  CHECK(tree(6, {{0, 1}, {0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 5}}) == "S(0,P(S(1,3),S(2,4)),5)");
  CHECK(tree(4, {{0, 2}, {0, 3}, {1, 2}, {1, 3}}) == "S(P(0,1),P(2,3))");
  CHECK(tree(4, {{0, 2}, {1, 2}, {1, 3}}) == "none");
  CHECK(tree(4, {{0, 1}, {0, 2}, {1, 2}, {1, 3}, {2, 3}}) == "S(0,1,2,3)");
  CHECK(tree(2, {{0, 1}, {1, 0}}) == "none");
  CHECK(tree(1, {{0, 0}}) == "none");
  CHECK(tree(4, {{3, 2}, {2, 1}, {1, 0}, {3, 0}}) == "S(3,2,1,0)");
}

TEST_CASE("all orders of up to five nodes: the known numbers of series-parallel ones") {
  // labelled partial orders: 1, 3, 19, 219, 4231; series-parallel ones: 1, 3, 19, 195, 2791
  int const orders[] = {0, 1, 3, 19, 219, 4231}, series_parallel[] = {0, 1, 3, 19, 195, 2791};
  for (int n = 1; n <= 5; ++n) {
    int all = 0, yes = 0, wrong = 0;
    for (unsigned bits = 0; bits < (1u << (n * (n - 1))); ++bits) {
      unsigned rel[5] = {}, k = 0;  // rel[u]: everything after u
      for (int u = 0; u < n; ++u)
        for (int v = 0; v < n; ++v)
          if (u != v && (bits >> k++ & 1)) rel[u] |= 1u << v;
      bool order = true;
      for (int u = 0; u < n && order; ++u)
        for (int v = 0; v < n && order; ++v)
          if (rel[u] >> v & 1) order = !(rel[v] >> u & 1) && (rel[u] & rel[v]) == rel[v];
      if (!order) continue;
      lists g(tests::at(n));
      for (int u = 0; u < n; ++u)
        for (int v = 0; v < n; ++v)
          if (rel[u] >> v & 1) g[tests::at(v)].push_back(u);
      bool const sp = graph::is_series_parallel(g);
      ++all;
      yes += sp;
      wrong += sp != tests::free_of_n(tests::closure(g));
    }
    CHECK(all == orders[n]);
    CHECK(yes == series_parallel[n]);
    CHECK(wrong == 0);
  }
}

TEST_CASE("random graphs: recognition, decomposition and both slow versions agree") {
  auto const make = [](auto& r) { return tests::random_dag(r, r.below(10), 5 + r.below(60)); };
  CHECK(tests::counterexample(101, 3000, make, right) == "");
  auto const n_free = [](lists const& g) { return g.empty() || graph::is_series_parallel(g) == tests::free_of_n(tests::closure(g)); };
  CHECK(tests::counterexample(103, 1500, make, n_free) == "");
}

TEST_CASE("random trees come back from their graphs, with implied and repeated edges and any names") {
  tests::random_source r{107};
  for (int i = 0; i < 1500; ++i) {
    int const n = 1 + r.below(25);
    graph::sp_tree const t = tests::random_sp_tree(r, n);
    lists const g = tests::graph_of(t, n, &r, r.below(50));
    auto const found = graph::sp_decomposition(g);
    REQUIRE(found.has_value());
    if (*found != t) FAIL(graph::to_string(t) << " came back as " << graph::to_string(*found) << " from " << tests::text(g));
  }
}

TEST_CASE("almost series-parallel: one edge more or less in a larger graph") {
  auto const make = [](auto& r) {
    int const n = 6 + r.below(14);
    lists g = tests::graph_of(tests::random_sp_tree(r, n), n, &r, 15);
    auto const order = graph::topological_order(g);
    int const i = r.below(n - 1), j = i + 1 + r.below(n - 1 - i);
    g[tests::at(order[tests::at(j)])].push_back(order[tests::at(i)]);
    auto& some = g[tests::at(r.below(n))];
    if (!some.empty() && r.chance(50)) some.pop_back();
    return g;
  };
  CHECK(tests::counterexample(109, 1500, make, right) == "");
}

TEST_CASE("the order of edges and the names of nodes do not matter") {
  tests::random_source r{113};
  for (int i = 0; i < 300; ++i) {
    lists g = tests::random_dag(r, 1 + r.below(9), 30);
    auto const t = graph::sp_decomposition(g);
    auto const name = r.permutation(static_cast<int>(g.size()));
    lists h = tests::renamed(g, name);
    for (auto& p : h) std::reverse(p.begin(), p.end());
    auto const renamed_tree = graph::sp_decomposition(h);
    REQUIRE(t.has_value() == renamed_tree.has_value());
    if (!t) continue;
    graph::sp_expr e;
    std::vector<int> handle, parts;
    for (int k = 0; k < t->size(); ++k) {
      parts.clear();
      for (int p : t->parts(k)) parts.push_back(handle[tests::at(p)]);
      handle.push_back(t->kind(k) == graph::sp_kind::leaf ? e.leaf(name[tests::at(t->node(k))]) : e.compose(t->kind(k), parts));
    }
    CHECK(graph::normalise(e, handle.back()) == *renamed_tree);
  }
}

TEST_CASE("weights and inputs") {
  CHECK(loose({}, {}) == "none");
  CHECK(loose({{}}, {0}) == "0");
  CHECK(loose({{}, {}, {}, {0, 1, 2}}, {0, 1, 2}) == "S(P(0,1,2),3)");
  // w1, input, w2, op1, op2: both operators read the input and a weight of their own
  CHECK(loose({{}, {}, {}, {0, 1}, {2, 1}}, {0, 1, 2}) == "S(P(0,1,2),P(3,4))");
  // two chains side by side stay so: the graph as it is comes first
  CHECK(loose({{}, {}, {0}, {1}}, {0, 1}) == "P(S(0,2),S(1,3))");
  // input 0 feeds 1 and 2; 1 feeds 3; 1 and 2 feed 4
  CHECK(loose({{}, {0}, {0}, {1}, {1, 2}}, {0}) == "none");
  // w1-p1 (0,3), input-p2-p3 (1,4,5), w2-p4-p5 (2,6,7); p3 -> op0 (8) -> op1 (9) with p1; p3, p5 -> op2 (10)
  CHECK(loose({{}, {}, {}, {0}, {1}, {4}, {2}, {6}, {5}, {8, 3}, {5, 7}}, {0, 1, 2, 3, 4, 5, 6, 7}) ==
        "S(P(S(0,3),S(1,4,5),S(2,6,7)),P(S(8,9),10))");
  CHECK(loose({{}, {}}, {0, 1}) == "P(0,1)");
  CHECK_THROWS_AS(loose({{1}, {0}}, {}), error);
}

TEST_CASE("weights and inputs: the imagined node does what all edges would") {
  auto const property = [](lists const& g) {
    int const n = static_cast<int>(g.size());
    auto const leading = [](int v) { return v % 3 != 0; };
    std::vector<char> lead(g.size(), 0), target(g.size(), 0), feeds(g.size(), 0);
    for (int v : graph::topological_order(g)) {
      bool all = leading(v);
      for (int u : g[tests::at(v)]) all = all && lead[tests::at(u)];
      lead[tests::at(v)] = all;
      for (int u : g[tests::at(v)])
        if (!all && lead[tests::at(u)]) target[tests::at(v)] = feeds[tests::at(u)] = 1;
    }
    lists full = g;
    for (int u = 0; u < n; ++u)
      for (int v = 0; v < n; ++v)
        if (feeds[tests::at(u)] && target[tests::at(v)]) full[tests::at(v)].push_back(u);
    auto expected = graph::sp_decomposition(g);
    if (!expected) expected = graph::sp_decomposition(full);
    return graph::sp_decomposition(g, leading) == expected;
  };
  CHECK(tests::counterexample(127, 3000, [](auto& r) { return tests::random_dag(r, 1 + r.below(10), 10 + r.below(40)); }, property) == "");
}

TEST_CASE("the networks of the literature are series-parallel once weights and inputs are set aside") {
  for (tests::network const& net : tests::all_networks()) {
    CAPTURE(net.name);
    auto const t = graph::sp_decomposition(net.before, [&](int v) { return net.leads[tests::at(v)]; });
    REQUIRE(t.has_value());
    CHECK(graph::keeps_dependencies(net.before, *t));
  }
  CHECK_FALSE(graph::is_series_parallel(tests::nasnet_cell().before));
}

// No clock: quadratic work on so many nodes would not end within the time that ctest gives.
TEST_CASE("linear work: 100,000 nodes") {
  int const n = 99'999;
  lists chain(tests::at(n)), residual(tests::at(n)), ladder(tests::at(n)), fan(tests::at(n));
  for (int v = 1; v < n; ++v) {
    chain[tests::at(v)] = {v - 1};
    residual[tests::at(v)] = v % 3 == 0 ? std::vector{v - 1, v - 3, v - 2} : std::vector{v - 1};
    ladder[tests::at(v)] = v % 2 == 0 || v == 1 ? std::vector{v > 1 ? v - 2 : 0} : std::vector{v - 1, v - 2};
    fan[tests::at(v)] = {v == n - 1 ? 1 : 0};
    if (v == n - 1)
      for (int u = 2; u < n - 1; ++u) fan[tests::at(v)].push_back(u);
  }
  CHECK(graph::sp_decomposition(chain)->size() == n + 1);
  CHECK(graph::sp_decomposition(residual)->size() == n + 1);
  CHECK_FALSE(graph::is_series_parallel(ladder));
  CHECK(graph::sp_decomposition(fan)->size() == n + 2);
  tests::random_source r{131};
  lists const g = tests::graph_of(tests::random_sp_tree(r, 3000), 3000);
  CHECK(graph::is_series_parallel(g));
}
