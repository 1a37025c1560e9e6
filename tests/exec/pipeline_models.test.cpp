// tests/exec/pipeline_models.test.cpp - the branched models of GraphPipe's evaluation, small, planned and trained under every schedule
#include <tensorpar/exec/executor.hpp>

#include <doctest/doctest.h>

#include "support/effort.hpp"
#include "support/spine.hpp"
#include <tensorpar/check/check.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/peers/optima/lines.hpp>
#include <tensorpar/search/pipeline/map_within.hpp>
#include <tensorpar/search/pipeline/schedules/microbatch.hpp>
#include <tensorpar/search/pipeline/stages/fold.hpp>
#include <tensorpar/search/pipeline/to_plan.hpp>
#include <tensorpar/zoo/graphpipe.hpp>

using namespace tests;
using namespace tensorpar::search;
using namespace tensorpar::peers;

namespace {

struct named_graph { char const* name; computation_graph graph; };
template <class Model, class Sizes> computation_graph made(Sizes const& s) {
  model_builder g;
  Model::define(g, s);
  return lower(g, {zoo::batch = 1});
}
std::vector<named_graph> models() {
  return {{"mmt", made<zoo::mmt<>>(zoo::mmt_sizes{.branches = 3, .layers = 1, .tokens = 4, .hidden = 8, .heads = 2, .wide = 16})},
          {"dlrm", made<zoo::dlrm_graphpipe<>>(zoo::dlrm_graphpipe_sizes{
                       .dense = 2, .sparse = 2, .layers = 2, .top = 1, .hidden = 8, .rows = 12, .width = 4, .bag = 3})},
          {"candle uno", made<zoo::candle_uno_graphpipe<>>(zoo::candle_uno_graphpipe_sizes{.branches = 3, .layers = 2, .hidden = 8})},
          {"two branches", made<zoo::mmt<>>(zoo::mmt_sizes{.branches = 2, .layers = 2, .tokens = 4, .hidden = 8, .heads = 2, .wide = 16})}};
}
/// Compute is what counts, so that many stages pay.
machine fast_links(int n) {
  return make_cluster("fast links", {"device", 1e6, 1e9, i64{1} << 30, 0}, n, n, {"link", n, 1e-9, 1e12}, {});
}
constexpr i64 mini_batch = 16;

/// One plan trained in the prime field, checked, its arenas compared; the parameters it ends with.
std::vector<std::vector<prime_field>> trained(computation_graph const& g, plan const& p) {
  planned_step const s = tensorpar::passes::pipeline_pass(g, p);
  executor_of<prime_field> e(s);
  auto const found = check(s.graph, e.plan_value(), e.program());
  for (finding const& f : found) MESSAGE(f.text);
  CHECK(found.empty());
  CHECK(e.allocated_bytes() == e.program().arena);
  e.initialise(7);
  for (u64 k = 0; k < 2; ++k) e.step(random_batch(g, mini_batch, k), 0.125);
  return parameters_of(e);
}
std::vector<std::vector<prime_field>> serial(computation_graph const& g) {
  plan s = serial_plan(g);
  s.micro_batches = mini_batch;
  executor_of<prime_field> e(differentiate(g, training_options{"loss", {}, mini_batch}), s);
  e.initialise(7);
  for (u64 k = 0; k < 2; ++k) e.step(random_batch(g, mini_batch, k), 0.125);
  return parameters_of(e);
}

}  // namespace

TEST_CASE("graph and sequential plans of the branched models train exactly under every schedule") {
  for (auto const& [name, g] : models()) {
    auto const expected = serial(g);
    CAPTURE(name);
    for (int devices : {4, 8})
      for (int data : {1, 2}) {
        if (test_effort::slow && (devices == 8) == (data == 2)) continue;
        machine const on = fast_links(devices);
        graph_stage_options offered;
        offered.mini_batch = mini_batch;
        offered.max_data = data;
        graph_stages<tensorpar::cost::analytical> const m(g, on, tensorpar::cost::analytical{}, offered);
        stage_options o;
        o.ks = {1, 2};
        for (bool sequential : {false, true}) {
          stage_result const r = sequential ? pipedream_stages(g, m, o) : find_stages(g, m, o);
          REQUIRE(r.feasible());
          CAPTURE(devices);
          CAPTURE(sequential);
          CAPTURE(r.pipeline.stages.size());
          for (schedule_kind k : {schedule_kind::gpipe, schedule_kind::one_f_one_b, schedule_kind::k_f_k_b, schedule_kind::greedy,
                                  schedule_kind::zb_h1, schedule_kind::zb_h2, schedule_kind::zb_auto}) {
            CAPTURE(name_of(k));
            auto const p = make_schedule(k, r.pipeline, edges_of(r), costs_of(r));
            REQUIRE(p);
            CHECK(trained(g, plan_of(g, on, m, *p, r.choices)) == expected);
          }
        }
      }
  }
}

TEST_CASE("interleaved and V schedules train exactly: two stages take turns on each group") {
  for (auto const& [name, g] : models()) {
    auto const expected = serial(g);
    CAPTURE(name);
    machine const on = fast_links(8);
    graph_stage_options offered;
    offered.mini_batch = mini_batch;
    offered.max_data = 1;
    graph_stages<tensorpar::cost::analytical> const m(g, on, tensorpar::cost::analytical{}, offered);
    stage_options o;
    o.micro_batches = {2};
    stage_result const r = uniform_stages(g, m, o);
    REQUIRE(r.feasible());
    REQUIRE(r.pipeline.stages.size() == 8);
    for (fold_kind kind : {fold_kind::round, fold_kind::back_and_forth}) {
      pipeline const folded = fold_stages(r.pipeline, 4, kind);
      for (schedule_kind k : {schedule_kind::interleaved, schedule_kind::zb_v}) {
        if ((k == schedule_kind::interleaved) != (kind == fold_kind::round)) continue;
        CAPTURE(name_of(k));
        auto const p = make_schedule(k, folded, tensorpar::passes::chain_of_stages(8),
                                     costs_of(r));      // a chain implies all edges of the graph
        REQUIRE(p);
        CHECK(trained(g, plan_of(g, on, m, *p, r.choices)) == expected);
      }
    }
  }
}

TEST_CASE("stages with shardings that the mapping search found inside them train exactly") {
  int mapped = 0;
  for (auto const& [name, g] : models()) {
    CAPTURE(name);
    auto const expected = serial(g);
    machine const on = make_cluster("few samples", {"device", 1e6, 1e9, i64{1} << 30, 0}, 4, 4, {"link", 4, 1e-7, 1e8}, {});
    graph_stage_options offered;
    offered.mini_batch = mini_batch;
    offered.max_data = 2;
    offered.max_tensor = 4;
    graph_stages<tensorpar::cost::analytical> const m(g, on, tensorpar::cost::analytical{}, offered);
    stage_options o;
    o.micro_batches = {4};
    for (stage_objective objective : {stage_objective::iteration, stage_objective::bottleneck}) {
      o.objective = objective;
      stage_result const r = find_stages(g, m, o);
      REQUIRE(r.feasible());
      auto const p = make_schedule(schedule_kind::zb_h1, r.pipeline, edges_of(r), costs_of(r));
      REQUIRE(p);
      plan const by_rule = plan_of(g, on, m, *p, r.choices);
      plan const within = map_within(g, by_rule, tensorpar::cost::analytical{}).plan;
      mapped += !(within == by_rule);
      CHECK(trained(g, within) == expected);
    }
  }
  CHECK(mapped > 0);
}
