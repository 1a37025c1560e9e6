// tests/search/problem/evaluate.test.cpp - where pairs of operators count, what an assignment costs, and how many bytes it takes
#include <tensorpar/search/problem/evaluate.hpp>
#include <doctest/doctest.h>

#include "handmade.hpp"

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::search_test;

namespace {
std::vector<choice> halves(double first, double second, double both, i64 bytes) {
  return {{0, 1, first, bytes}, {1, 1, second, bytes}, {0, 2, both, bytes / 2}};
}
}  // namespace

TEST_CASE("a pair counts where its operators first lie together, whatever lies between") {
  mapping_problem p = handmade(2, "S(0,P(1,2),3)", {halves(1, 1, 1, 8), halves(1, 1, 1, 8), halves(1, 1, 1, 8), halves(1, 1, 1, 8)});
  connect(p, 0, 1, [](int, int) { return 1.0; });
  connect(p, 1, 2, [](int, int) { return 1.0; });
  connect(p, 0, 3, [](int, int) { return 1.0; });
  auto const at = pairs_at(p);
  std::vector<int> seen(p.pairs.size(), 0);
  for (int e = 0; e < p.tree.size(); ++e)
    for (int k : at[static_cast<std::size_t>(e)]) {
      ++seen[static_cast<std::size_t>(k)];
      if (k == 1) CHECK(p.tree[e].kind == graph::sp_kind::parallel);
      else CHECK(p.tree[e].kind == graph::sp_kind::series);
      if (k == 2) CHECK(e == p.tree.root());
    }
  CHECK(seen == std::vector<int>{1, 1, 1});
}

TEST_CASE("in sequence times add up, side by side the longer counts, and what is exchanged always does") {
  mapping_problem p = handmade(2, "S(0,P(1,2))", {halves(4, 4, 2, 8), halves(3, 5, 9, 8), halves(6, 2, 9, 8)});
  connect(p, 0, 1, [](int i, int j) { return i == 2 && j == 0 ? 10.0 : 0.0; });
  evaluator const price(p);
  CHECK(price({2, 0, 1}).seconds == 2 + 3 + 10);         // max(3, 2)
  CHECK(price.seconds({2, 0, 1}) == 2 + 3 + 10);
  CHECK(price({2, 1, 0}).seconds == 2 + 6);              // max(5, 6)
  CHECK(price({2, 0, 0}).seconds == 2 + 9 + 10);         // both on the first device: one after the other
  CHECK(price({2, 2, 2}).seconds == 2 + 18);
  CHECK(price({1, 2, 2}).seconds == infinity);              // an operator with all devices to itself starts at the first
}

TEST_CASE("bytes add up on every device that an operator uses") {
  mapping_problem const p = handmade(2, "S(0,1)", {halves(1, 1, 1, 8), halves(1, 1, 1, 6)});
  CHECK(assignment_bytes(p, {0, 0}) == std::vector<i64>{14, 0});
  CHECK(assignment_bytes(p, {0, 1}) == std::vector<i64>{8, 6});
  CHECK(assignment_bytes(p, {2, 1}) == std::vector<i64>{4, 10});
  CHECK(evaluator(p)({2, 2}).bytes == std::vector<i64>{7, 7});
}
