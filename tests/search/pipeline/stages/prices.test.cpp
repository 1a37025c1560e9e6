// tests/search/pipeline/stages/prices.test.cpp - what the stage search is built of: lists of partial pipelines, borders of runs, fewest devices of a piece
#include <tensorpar/search/pipeline/stages/prices.hpp>
#include <doctest/doctest.h>

#include <tensorpar/search/pipeline/stages/engine.hpp>
#include <tensorpar/search/pipeline/stages/partial_pipelines.hpp>
#include <tensorpar/search/pipeline/stages/tree.hpp>
#include "stage_oracle.hpp"
#include "support/effort.hpp"

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tests;

TEST_CASE("partial pipelines: a list covers exactly what it would refuse, and none in it is as good as another") {
  random_source r{1};
  for (int round = 0; round < test_effort::cases(200); ++round) {
    search::detail::in_flight_needs needs({{1, 1}, {2, 1}, {4, 2}}, 64);
    std::vector<int> known{needs.none(), needs.nothing_follows()};
    for (int i = 0; i < 12; ++i) {
      int const batching = r.below(3), from = known[at(r.below(static_cast<int>(known.size())))];
      known.push_back(needs.after(batching, needs.of(from, batching)));
    }
    search::detail::partial_pipelines pool(needs);
    std::vector<int> list;
    std::vector<std::pair<int, int>> offered;
    for (int i = 0; i < 20; ++i) {
      search::detail::partial_pipeline l;
      l.devices = r.below(6);
      l.need = known[at(r.below(static_cast<int>(known.size())))];
      bool const covered = pool.covers(list, l.devices, l.need);
      REQUIRE(pool.offer(list, l) == !covered);
      offered.emplace_back(l.devices, l.need);
    }
    for (auto const& [devices, need] : offered) REQUIRE(pool.covers(list, devices, need));
    for (int a : list)
      for (int b : list)
        REQUIRE((a == b || pool[a].devices > pool[b].devices || !needs.within(pool[a].need, pool[b].need)));
  }
}

TEST_CASE("tree: the border of a run is that of its operators") {
  random_source r{2};
  for (int round = 0; round < test_effort::cases(100); ++round) {
    int const n = 2 + r.below(9);
    stage_problem const p = random_stage_problem(r, random_dag(r, n, 40, false), {});
    search::detail::stage_tree const tree(random_sp_tree(r, n), p.model.tensors(), n, [](int v) { return v; });
    for (int e = 0; e < tree.tree().size(); ++e) {
      int const parts = static_cast<int>(tree.series(e).size());
      for (int to = parts; to > 0; --to)
        for (int from = 0; from < to; ++from) {
          search::detail::leaf_interval const x = tree.run(e, from, to);
          unsigned nodes = 0;
          for (int i = x.lo; i < x.hi; ++i) nodes |= 1u << tree.order()[at(i)];
          stage_border const b = oracle_border(p.model, nodes);
          INFO(round, ": ", p.text, ", parts ", from, " to ", to, " of ", e);
          REQUIRE(tree.run_border(e, from, to) == b);
          REQUIRE(tree.runs_before(e, to)[at(to - 1 - from)] == b);
        }
    }
  }
}

TEST_CASE("prices: no piece runs on fewer devices than its operators alone need; none where these are too slow") {
  random_source r{3};
  int fits = 0, hopeless = 0;
  for (int round = 0; round < test_effort::cases(200); ++round) {
    int const n = 2 + r.below(7);
    stage_problem_options o;
    o.devices = 8;
    o.mini_batch = 8;
    o.max_tensor = 1 + r.below(2);
    o.tight = r.chance(30);
    stage_problem const p = random_stage_problem(r, random_dag(r, n, 40, false), o);
    std::vector<search::detail::stage_batching> const batchings{{4, 1}, {8, 1}};
    std::vector<int> order;
    for (int v = 0; v < n; ++v) order.push_back(v);
    search::detail::stage_tree const tree(search::detail::line_of(order), p.model.tensors(), n, [](int v) { return v; });
    search::detail::stage_prices<additive_stages> prices(p.model, tree, batchings);
    double const least = search::detail::bottleneck_bound(p.model, batchings);
    for (int i = 0; i < 30; ++i) {
      prices.set_limit(least * (0.5 + 0.1 * r.below(60)));
      int const lo = r.below(n), hi = lo + 1 + r.below(n - lo), batching = r.below(2), most = 1 + r.below(8);
      search::detail::leaf_interval const x{lo, hi, 1};
      int start = 0;
      int const needed = prices.at_least({&x, 1}, batching, most, &start);
      stage_border const border = tree.run_border(tree.root(), lo, hi);
      search::detail::stage_fit const fit = prices.fit({&x, 1, &border}, batching, 4, {}, most, 8);
      INFO(round, ": ", p.text, ", ", lo, " to ", hi);
      if (fit.choice >= 0) {
        REQUIRE(needed > 0);
        REQUIRE(needed <= fit.devices);
        ++fits;
      }
      if (needed == 0) {
        REQUIRE(fit.hopeless);
        ++hopeless;
      }
    }
  }
  CHECK(fits > 0);
  CHECK(hopeless > 0);
}
