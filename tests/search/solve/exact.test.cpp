// tests/search/solve/exact.test.cpp - the dynamic program and the price of an assignment on problems small enough for pencil and paper
#include "handmade.hpp"

#include <doctest/doctest.h>
#include <support/effort.hpp>
#include <random>
#include <tensorpar/search/solve/exact.hpp>
#include <tensorpar/search/solve/mapping.hpp>
#include <tensorpar/search/solve/reduced.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::search_test;

namespace {
// flexflow-train get_optimal_machine_mapping: 4 nodes of one device; view a (two devices) fits two nodes or more, view b three or more.
// Choices here: 0 = a on devices 0-1, 1 = b, 2 = a on devices 2-3, 3 = a on 1-2.
std::vector<choice> views(double a, double b, i64 bytes_a = 0, i64 bytes_b = 0) {
  return {{0, 2, a, bytes_a}, {0, 3, b, bytes_b}, {2, 2, a, bytes_a}, {1, 2, a, bytes_a}};
}
exact_point only(mapping_problem const& p, exact_options o = {}) {
  auto const r = exact_mappings(p, o);
  REQUIRE(r);
  REQUIRE(r->size() == 1);
  return r->front();
}
}  // namespace

TEST_CASE("search: optimal mapping of one and of two operators") {
  exact_point const leaf = only(handmade(4, "0", {views(1, 2)}));
  CHECK(leaf.cost.seconds == 1);
  CHECK(leaf.choices == assignment{0});
  for (double move : {5.0, 1.0}) {
    mapping_problem p = handmade(4, "S(0,1)", {views(1, 3), views(4, 1)});
    connect(p, 0, 1, [&](int i, int j) { return (i == 1) == (j == 1) ? 0.0 : move; });
    exact_point const x = only(p);
    CHECK(x.cost.seconds == (move > 1 ? 4 : 3));
    CHECK(x.choices == (move > 1 ? assignment{1, 1} : assignment{0, 1}));
  }
}

TEST_CASE("search: in sequence or side by side") {
  exact_point const in_series = only(handmade(4, "P(0,1)", {views(1, 3), views(4, 1)}));
  CHECK(in_series.cost.seconds == 2);
  CHECK(in_series.choices == assignment{0, 1});
  mapping_problem const p = handmade(4, "P(0,1)", {views(1, 3), views(3, 4)});
  exact_point const beside = only(p);
  CHECK(beside.cost.seconds == 3);
  CHECK(beside.choices == assignment{0, 2});           // the second on a, two devices further
  CHECK(evaluator(p)(beside.choices).seconds == 3);
  exact_point const both_b = only(handmade(4, "P(0,1)", {views(3, 1), views(4, 1)}));
  CHECK(both_b.cost.seconds == 2);
  CHECK(both_b.choices == assignment{1, 1});
}

TEST_CASE("search: what does not fit its range costs infinitely much, and so does all that contains it") {
  mapping_problem const p = handmade(4, "S(0,P(1,2))", {views(1, 1), views(1, 1), views(1, 1)});
  evaluator const price(p);
  CHECK(price({0, 0, 0}).seconds == 3);
  CHECK(price({0, 0, 2}).seconds == 2);                // side by side
  CHECK(price({0, 2, 0}).seconds == 2);                // the other way round
  CHECK(price({2, 0, 0}).seconds == infinity);            // the first has all devices, so it starts at 0
  CHECK(price({0, 2, 2}).seconds == infinity);            // nobody at device 0
  CHECK(price({0, 1, 2}).seconds == infinity);            // b takes devices 0-2
  auto const none = exact_mappings(handmade(1, "S(0,1)", {{{0, 1, 1, 0}}, {{1, 1, 1, 0}}}));
  REQUIRE(none);
  CHECK(none->empty());
  CHECK_FALSE(exact_mappings(p, {false, false, 3}));   // budget
}

TEST_CASE("search: skip connections count where their ends first meet") {
  mapping_problem p = handmade(2, "S(0,1,2)", {{{0, 1, 1, 0}}, {{0, 1, 1, 0}}, {{0, 1, 1, 0}}});
  connect(p, 0, 1, [](int, int) { return 10.0; });
  connect(p, 0, 2, [](int, int) { return 100.0; });    // no edge of the transitive reduction
  connect(p, 1, 2, [](int, int) { return 1000.0; });
  CHECK(only(p).cost.seconds == 1113);
  CHECK(evaluator(p)({0, 0, 0}).seconds == 1113);
  // a pair across parallel branches (a shared parameter) comes on top of the longer branch
  mapping_problem q = handmade(2, "P(0,1)", {{{0, 1, 5, 0}}, {{1, 1, 7, 0}}});
  connect(q, 0, 1, [](int, int) { return 2.0; });
  CHECK(only(q).cost.seconds == 9);
}

TEST_CASE("search: frontier of time and memory") {
  // flexflow-train get_optimal_machine_mapping_with_memory: three views of one operator
  exact_options with_memory;
  with_memory.memory = true;
  CHECK(only(handmade(4, "0", {{{0, 1, 2.5, 2}, {0, 1, 2, 2}, {0, 1, 3, 3}}}), with_memory).cost.seconds == 2);
  // two operators beside each other: (2.5 s, 3 bytes on its devices) side by side, (4.5 s, 2 + 1 bytes) in sequence on view b
  auto const r = exact_mappings(handmade(4, "P(0,1)", {views(2, 2.5, 3, 2), views(2.5, 2, 2, 1)}, 2), with_memory);
  REQUIRE(r);
  REQUIRE_FALSE(r->empty());
  CHECK(r->front().cost == cost_point{2.5, {3, 3, 2, 2}});
  CHECK(r->front().choices == assignment{0, 2});
  bool in_sequence_on_b = false;
  for (exact_point const& x : *r)
    in_sequence_on_b = in_sequence_on_b || (x.choices == assignment{1, 1} && x.cost == cost_point{4.5, {3, 3, 3, 0}});
  CHECK(in_sequence_on_b);
  for (exact_point const& x : *r) for (exact_point const& y : *r) CHECK((&x == &y || !dominates(x.cost, y.cost)));
}

TEST_CASE("search: bounds of reduced problems") {
  mapping_problem const p = handmade(4, "S(0,P(1,2))", {views(1, 1), views(8, 9), views(8, 9)}, 2);
  REQUIRE(branches(p));
  CHECK_FALSE(branches(handmade(4, "S(0,1)", {views(1, 1), views(1, 1)})));
  CHECK_FALSE(branches(handmade(4, "P(0,1)", {views(1, 1), views(1, 1)}, 4)));
  smaller_problem const s = in_sequence_only(p);
  for (choice_set const& c : s.problem.sets) for (ir::sharding const& x : c.shardings) CHECK(x.start == 0);
  CHECK(s.back({0, 1, 0}) == assignment{0, 1, 0});
  mapping_problem const r = relaxed_sum(p, pairs_at(p));
  CHECK(r.sets[0].seconds[0] == 1);                    // outside of branches nothing changes
  CHECK(r.sets[1].seconds[0] == 4);                    // on 2 of 4 devices: half
  CHECK(r.sets[1].seconds[1] == 9);                    // b fits the whole range alone
}

TEST_CASE("search: slower assignments than asked for are left out, and no others") {
  std::mt19937 draw(11);
  char const* const trees[] = {"S(0,P(1,2),3)", "P(S(0,1),S(2,3))", "S(0,P(1,S(2,3)))", "P(0,P(1,P(2,3)))"};
  int sooner = 0;
  for (int turn = 0; turn < test_effort::cases(200); ++turn) {
    int const devices = 2 + static_cast<int>(draw() % 3);
    auto const seconds = [&] { return static_cast<double>(1 + draw() % 12); };
    std::vector<std::vector<choice>> all(4);
    for (std::vector<choice>& some : all)
      for (int start = 0; start < devices; ++start)
        for (int size = 1; start + size <= devices; ++size) some.push_back({start, size, seconds() / size, 0});
    mapping_problem p = handmade(devices, trees[turn % 4], all);
    std::vector<double> moves;
    for (std::size_t k = 0; k < all[0].size() * all[0].size(); ++k) moves.push_back(draw() % 2 ? 0 : seconds() / 4);
    std::size_t const n = all[0].size();
    for (int v : {1, 3})
      connect(p, v - 1, v, [&](int i, int j) { return moves[static_cast<std::size_t>(i) * n + static_cast<std::size_t>(j)]; });
    exact_point const best = only(p);
    for (double share : {1.0, 1.1, 2.0}) {
      exact_point const again = only(p, {.most = best.cost.seconds * share});
      CHECK(again.cost.seconds == best.cost.seconds);
      CHECK(again.choices == best.choices);
    }
    auto const none = exact_mappings(p, {.most = best.cost.seconds * (1 - 1e-6)});
    REQUIRE(none);
    CHECK(none->empty());
    i64 enough = 1;                                    // a budget that suffices
    while (!exact_mappings(p, {.budget = enough})) enough *= 2;
    sooner += exact_mappings(p, {.budget = enough / 4, .most = best.cost.seconds}).has_value();
    mapping_options o;
    o.memory = false;
    o.enough = best.cost.seconds * 0.9;
    CHECK(best_mapping(p, o).time_bound >= o.enough * (1 - 2e-9));
    CHECK(best_mapping(p, o).time_bound <= best.cost.seconds * (1 + 1e-9));
  }
  CHECK((sooner > 0 || test_effort::slow));
}
