// tests/search/choice_sets.test.cpp - choices priced by their kinds are priced as each by itself
#include <tensorpar/search/choice_sets.hpp>
#include <doctest/doctest.h>

#include "random_problem.hpp"
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine_presets.hpp>
#include <tensorpar/search/objective.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using namespace tensorpar::search_test;

namespace {
/// Equal devices by two names: nobody may take one's price for the other's, so every choice is priced.
machine by_two_names(machine m) {
  m.kinds.push_back(m.kinds[0]);
  for (std::size_t d = 1; d < m.device.size(); d += 2) m.device[d] = 1;
  return m;
}
void same_tables(training_graph const& t, machine const& on, objective_options const& o, double bar) {
  machine const two = by_two_names(on);
  analytical const model;
  choice_book<analytical> one_book(on, model, o), two_book(two, model, o);
  mapping_problem const a = detail::objective_builder<analytical>(t, one_book).make({}, bar),
                        b = detail::objective_builder<analytical>(t, two_book).make({}, bar);
  REQUIRE(a.sets.size() == b.sets.size());
  for (std::size_t s = 0; s < a.sets.size(); ++s) {
    CHECK(a.sets[s].spreads == b.sets[s].spreads);
    CHECK(a.sets[s].savings == b.sets[s].savings);
    CHECK(a.sets[s].seconds == b.sets[s].seconds);
    CHECK(a.sets[s].bytes == b.sets[s].bytes);
  }
  REQUIRE(a.costs.size() == b.costs.size());
  for (std::size_t k = 0; k < a.costs.size(); ++k) CHECK(a.costs[k].seconds == b.costs[k].seconds);
}
}  // namespace

TEST_CASE("seconds and bytes of every choice, with and without updates in parts, and with a bar") {
  for (u64 seed = 0; seed < 30; ++seed) {
    recipe r = random_recipe(seed, 5, 3);
    r.micro_batches = 1 + static_cast<int>(seed % 3);
    training_graph const t = r.build();
    for (bool parts : {false, true}) same_tables(t, preset("summit"), objective_options{2, 4, r.micro_batches, parts}, never);
  }
  training_graph const t = differentiate(zoo::make("mlp_unify", 64), {});
  same_tables(t, preset("summit"), objective_options{6, 4, 1, true}, never);
  same_tables(t, preset("summit"), objective_options{6, 4, 1, true}, 1.0);
}

TEST_CASE("a bar leaves choices out, and what is left costs what it cost") {
  training_graph const t = differentiate(zoo::make("mlp_unify", 64), {});
  machine const on = preset("summit");
  analytical const model;
  choice_book<analytical> book(on, model, objective_options{6, 4, 1, true});
  detail::objective_builder<analytical> build(t, book);
  mapping_problem const all = build.make({});
  double least = 0;
  for (int v = 0; v < all.operators(); ++v) least += *std::min_element(all.choices(v).seconds.begin(), all.choices(v).seconds.end());
  mapping_problem const some = build.make({}, 1.02 * least);
  int fewer = 0;
  REQUIRE(some.pairs.size() == all.pairs.size());
  auto const original = [&](int v, int i) {
    auto const &a = all.choices(v), &b = some.choices(v);
    for (int k = 0; k < a.count(); ++k) {
      auto const at = static_cast<std::size_t>(k), here = static_cast<std::size_t>(i);
      if (a.spreads[at] == b.spreads[here] && a.saving(k) == b.saving(i) && a.seconds[at] == b.seconds[here]) return k;
    }
    return -1;
  };
  for (int v = 0; v < all.operators(); ++v) fewer += some.choices(v).count() < all.choices(v).count();
  CHECK(fewer > 0);
  int never_together = 0, priced = 0;
  for (std::size_t k = 0; k < all.pairs.size(); ++k) {
    operator_pair const& q = some.pairs[k];
    for (int i = 0; i < some.choices(q.first).count(); ++i)
      for (int j = 0; j < some.choices(q.second).count(); ++j) {
        double const s = some.seconds(q, i, j);
        if (s == never) { ++never_together; continue; }
        ++priced;
        int const a = original(q.first, i), b = original(q.second, j);
        REQUIRE(a >= 0);
        REQUIRE(b >= 0);
        if (s != all.seconds(all.pairs[k], a, b)) CHECK(s == all.seconds(all.pairs[k], a, b));
      }
  }
  CHECK(priced > 0);
  CHECK(never_together > 0);
}
