// tests/graph/convexity.test.cpp
#include <doctest/doctest.h>
#include "support/graph_oracles.hpp"
#include <algorithm>
#include <tensorpar/graph/convexity.hpp>
#include <tensorpar/graph/digraph.hpp>

using namespace tensorpar;

TEST_CASE("convex sets of a diamond") {
  graph::digraph const g(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  CHECK(graph::is_convex(g, {}));
  CHECK(graph::is_convex(g, {0, 1}));
  CHECK(graph::is_convex(g, {1, 2}));
  CHECK_FALSE(graph::is_convex(g, {0, 3}));
  CHECK_FALSE(graph::is_convex(g, {0, 1, 3}));
  CHECK(graph::convex_closure(g, {3, 0}) == std::vector<int>{0, 1, 2, 3});
  CHECK(graph::convex_closure(g, {2}) == std::vector<int>{2});
  CHECK(graph::convex_closure(g, {}).empty());
  CHECK_THROWS_AS((void)graph::is_convex(g, {4}), error);
  CHECK_THROWS_AS((void)graph::convex_closure(g, {-1}), error);
}

TEST_CASE("convexity by definition; the closure is the smallest convex set around") {
  tests::random_source r{31};
  int not_convex = 0;
  for (int i = 0; i < 300; ++i) {
    int const n = 1 + r.below(8);
    tests::lists const g = tests::random_dag(r, n, 35);
    tests::matrix const m = tests::closure(g);
    auto const convex = [&](unsigned s) {
      for (int a = 0; a < n; ++a)
        for (int x = 0; x < n; ++x)
          for (int b = 0; b < n; ++b) {
            bool const leaves_and_returns = (s >> a & 1) && (s >> b & 1) && !(s >> x & 1);
            if (leaves_and_returns && m[tests::at(a)][tests::at(x)] && m[tests::at(x)][tests::at(b)]) return false;
          }
      return true;
    };
    auto const nodes = [&](unsigned s) {
      std::vector<int> v;
      for (int a = 0; a < n; ++a)
        if (s >> a & 1) v.push_back(a);
      return v;
    };
    unsigned const set = static_cast<unsigned>(r.below(1 << n));
    CHECK(graph::is_convex(g, nodes(set)) == convex(set));
    not_convex += !convex(set);
    unsigned smallest = (1u << n) - 1;  // convex sets are closed under intersection: the intersection of all around is the smallest
    for (unsigned s = 0; s < (1u << n); ++s)
      if ((s & set) == set && convex(s)) smallest &= s;
    CHECK(graph::convex_closure(g, nodes(set)) == nodes(smallest));
  }
  CHECK(not_convex > 30);
}
