// tests/graph/sp/measure.test.cpp
#include <doctest/doctest.h>
#include "support/graph_oracles.hpp"
#include <tensorpar/graph/digraph.hpp>
#include <tensorpar/graph/reachability.hpp>
#include <tensorpar/graph/sp/measure.hpp>

using namespace tensorpar;

TEST_CASE("leaves, work and critical path") {
  sp_tree const t = sp_tree::parse("S(0,P(S(1,3),2),4)");
  std::vector<double> const w{1, 2, 10, 3, 0.5};
  CHECK(leaves(t) == std::vector<int>{0, 1, 3, 2, 4});
  CHECK(work(t, w) == 16.5);
  CHECK(critical_path(t, w) == 11.5);
  CHECK(work(t) == 5);
  CHECK(critical_path(t) == 4);
  CHECK(work(sp_tree::parse("S(1,P(1,2))"), w) == 14);  // a node twice is done twice
}

TEST_CASE("dependencies kept or not") {
  digraph const chain(3, {{0, 1}, {1, 2}});
  CHECK(keeps_dependencies(chain, sp_tree::parse("S(0,1,2)")));
  CHECK_FALSE(keeps_dependencies(chain, sp_tree::parse("S(1,0,2)")));
  CHECK_FALSE(keeps_dependencies(chain, sp_tree::parse("S(0,1)")));
  CHECK_FALSE(keeps_dependencies(chain, sp_tree::parse("S(0,1,2,3)")));
  CHECK_FALSE(keeps_dependencies(chain, sp_tree::parse("S(0,1,1,2)")));
  digraph const apart(3);
  CHECK(keeps_dependencies(apart, sp_tree::parse("P(0,1,2)")));
  CHECK_FALSE(keeps_dependencies(apart, sp_tree::parse("P(0,2)")));
  digraph const rhombus(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  CHECK(keeps_dependencies(rhombus, sp_tree::parse("S(0,P(1,2),3)")));
  CHECK(keeps_dependencies(rhombus, sp_tree::parse("S(0,1,2,3)")));
  CHECK_FALSE(keeps_dependencies(rhombus, sp_tree::parse("P(0,S(1,3),2)")));
  digraph const diamond(6, {{0, 1}, {0, 2}, {1, 3}, {1, 4}, {2, 4}, {3, 5}, {4, 5}});
  for (char const* s : {"S(0,P(1,2),P(3,4),5)", "S(0,1,2,P(3,4),5)", "S(0,P(1,2),3,4,5)"})
    CHECK(keeps_dependencies(diamond, sp_tree::parse(s)));
  CHECK_FALSE(keeps_dependencies(diamond, sp_tree::parse("S(0,P(1,2,4),3,5)")));
}

TEST_CASE("the order of a tree, its cover edges, its paths") {
  tests::random_source r{61};
  for (int i = 0; i < 300; ++i) {
    int const n = 1 + r.below(14);
    sp_tree const t = tests::random_sp_tree(r, n);
    tests::lists const g = tests::graph_of(t, n);
    tests::matrix const m = tests::closure(g);
    sp_order const order(t, n);
    for (int u = 0; u < n; ++u)
      for (int v = 0; v < n; ++v) CHECK(order.precedes(u, v) == static_cast<bool>(m[tests::at(u)][tests::at(v)]));
    CHECK(digraph(transitive_reduction(g)) == digraph(g));  // cover edges are not implied by others
    CHECK(keeps_dependencies(g, t));
    auto const w = tests::random_weights(r, n);
    CHECK(critical_path(t, w) == tests::longest(g, w));
    int sum = 0;
    for (int x : w) sum += x;
    CHECK(work(t, w) == sum);
  }
}
