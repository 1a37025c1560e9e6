// tests/search/solve/frontier.test.cpp - dominance, composition of costs
#include <doctest/doctest.h>

#include <map>
#include <random>
#include <tensorpar/search/solve/frontier.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {
std::vector<cost_point> costs(frontier<int> const& f) {
  std::vector<cost_point> r;
  for (auto const& x : f.items()) r.push_back(x.cost);
  return r;
}
cost_point joined(cost_point const& a, cost_point const& b, bool side) {
  cost_point r{seconds_of(a, b, side), {}};
  sum_bytes(a, b, r);
  return r;
}
cost_point in_sequence(cost_point const& a, cost_point const& b) { return joined(a, b, false); }
cost_point side_by_side(cost_point const& a, cost_point const& b) { return joined(a, b, true); }
}  // namespace

TEST_CASE("search: costs in sequence and side by side") {
  // flexflow-train machine_mapping_result: 2 ms, then 3 ms of reshard, then 4 ms are 9 ms; 2 ms beside 4 ms are 4 ms
  cost_point const pre{2, {}}, post{4, {}}, comm{3, {}};
  CHECK(in_sequence(in_sequence(pre, comm), post).seconds == 9);
  CHECK(side_by_side(pre, post).seconds == 4);
  CHECK(side_by_side(post, pre).seconds == 4);
  // its memory variant: series (2,2,2) + (4,4,1) + reshard 3 each way is (9,9,3); side by side takes the larger time. Bytes differ here:
  // they add up on each device, so on the same devices 3, on different ones 2 and 1
  CHECK(in_sequence(in_sequence({4, {2}}, {6, {0}}), {8, {1}}) == cost_point{18, {3}});
  CHECK(side_by_side({4, {2, 0}}, {8, {0, 1}}) == cost_point{8, {2, 1}});
}

TEST_CASE("search: a frontier keeps what nothing dominates, and the first of equals") {
  frontier<int> f;
  CHECK(f.empty());
  CHECK(f.insert({10, {6}}, 0));
  CHECK(f.insert({6, {5}}, 1));                        // better in both: the other goes
  CHECK(costs(f) == std::vector<cost_point>{{6, {5}}});
  CHECK_FALSE(f.insert({6, {5}}, 2));
  CHECK(f.items().front().label == 1);
  frontier<int> u;                                     // flexflow-train: union of two frontiers
  for (cost_point const& c : {cost_point{4, {2}}, {8, {1}}, {8, {1}}, {5, {3}}}) u.insert(c, 0);
  CHECK(costs(u) == std::vector<cost_point>{{4, {2}}, {8, {1}}});
  frontier<int> w;  // three views of one operator: upstream keeps (2.5, 2) beside (2, 2); weakly dominated is dominated
  for (cost_point const& c : {cost_point{2.5, {2}}, {2, {2}}, {3, {3}}}) w.insert(c, 0);
  CHECK(costs(w) == std::vector<cost_point>{{2, {2}}});
}

TEST_CASE("search: a frontier is what pairwise comparison leaves") {
  std::mt19937_64 g(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<cost_point> all;
    for (int i = 0; i < 30; ++i) all.push_back({static_cast<double>(g() % 8), {static_cast<i64>(g() % 8), static_cast<i64>(g() % 8)}});
    frontier<int> f;
    for (std::size_t i = 0; i < all.size(); ++i) f.insert(all[i], static_cast<int>(i));
    std::size_t expected = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      bool stays = true;
      for (std::size_t j = 0; j < all.size(); ++j)
        if (j != i && dominates(all[j], all[i])) stays = stays && all[j] == all[i] && j > i;
      if (!stays) continue;
      ++expected;
      bool found = false;
      for (auto const& x : f.items()) found = found || x.label == static_cast<int>(i);
      CHECK(found);
    }
    CHECK(f.size() == expected);
  }
}

TEST_CASE("search: frontiers by keys are what a map of them holds, in its order") {
  std::mt19937_64 g(8);
  for (int round = 0; round < 200; ++round) {
    std::size_t const width = g() % 4;
    keyed_frontiers<int> fast(width);
    std::map<std::vector<int>, frontier<int>> slow;
    for (int i = 0; i < 120; ++i) {
      std::vector<int> key(width + 1, 0);
      for (std::size_t k = 0; k < width; ++k) key[k] = static_cast<int>(g() % 5);
      cost_point const c{static_cast<double>(g() % 8), {static_cast<i64>(g() % 8)}};
      CHECK(fast[key.data()].insert(c, i) == slow[{key.begin(), key.end() - 1}].insert(c, i));
    }
    auto next = slow.begin();
    fast.release([&](int const* key, frontier<int>&& f) {
      REQUIRE(next != slow.end());
      CHECK(std::vector<int>(key, key + width) == next->first);
      CHECK(costs(f) == costs(next->second));
      CHECK(std::move(f).items().front().label == next->second.items().front().label);
      ++next;
    });
    CHECK(next == slow.end());
  }
}
