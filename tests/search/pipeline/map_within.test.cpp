// tests/search/pipeline/map_within.test.cpp - shardings inside stages: accepted programs, faster where operators in a row share a split
#include <tensorpar/search/pipeline/map_within.hpp>

#include <doctest/doctest.h>

#include <tensorpar/check/check.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/program/unroll.hpp>
#include <tensorpar/search/pipeline/schedules/microbatch.hpp>
#include <tensorpar/search/pipeline/to_plan.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tensorpar/zoo/graphpipe.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {
/// Towers whose weights are large beside their samples: tensor parallelism pays.
computation_graph towers() {
  model_builder g;
  zoo::candle_uno_graphpipe<>::define(g, zoo::candle_uno_graphpipe_sizes{.branches = 2, .layers = 4, .hidden = 256});
  return lower(g, {zoo::batch = 2});
}
machine small(i64 memory = i64{1} << 30) {
  return make_cluster("small", {"device", 1e9, 1e10, memory, 0}, 8, 4, {"near", 4, 1e-7, 1e10}, {"far", 8, 1e-6, 1e9});
}
plan planned(computation_graph const& g, machine const& on, int max_tensor, int max_data, graph_stage_options o = {}) {
  o.mini_batch = 8;
  o.max_tensor = max_tensor;
  o.max_data = max_data;
  graph_stages<cost::analytical> const m(g, on, cost::analytical{}, o);
  stage_result const r = find_stages(g, m);
  REQUIRE(r.feasible());
  return plan_of(g, on, m, *make_schedule(schedule_kind::one_f_one_b, r.pipeline, edges_of(r), costs_of(r)), r.choices);
}
}  // namespace

TEST_CASE("shardings inside stages: the rule's are never faster, mapped ones are accepted and simulate faster somewhere") {
  computation_graph const g = towers();
  machine const on = small();
  int better = 0, sooner = 0;
  for (int max_tensor : {2, 4, 8})
    for (int max_data : {1, 2}) {
      plan const by_rule = planned(g, on, max_tensor, max_data);
      mapped_stages const m = map_within(g, by_rule, cost::analytical{});
      REQUIRE(m.before.size() == by_rule.pipeline.stages.size());
      for (std::size_t s = 0; s < m.before.size(); ++s) {
        CHECK(m.after[s] <= m.before[s]);
        better += m.after[s] < m.before[s] * 0.99;
      }
      CHECK(m.plan.pipeline == by_rule.pipeline);
      planned_step const a = passes::pipeline_pass(g, by_rule), b = passes::pipeline_pass(g, m.plan);
      for (finding const& f : check(b.graph, b.plan, unroll(b))) FAIL_CHECK(f.text);
      sooner += simulate(unroll(b), on, cost::analytical{}).seconds < simulate(unroll(a), on, cost::analytical{}).seconds * 0.99;
    }
  CHECK(better > 0);
  CHECK(sooner > 0);
}

TEST_CASE("shardings inside stages: one device stays as it is, memory that does not suffice keeps the plan's, bad plans are refused") {
  computation_graph const g = towers();
  plan p = planned(g, small(), 1, 1);
  CHECK(map_within(g, p, cost::analytical{}).plan == p);
  plan tight = planned(g, small(), 4, 1);
  for (device_kind& k : tight.cluster.kinds) k.memory = 1;
  CHECK(map_within(g, tight, cost::analytical{}).plan == tight);
  p.pipeline = {};
  CHECK_THROWS_WITH_AS(map_within(g, p, cost::analytical{}), doctest::Contains("without a pipeline"), error);
  plan other = tight;
  other.graph ^= 1;
  CHECK_THROWS_WITH_AS(map_within(g, other, cost::analytical{}), doctest::Contains("another graph"), error);
}
