// tests/search/branches.test.cpp - branches between forks and joins: against the dynamic program over all structures
#include <tensorpar/search/branches.hpp>
#include <doctest/doctest.h>

#include "handmade.hpp"
#include "random_problem.hpp"
#include <support/effort.hpp>
#include <tensorpar/search/exact.hpp>
#include <tensorpar/search/objective.hpp>

using namespace tensorpar;
using namespace tensorpar::search_test;

namespace {

double exact_least(mapping_problem const& p) {
  auto const r = exact_mappings(p, {false, false, 1'000'000'000});
  REQUIRE(r);
  return r->front().cost.seconds;
}
mapping_problem problem_of(recipe const& r) {
  spread_limits l;
  l.max_axes = r.max_axes;
  l.replicas = r.replicas;
  objective_options o;
  o.grain = r.grain;
  o.micro_batches = r.micro_batches;
  return make_problem(r.build(), r.cluster(), arbitrary_model{r.seed}, l, o);
}
/// Empty if the bound is one, and the assignment is as dear as the bound or dearer.
std::string verdict(recipe const& r, int* exact = nullptr) {
  mapping_problem const p = problem_of(r);
  double const want = exact_least(p);
  auto const got = map_branches(p, 100'000'000);
  if (!got) return "no answer";
  double const cost = evaluator(p)(got->choices).seconds;
  if (got->bound > want * (1 + 1e-12)) return "bound " + std::to_string(got->bound) + " above the optimum " + std::to_string(want);
  if (cost < want * (1 - 1e-12)) return "cost " + std::to_string(cost) + " below the optimum " + std::to_string(want);
  if (exact) *exact += got->bound >= want * (1 - 1e-12) && cost <= want * (1 + 1e-12);
  return {};
}
/// Towers of operators of their own, from one fork or from inputs, to one join.
recipe towers(u64 seed) {
  std::mt19937_64 g(seed);
  recipe r;
  r.seed = seed;
  r.devices = 2 + pick(g, 3);
  r.grain = pick(g, 3) ? 1 : 2;
  r.extent = {pick(g, 2) ? 4 : 6};
  r.max_axes = 1 + pick(g, 2);
  bool const fork = pick(g, 2);
  if (fork) r.nodes.push_back({{}, -1, false});
  std::vector<int> ends;
  for (int k = 0, n = 2 + pick(g, 2); k < n; ++k) {
    int last = fork ? 0 : -1;
    for (int l = 0, m = 1 + pick(g, 2); l < m; ++l) {
      recipe::node x;
      if (last >= 0) x.from = {last};
      last = static_cast<int>(r.nodes.size());
      r.nodes.push_back(x);
    }
    ends.push_back(last);
  }
  r.nodes.push_back({ends, -1, false});
  return r;
}

}  // namespace

TEST_CASE("on random problems the bound is one, and is mostly the optimum") {
  int const cases = effort::cases(150);
  int exact = 0;
  for (int k = 0; k < cases; ++k) {
    recipe const r = random_recipe(static_cast<u64>(k) + 500, 5, 3);
    std::string const wrong = verdict(r, &exact);
    if (wrong.empty()) continue;
    recipe const small = shrink(r, [](recipe const& x) { return !verdict(x).empty(); });
    FAIL_CHECK(small.text() << ": " << verdict(small));
  }
  CHECK(exact > cases / 2);
}

TEST_CASE("towers between a fork, or inputs, and a join: the optimum itself") {
  for (int k = 0; k < effort::cases(60); ++k) {
    recipe const r = towers(static_cast<u64>(k));
    CAPTURE(r.text());
    mapping_problem const p = problem_of(r);
    double const want = exact_least(p);
    auto const got = map_branches(p, 100'000'000);
    REQUIRE(got);
    CHECK(got->bound == doctest::Approx(want).epsilon(1e-12));
    CHECK(evaluator(p)(got->choices).seconds == doctest::Approx(want).epsilon(1e-12));
  }
}

TEST_CASE("what branches exchange with the join is not hidden by a longer branch") {
  // two operators side by side on a device each, 1 s and 2 s; the first pays 5 s to be joined in its fast place, none in its slow one (3 s)
  mapping_problem p = handmade(2, "S(P(0,1),2)", {{{0, 1, 1, 0}, {0, 1, 3, 0}, {1, 1, 9, 0}}, {{1, 1, 2, 0}, {0, 1, 2, 0}}, {{0, 2, 1, 0}}});
  connect(p, 0, 2, [](int i, int) { return i == 0 ? 5.0 : 0.0; });
  auto const r = map_branches(p);
  REQUIRE(r);
  CHECK(r->bound == 4);                                  // max(3, 2) + 1
  CHECK(r->choices == assignment{1, 0, 0});
  CHECK(evaluator(p)(r->choices).seconds == 4);
}

TEST_CASE("a budget that does not suffice gives nothing") {
  mapping_problem const p = problem_of(towers(3));
  CHECK(!map_branches(p, 3));
  CHECK(map_branches(p, 100'000'000));
}
