// tests/search/pipeline/stages/cost.test.cpp - what a given pipeline comes to, against closed forms and the recorded planner logs' in-flight counts
#include "stage_oracle.hpp"
#include <doctest/doctest.h>
#include <tensorpar/search/pipeline/stages/additive.hpp>
#include <tensorpar/search/pipeline/stages/evaluate.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tests;

namespace {
additive_stages equal_chain(int n, i64 mini_batch, double f, double b) {
  lists g(at(n));
  for (int v = 1; v < n; ++v) g[at(v)].push_back(v - 1);
  return additive_stages(std::vector<operator_numbers>(at(n), operator_numbers{f, b, 0, 0, 0, 0, 1, 0}),
                         tensors_of(g, std::vector<double>(at(n), 0)), stage_devices::equal(n), {mini_batch, 2, 1, 1, false, false});
}
std::vector<search::detail::found_stage> one_each(std::vector<i64> const& sizes, int k = 1) {
  std::vector<search::detail::found_stage> s;
  for (std::size_t v = 0; v < sizes.size(); ++v)
    s.push_back({{static_cast<int>(v)}, {sizes[v], k, 1, 1, false, false}, static_cast<int>(v)});
  return s;
}
}  // namespace

TEST_CASE("stage_cost: a chain of equal stages takes (m + p - 1)(F + B), and stage s keeps p - s micro-batches") {
  for (int p = 1; p <= 6; ++p)
    for (i64 m : {1, 4, 16}) {
      additive_stages const model = equal_chain(p, m, 1, 2);
      stage_cost const c = cost_of(model, one_each(std::vector<i64>(at(p), 1)));
      CHECK(c.iteration == doctest::Approx(static_cast<double>(m + p - 1) * 3));
      CHECK(c.bottleneck == doctest::Approx(3));
      CHECK(c.depth == p);
      for (int s = 0; s < p; ++s) CHECK(c.in_flight[at(s)] == std::min<i64>(p - s, m));
      CHECK(c.source_in_flight == std::min<i64>(p, m));
    }
}

TEST_CASE("stage_cost: unequal micro-batches wait for the samples that they need") {
  // the second stage needs four micro-batches of the first
  additive_stages const model = equal_chain(2, 16, 1, 1);
  stage_cost const c = cost_of(model, one_each({1, 4}));
  // fill 4 x 1, four micro-batches of 8 seconds, drain 4 x 1
  CHECK(c.iteration == doctest::Approx(4 + 4 * 8 + 4));
  CHECK(c.in_flight == std::vector<i64>{8, 4});
}

TEST_CASE("stage_cost: sequential pipelines have edges that the graph lacks") {
  lists const g{{}, {}, {0, 1}};
  additive_stages const m(std::vector<operator_numbers>(3, operator_numbers{1, 1, 0, 0, 0, 0, 1, 0}), tensors_of(g, {1, 1, 1}),
                          stage_devices::equal(3), {8, 2, 1, 1, false, false});
  CHECK(cost_of(m, one_each({1, 1, 1})).depth == 2);
  CHECK(cost_of(m, one_each({1, 1, 1}), true).depth == 3);
  CHECK(cost_of(m, one_each({1, 1, 1})).next == std::vector<std::vector<int>>{{2}, {2}, {}});
}

TEST_CASE("stage_cost: what is no partition is refused") {
  lists const g{{}, {0}, {1}};
  additive_stages const m(std::vector<operator_numbers>(3, operator_numbers{1, 1, 0, 0, 0, 0, 1, 0}), tensors_of(g, {1, 1, 1}),
                          stage_devices::equal(3), {8, 2, 1, 1, false, false});
  stage_choice const one;
  CHECK_THROWS_WITH_AS(cost_of(m, {{{0, 2}, one, 0}, {{1}, one, 1}}), doctest::Contains("wait for each other"), error);
  CHECK_THROWS_WITH_AS(cost_of(m, {{{0}, one, 0}, {{1}, one, 1}}), doctest::Contains("operator 2 is in no stage"), error);
  CHECK_THROWS_WITH_AS(cost_of(m, {{{0, 1}, one, 0}, {{1, 2}, one, 1}}), doctest::Contains("operator 1 stands in two stages"), error);
}

TEST_CASE("additive_stages: one operator by hand") {
  operator_numbers x{2, 3, 1, 0.5, 1, 80, 4, 8};
  additive_stages const m({x}, {},
                          [] {
                            stage_devices d = stage_devices::equal(8, 1000);
                            d.per_node = 4;
                            d.inner_bandwidth = 10;
                            d.outer_bandwidth = 5;
                            return d;
                          }(),
                          {16, 2, 8, 2, true, true});
  stage_work const w = m.work(0, {8, 1, 2, 1, false, false}, 0);  // each copy has 4 samples, half efficiency at 1
  CHECK(w.forward == doctest::Approx(0.5 + 2 * 5));
  CHECK(w.backward == doctest::Approx(0.5 + 3 * 5));
  CHECK(w.weights == doctest::Approx(0.5 + 1 * 5));
  CHECK(w.once == doctest::Approx(2 * 0.5 * 80 / 10));
  CHECK(w.fixed == doctest::Approx(80 * 4));
  CHECK(w.kept == doctest::Approx(2));
  CHECK(m.work(0, {8, 1, 8, 1, false, false}, 0).once == doctest::Approx(2 * 7.0 / 8 * 80 / 5));  // eight devices: two nodes
  CHECK(m.work(0, {8, 1, 2, 1, false, true}, 0).fixed == doctest::Approx(80 * 3));                // ZeRO 1 halves the state
  stage_work const again = m.work(0, {8, 1, 2, 1, true, false}, 0);
  CHECK(again.backward == doctest::Approx(w.backward + w.forward));
  CHECK(again.kept == 0);
  CHECK(again.fixed == doctest::Approx(80 * 4 + 4 * 4));
  stage_work const t = m.work(0, {8, 1, 1, 2, false, false}, 0);
  CHECK(t.forward == doctest::Approx(0.5 + 2 * 9.0 / 2 + 0.5 * 8 * 8 / 10));
  CHECK(t.fixed == doctest::Approx(160));
  CHECK(m.transfer({5, 10, 1, 2}, {4, 1, 2, 1, false, false}, 0).forward == doctest::Approx(15 * 2 / 5.0));
  CHECK(m.transfer({5, 10, 1, 2}, {4, 1, 2, 1, false, false}, 0).kept == doctest::Approx(2.5));
}
