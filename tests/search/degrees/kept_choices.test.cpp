// tests/search/degrees/kept_choices.test.cpp - the least sum over kept choices is the least by brute force
#include <doctest/doctest.h>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/degrees/kept_choices.hpp>
#include <tensorpar/search/intra/optimize.hpp>

#include "support/small_graphs.hpp"

using namespace tensorpar;
using namespace tensorpar::search;

TEST_CASE("the least sum over kept choices is that of all assignments of them; none where an operator has none") {
  computation_graph const g = tests::residual_mlp();
  training_graph const t = differentiate(g);
  machine const on = logical(2);
  cost::analytical const model;
  choice_book<cost::analytical> book(on, model, objective_options{2, 4, 1});
  search::detail::objective_builder<cost::analytical> build(t, book);
  mapping_problem const p = build.make({}, infinity, true);
  auto const keep = [&](int set, int i) { return (i + set) % 3 != 1 || i == 0; };
  std::optional<assignment> const found = min_among(p, keep, {});
  REQUIRE(found);
  evaluator const price(p);
  double least = infinity;
  std::vector<int> now(p.sets.size(), 0);
  for (bool more = true; more;) {
    bool kept = true;
    assignment a;
    for (std::size_t s = 0; s < now.size(); ++s) kept = kept && keep(static_cast<int>(s), now[s]);
    for (int v = 0; v < p.operators(); ++v) a.push_back(now[static_cast<std::size_t>(p.set_of[static_cast<std::size_t>(v)])]);
    if (kept) least = std::min(least, price(a).seconds);
    std::size_t s = 0;
    while (s < now.size() && ++now[s] == p.sets[s].count()) now[s++] = 0;
    more = s < now.size();
  }
  for (int v = 0; v < p.operators(); ++v) CHECK(keep(p.set_of[static_cast<std::size_t>(v)], (*found)[static_cast<std::size_t>(v)]));
  CHECK(price(*found).seconds == doctest::Approx(least));
  CHECK(!min_among(p, [](int set, int) { return set != 0; }, {}));
  std::vector<char> const by_set = batch_by_set(p, batch_loops(t.graph, t.forward_nodes));
  CHECK(std::count(by_set.begin(), by_set.end(), '0') > 0);
}
