// tests/graph/edge.test.cpp - edges compare by tail, then head
#include <doctest/doctest.h>
#include <tensorpar/graph/edge.hpp>

using tensorpar::graph::edge;

TEST_CASE("edges are ordered by tail, then head, and equal if both are") {
  static_assert(tensorpar::graph::edge{1, 2} == tensorpar::graph::edge{1, 2} &&
                tensorpar::graph::edge{1, 2} != tensorpar::graph::edge{2, 1});
  static_assert(tensorpar::graph::edge{0, 9} < tensorpar::graph::edge{1, 0} && tensorpar::graph::edge{1, 0} < tensorpar::graph::edge{1, 1});
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b)
      for (int c = 0; c < 3; ++c)
        for (int d = 0; d < 3; ++d) CHECK((tensorpar::graph::edge{a, b} < tensorpar::graph::edge{c, d}) == (a * 3 + b < c * 3 + d));
}
