// tests/search/pipeline/every.test.cpp - up-sets are all that they should be; a pipeline is found within a limit if and only if there is
// one
#include "stage_oracle.hpp"
#include "support/effort.hpp"
#include <doctest/doctest.h>
#include <tensorpar/search/pipeline/every.hpp>
#include <tensorpar/search/pipeline/stages/decision.hpp>
#include <tensorpar/search/pipeline/stages/engine.hpp>
#include <tensorpar/search/pipeline/stages/writer.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tests;

namespace {

std::set<u64> by_definition(lists const& g) {
  std::set<u64> r;
  for (u64 s = 0; s < u64{1} << g.size(); ++s) {
    bool up = true;
    for (std::size_t v = 0; v < g.size(); ++v) for (int u : g[v]) up = up && (!(s >> u & 1) || (s >> v & 1));
    if (up) r.insert(s);
  }
  return r;
}
/// Stages that hold every operator once, without a cycle, on devices of their own; `sorted`: sources first.
void check_whole(stage_problem const& p, std::vector<search::detail::found_stage> const& stages, bool sorted) {
  std::vector<unsigned> parts;
  unsigned all = 0;
  std::set<int> devices;
  int count = 0;
  for (auto const& s : stages) {
    unsigned b = 0;
    for (int v : s.nodes) b |= 1u << v;
    CHECK((all & b) == 0);
    all |= b;
    parts.push_back(b);
    for (int d = s.first; d < s.first + s.choice.devices(); ++d, ++count) devices.insert(d);
  }
  CHECK(all == (1u << p.graph.size()) - 1);
  CHECK(static_cast<int>(devices.size()) == count);
  CHECK(count <= p.model.devices());
  auto const edges = oracle_edges(p.graph, parts);
  REQUIRE((edges.size() == parts.size()));
  for (std::size_t i = 0; sorted && i < parts.size(); ++i) for (std::size_t j = 0; j < i; ++j) CHECK(!edges[i][j]);
}
std::vector<search::detail::stage_batching> batchings_of(std::vector<i64> const& sizes) {
  std::vector<search::detail::stage_batching> r;
  for (i64 b : sizes) r.push_back({b, 1});
  return r;
}

}  // namespace

TEST_CASE("up-sets: all by definition, by size; some of them where there are too many") {
  random_source r{1};
  for (int turn = 0; turn < test_effort::cases(200); ++turn) {
    int const n = 1 + r.below(9);
    lists const g = random_dag(r, n, 30);
    graph::adjacency const a(g);
    auto const want = by_definition(g);
    auto const all = search::detail::up_sets(a, 1 << 20);
    CHECK(std::set<u64>(all.begin(), all.end()) == want);
    CHECK(all.size() == want.size());
    for (std::size_t i = 1; i < all.size(); ++i) CHECK(std::popcount(all[i - 1]) <= std::popcount(all[i]));
    CHECK(search::detail::up_sets(a, want.size() - 1).empty());
    std::vector<int> const order = topological_order(a);
    std::size_t const most = static_cast<std::size_t>(n) + 1 + static_cast<std::size_t>(r.below(20));
    auto const some = search::detail::some_up_sets({order}, most);
    CHECK(some.size() <= most);
    for (u64 s : some) CHECK(want.count(s) == 1);
    CHECK(some.front() == 0);
    CHECK(some.back() == (u64{1} << n) - 1);
  }
}

TEST_CASE("every convex partition: a limit is met if and only if some partition meets it, by stages that are a pipeline") {
  random_source r{2};
  int met = 0, missed = 0;
  for (int turn = 0; turn < test_effort::cases(60); ++turn) {
    int const n = 2 + r.below(3);
    stage_problem const p = random_stage_problem(r, random_dag(r, n, 40), {.devices = 3, .tight = r.chance(50)});
    std::vector<i64> const sizes{1, 2};
    double const best = oracle_least(p, set_partitions(n), sizes);
    graph::adjacency const a(p.graph);
    auto const sets = search::detail::up_sets(a, 1 << 20);
    auto const relaxed = search::detail::stage_relaxation(a, p.model, 1);
    search::detail::stage_tree const tree(search::detail::line_of(relaxed.tree), p.model.tensors(), n,
                                          [&](int v) { return p.model.kind(v); });
    search::detail::in_flight_needs needs(batchings_of(sizes), p.model.mini_batch());
    search::detail::stage_prices<additive_stages> prices(p.model, tree, batchings_of(sizes));
    for (double times : {0.9, 0.999, 1.001, 2.0}) {
      double const limit = best < no_pipeline ? best * times : 1e9;
      prices.set_limit(limit);
      bool gave_up = false;
      auto const found = search::detail::every_partition<additive_stages>(a, tree, prices, needs, sets).solve(1 << 20, gave_up);
      CHECK(!gave_up);
      CAPTURE(p.text);
      REQUIRE(found.empty() == !(best < no_pipeline && times > 1));
      if (found.empty()) { ++missed; continue; }
      ++met;
      check_whole(p, found, true);
      CHECK(cost_of(p.model, found).bottleneck <= limit * (1 + 1e-9));
      CHECK(!cost_of(p.model, found).shortage);
    }
    if (best >= no_pipeline) continue;
    prices.set_limit(2 * best);
    bool gave_up = false;
    CHECK(search::detail::every_partition<additive_stages>(a, tree, prices, needs, sets).solve(1, gave_up).empty());
    CHECK(gave_up);
  }
  CHECK(met > test_effort::cases(20));
  CHECK(missed > test_effort::cases(20));
}

TEST_CASE("a tree's family: met where its definition says so, never below it, and what is written down is a pipeline") {
  random_source r{3};
  int met = 0, missed = 0;
  for (int turn = 0; turn < test_effort::cases(60); ++turn) {
    int const n = 3 + r.below(3);
    graph::sp_tree const t = random_sp_tree(r, n);
    stage_problem const p = random_stage_problem(r, graph_of(t, n, &r, 30), {.devices = 3, .tight = r.chance(50), .alike = 40});
    std::vector<i64> const sizes{1, 2};
    double const sure = oracle_least(p, tree_partitions(t).all(), sizes);
    double const never_below = oracle_least(p, tree_partitions(t, true).all(), sizes);
    search::detail::stage_tree const tree(t, p.model.tensors(), n, [&](int v) { return p.model.kind(v); });
    search::detail::stage_blocks prepared(tree);
    search::detail::in_flight_needs needs(batchings_of(sizes), p.model.mini_batch());
    search::detail::stage_prices<additive_stages> prices(p.model, tree, batchings_of(sizes));
    for (double limit : {0.999 * never_below, 1.001 * sure, 2 * sure}) {
      if (limit > 1e100) limit = 1e9;
      prices.set_limit(limit);
      search::detail::stage_decision<additive_stages> d(tree, prepared, prices, needs);
      auto const found = d.solve();
      CAPTURE(p.text);
      if (limit < never_below) CHECK(found.empty());
      if (limit > sure) CHECK(!found.empty());
      ++(found.empty() ? missed : met);
      for (auto const& stages : found) {
        check_whole(p, stages, false);
        CHECK(cost_of(p.model, stages).bottleneck <= limit * (1 + 1e-9));
        CHECK(cost_of(p.model, stages).bottleneck >= never_below * (1 - 1e-9));
      }
      CHECK(d.problems() > 0);
    }
  }
  CHECK(met > test_effort::cases(20));
  CHECK(missed > test_effort::cases(20));
}
