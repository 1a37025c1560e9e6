// tests/search/problem/choice_book.test.cpp - a book that has seen other graphs says of a graph what a fresh one says
#include <tensorpar/search/problem/choice_book.hpp>
#include <doctest/doctest.h>

#include "random_problem.hpp"
#include <tensorpar/search/solve/min_sum.hpp>
#include <tensorpar/search/solve/objective.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::search_test;

namespace {
double min_in(mapping_tables const& t, std::vector<int> const& sets, std::vector<operator_pair> const& pairs) {
  std::vector<std::vector<double>> seconds;
  for (choice_set const& s : t.sets) seconds.push_back(s.seconds);
  return search::detail::eliminator(t, seconds, {}).least(sets, pairs).value;
}
}  // namespace

TEST_CASE("equal operators are made once, and prices do not depend on what was there before") {
  arbitrary_model const model{5};
  machine const on = recipe{{}, 3, 1, 1, {4}}.cluster();
  objective_options o;
  choice_book<arbitrary_model> shared(on, model, o);
  shared.start({});
  std::size_t sets = 0, alone = 0;
  for (u64 seed = 0; seed < 60; ++seed) {
    recipe r = random_recipe(seed, 5, 3);
    r.devices = 3;
    r.kinds = r.grain = r.micro_batches = 1;
    r.extent = {4};
    training_graph const t = r.build();
    search::detail::objective_builder<arbitrary_model> here(t, shared);
    auto const some = here.choose();
    auto const pairs = here.pairs(some);
    choice_book<arbitrary_model> fresh(on, model, o);
    fresh.start({});
    search::detail::objective_builder<arbitrary_model> there(t, fresh);
    auto const own = there.choose();
    auto const own_pairs = there.pairs(own);
    REQUIRE(some.size() == own.size());
    for (std::size_t v = 0; v < some.size(); ++v) {
      choice_set const &a = shared.tables.sets[static_cast<std::size_t>(some[v])], &b = fresh.tables.sets[static_cast<std::size_t>(own[v])];
      CHECK(a.shardings == b.shardings);
      CHECK(a.seconds == b.seconds);
      CHECK(a.bytes == b.bytes);
    }
    REQUIRE(pairs.size() == own_pairs.size());
    for (std::size_t k = 0; k < pairs.size(); ++k)
      for (int i = 0; i < shared.tables.sets[static_cast<std::size_t>(some[static_cast<std::size_t>(pairs[k].first)])].count(); ++i)
        CHECK(shared.tables.seconds(pairs[k], i, 0) == fresh.tables.seconds(own_pairs[k], i, 0));
    CHECK(min_in(shared.tables, some, pairs) == min_in(fresh.tables, own, own_pairs));
    alone += fresh.tables.sets.size();
    sets = shared.tables.sets.size();
  }
  CHECK(sets < alone);
}

TEST_CASE("the smallest range of a choice is one in which it fits, and no smaller one is there") {
  arbitrary_model const model{6};
  recipe r = random_recipe(11, 5, 3);
  r.devices = 4;
  r.kinds = 1;
  training_graph const t = r.build();
  machine const on = r.cluster();
  choice_book<arbitrary_model> book(on, model, objective_options{});
  book.start({});
  search::detail::objective_builder<arbitrary_model> build(t, book);
  for (int s : build.choose()) {
    auto const least = book.min_ranges(s);
    choice_set const& c = book.tables.sets[static_cast<std::size_t>(s)];
    REQUIRE(static_cast<int>(least.size()) == c.count());
    for (std::size_t i = 0; i < least.size(); ++i) {
      CHECK(least[i] >= c.sizes[i]);
      CHECK(least[i] <= on.size() - c.shardings[i].start);
    }
  }
}
