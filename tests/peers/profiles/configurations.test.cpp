// tests/peers/profiles/configurations.test.cpp - which nodes give up memory for time, so that a stage fits
#include <tensorpar/peers/profiles/configurations.hpp>
#include <tensorpar/core/index.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "support/effort.hpp"
#include "support/random_graph.hpp"

using namespace tensorpar;
using namespace tensorpar::peers;
using tests::random_source;

TEST_CASE("the knapsack is the best of all subsets; greedy and a part of a swap bound it") {
  for (u64 seed = 0; seed < static_cast<u64>(test_effort::cases(2000)); ++seed) {
    random_source r{seed};
    std::vector<memory_swap> swaps;
    int const kinds = 1 + r.below(3);
    for (int i = 0, n = r.below(11); i < n; ++i) swaps.push_back({1.0 + r.below(kinds) * 3, 0.1 * r.below(20)});
    double const needed = r.below(25);
    double want = std::numeric_limits<double>::infinity();
    for (unsigned s = 0; s < 1u << swaps.size(); ++s) {
      double saved = 0, extra = 0;
      for (std::size_t i = 0; i < swaps.size(); ++i)
        if (s >> i & 1) saved += swaps[i].saved, extra += swaps[i].extra;
      if (saved >= needed) want = std::min(want, extra);
    }
    swap_choice const got = min_swaps(swaps, needed), greedy = greedy_swaps(swaps, needed);
    CAPTURE(seed);
    REQUIRE(got.feasible == (want < 1e300));
    REQUIRE(greedy.feasible == got.feasible);
    swap_bounds const bounds = bounds_of_swaps(swaps, needed);
    REQUIRE((bounds.greedy < 1e300) == got.feasible);
    if (!got.feasible) continue;
    REQUIRE(bounds.fractional <= want + 1e-9);
    REQUIRE(std::abs(bounds.greedy - greedy.extra) < 1e-9);
    REQUIRE(got.exact);
    REQUIRE(std::abs(got.extra - want) < 1e-9);
    REQUIRE(greedy.extra >= got.extra - 1e-9);
    double saved = 0, extra = 0;
    for (int i : got.taken) saved += swaps[idx(i)].saved, extra += swaps[idx(i)].extra;
    REQUIRE(saved >= needed);
    REQUIRE(std::abs(extra - got.extra) < 1e-9);
  }
}

TEST_CASE("swaps are in the order of their price, ties as given, and a search cut short says so") {
  CHECK(priced_swaps({{4, 2}, {1, 1}, {2, 1}, {8, 0}}).order == std::vector<int>{3, 0, 2, 1});
  CHECK(greedy_swaps(std::vector<memory_swap>{{4, 2}, {1, 1}}, 0).taken.empty());
  CHECK(!greedy_swaps(std::vector<memory_swap>{{4, 2}, {1, 1}}, 6).feasible);
  random_source r{3};
  std::vector<memory_swap> many;
  double all = 0;
  for (int i = 0; i < 60; ++i) {
    many.push_back({1000.0 + r.below(1000), 1000.0 + r.below(1000)});
    all += many.back().saved;
  }
  swap_choice const cut = min_swaps(many, all / 2, 100), whole = min_swaps(many, all / 2);
  CHECK(!cut.exact);
  CHECK(whole.exact);
  CHECK(whole.extra <= cut.extra);
  CHECK(cut.extra <= greedy_swaps(many, all / 2).extra);
}
