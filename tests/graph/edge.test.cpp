// tests/graph/edge.test.cpp - edges compare by tail, then head
#include <doctest/doctest.h>
#include <tensorpar/graph/edge.hpp>

using tensorpar::edge;

TEST_CASE("edges are ordered by tail, then head, and equal if both are") {
  static_assert(edge{1, 2} == edge{1, 2} && edge{1, 2} != edge{2, 1});
  static_assert(edge{0, 9} < edge{1, 0} && edge{1, 0} < edge{1, 1});
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b)
      for (int c = 0; c < 3; ++c)
        for (int d = 0; d < 3; ++d) CHECK((edge{a, b} < edge{c, d}) == (a * 3 + b < c * 3 + d));
}
