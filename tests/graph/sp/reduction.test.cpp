// tests/graph/sp/reduction.test.cpp - the reduction says of every graph what trying all decompositions says, in any numbering
#include <doctest/doctest.h>
#include "support/graph_oracles.hpp"
#include <tensorpar/graph/sp/ordered.hpp>
#include <tensorpar/graph/sp/reduction.hpp>

using namespace tests;
using namespace tensorpar;

TEST_CASE("series-parallel or not: as the slow decomposition says, ordered nodes and shuffled ones alike") {
  random_source r{21};
  int yes = 0, no = 0;
  for (int round = 0; round < 400; ++round) {
    int const n = 1 + r.below(7);
    lists const g = random_dag(r, n, 20 + r.below(50), false);
    bool const expected = decompose_slowly(g).has_value();
    CAPTURE(text(g));
    graph::detail::sp_reduction const ordered = graph::detail::reduce_ordered(g, n, nullptr);
    CHECK(ordered.ok == expected);
    CHECK(graph::is_series_parallel(g) == expected);
    CHECK(graph::is_series_parallel(renamed(g, r.permutation(n))) == expected);
    if (expected) {
      CHECK(ordered.leaves == n);
      CHECK(ordered.pairs == n - 1);  // every pair joins two parts
      CHECK(ordered.root == (n == 1 ? 0 : 2 * n - 2));
    }
    (expected ? yes : no) += 1;
  }
  CHECK(yes > 20);
  CHECK(no > 20);
}

TEST_CASE("the empty graph and cycles are not series-parallel, ids out of range are refused") {
  CHECK(!graph::is_series_parallel(lists{}));
  CHECK(!graph::is_series_parallel(lists{{1}, {0}}));
  CHECK_THROWS_AS(graph::is_series_parallel(lists{{}, {7}}), error);
}
