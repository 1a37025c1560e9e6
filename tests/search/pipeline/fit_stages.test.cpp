// tests/search/pipeline/fit_stages.test.cpp - pipelines that are said to fit have arenas that do; of those the program simulated fastest is
// taken
#include <tensorpar/search/pipeline/fit_stages.hpp>

#include <doctest/doctest.h>

#include <tensorpar/check/check.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/zoo/graphpipe.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

TEST_CASE("a pipeline fits when its arenas do; where estimates say too little, the next one is tried; and what lacks is said") {
  computation_graph const g = zoo::make("gpt3_1b3:layers=2,hidden=64,heads=4,wide=256,seq=32,vocab=1024", 1);
  int fits = 0, lacks = 0;
  for (int tensor : {1, 2})
    for (double megabytes = 8; megabytes > 0.2; megabytes *= 0.7) {
      CAPTURE(tensor);
      CAPTURE(megabytes);
      machine const on = make_cluster("small", {"device", 1e12, 1e11, static_cast<i64>(megabytes * 1e6), 1e-6}, 4, 4,
                                      {"link", 4, 3e-6, 5e10}, {});
      graph_stage_options o;
      o.mini_batch = 16;
      o.max_tensor = tensor;
      graph_stages<cost::analytical> const m(g, on, cost::analytical{}, o);
      fitted_stages const r = fit_stages(g, g, on, m);
      if (!r.feasible()) {
        ++lacks;
        CHECK(r.infeasible->missing > 0);
        CHECK(r.infeasible->needed - r.infeasible->capacity == r.infeasible->missing);
        CHECK(r.plan.pipeline.empty());
        continue;
      }
      ++fits;
      planned_step const s = passes::pipeline_pass(g, r.plan);
      program const q = unroll(s);
      require_accepted(check(s.graph, s.plan, q), "plan");
      CHECK(q.arena == r.arena);
      for (i64 bytes : r.arena) CHECK(bytes <= on.kinds[0].memory);
      fitted_stages const same = fit_stages(g, g, on, m);
      CHECK(same.plan == r.plan);
    }
  CHECK(fits > 3);
  CHECK(lacks > 2);
}

TEST_CASE("loss, optimizer and size of numbers are the model's, in the plan and in its program") {
  model_builder b;
  ref x = b.input("x", {zoo::batch, 16});
  for (int i = 0; i < 4; ++i) x = x | linear{16} | relu{};
  b.output("distance", all(x, b.input("y", {zoo::batch, 16})) | mean_squared_error{});
  computation_graph const g = lower(b, {zoo::batch = 1});
  machine const on = make_cluster("two", {"device", 1e12, 1e11, i64{1} << 30, 1e-6}, 2, 2, {"link", 2, 3e-6, 5e10}, {});
  graph_stage_options o;
  o.mini_batch = 4;
  o.loss = "distance";
  o.scalar_bytes = 8;
  o.optimizer.kind = optimizer_kind::adamw;
  fitted_stages const r = fit_stages(g, g, on, graph_stages<cost::analytical>(g, on, cost::analytical{}, o));
  REQUIRE(r.feasible());
  CHECK(r.plan.optimizer == o.optimizer);
  CHECK(r.plan.scalar_bytes == 8);
  CHECK(unroll(passes::pipeline_pass(g, r.plan, "distance")).arena == r.arena);
}

TEST_CASE("where there is room for all objectives but the step, the answer is that of find_stages") {
  computation_graph const g = zoo::make("candle_uno", 4);
  machine const on = make_cluster("large", {"device", 1e12, 1e11, i64{1} << 34, 1e-6}, 4, 4, {"link", 4, 3e-6, 5e10}, {});
  graph_stage_options o;
  o.mini_batch = 16;
  graph_stages<cost::analytical> const m(g, on, cost::analytical{}, o);
  stage_options least;
  least.objective = stage_objective::bottleneck;
  fitted_stages const r = fit_stages(g, g, on, m, least);
  REQUIRE(r.feasible());
  CHECK(r.tried == 1);
  CHECK(r.stages.pipeline == find_stages(g, m, least).pipeline);
}

namespace {
struct branched {
  std::string name;
  computation_graph graph;
};
std::vector<branched> branched_models() {
  std::vector<branched> r;
  auto const add = [&](std::string name, auto const& define) {
    model_builder g;
    define(g);
    r.push_back({std::move(name), lower(g, {zoo::batch = 1})});
  };
  add("mmt", [](model_builder& g) {
    zoo::mmt<>::define(g, zoo::mmt_sizes{.branches = 4, .layers = 2, .tokens = 32, .hidden = 64, .heads = 4, .wide = 256});
  });
  add("candle", [](model_builder& g) {
    zoo::candle_uno_graphpipe<>::define(g, zoo::candle_uno_graphpipe_sizes{.branches = 4, .layers = 3, .hidden = 256});
  });
  return r;
}
machine two_nodes(double bandwidth, int each = 2) {
  return make_cluster("two nodes", {"device", 1e11, 1e10, i64{1} << 34, 1e-6}, 2 * each, each, {"near", each, 1e-6, 1e10},
                      {"far", 2 * each, 5e-6, bandwidth});
}
double simulated_program(computation_graph const& g, machine const& on, graph_stages<cost::analytical> const& m, stage_result const& r) {
  auto const p = make_schedule(schedule_kind::one_f_one_b, r.pipeline, edges_of(r), costs_of(r));
  return simulate(unroll(passes::pipeline_pass(g, plan_of(g, on, m, *p, r.choices))), on, cost::analytical{}, {true, false}).seconds;
}
}  // namespace

TEST_CASE("of all candidates the program simulated fastest is taken: never slower than what estimates choose, faster on slow links") {
  int faster = 0, much = 0;
  for (branched const& b : branched_models())
    for (double bandwidth : {1e10, 2e8, 5e7})
      for (int max_data : {1, 4}) {
        CAPTURE(b.name);
        CAPTURE(bandwidth);
        CAPTURE(max_data);
        machine const on = two_nodes(bandwidth);
        graph_stage_options o;
        o.mini_batch = 16;
        o.max_data = max_data;
        graph_stages<cost::analytical> const m(b.graph, on, cost::analytical{}, o);
        fitted_stages const r = fit_stages(b.graph, b.graph, on, m);
        REQUIRE(r.feasible());
        double const chosen = simulated_program(b.graph, on, m, find_stages(b.graph, m));
        CHECK(r.seconds <= chosen * (1 + 1e-9));
        CHECK(r.seconds == doctest::Approx(simulated_program(b.graph, on, m, r.stages)));
        CHECK(r.seconds == doctest::Approx(simulate(unroll(passes::pipeline_pass(b.graph, r.plan)), on, cost::analytical{}).seconds));
        faster += r.seconds < chosen * 0.99;
        much += r.seconds < chosen * 0.8;
        // what is told of the stages is told in the prices of the model that was given
        std::vector<search::detail::found_stage> stages;
        for (std::size_t s = 0; s < r.stages.choices.size(); ++s)
          stages.push_back({r.stages.pipeline.stages[s].nodes, r.stages.choices[s], r.stages.pipeline.groups[s].first});
        stage_cost const priced = cost_of(m, stages);
        CHECK(r.stages.cost.iteration == priced.iteration);
        CHECK(r.stages.cost.bottleneck == priced.bottleneck);
        CHECK(r.stages.bound <= r.stages.cost.bottleneck);
        CHECK(r.stages.family_bound <= r.stages.cost.bottleneck);
      }
  CHECK(faster > 3);
  CHECK(much > 0);
}

TEST_CASE("stages of which most are near each other are found, as a search over the outermost links alone does not") {
  int faster = 0;
  for (branched const& b : branched_models())
    for (double bandwidth : {1e9, 2e8, 5e7}) {
      CAPTURE(b.name);
      CAPTURE(bandwidth);
      machine const on = two_nodes(bandwidth, 4);
      graph_stage_options o;
      o.mini_batch = 16;
      o.max_data = 1;
      graph_stages<cost::analytical> const m(b.graph, on, cost::analytical{}, o);
      search::detail::program_judge<cost::analytical> judge(b.graph, on, m, schedule_kind::one_f_one_b);
      find_stages(b.graph, m, {}, &judge);
      fitted_stages const r = fit_stages(b.graph, b.graph, on, m);
      REQUIRE(r.feasible());
      REQUIRE(judge.best());
      CHECK(r.seconds <= judge.best()->seconds * (1 + 1e-9));
      faster += r.seconds < judge.best()->seconds * 0.9;
    }
  CHECK(faster > 1);
}

TEST_CASE("a program that operators alone make too slow is not unrolled, and no other is said to be") {
  for (branched const& b : branched_models()) {
    CAPTURE(b.name);
    machine const on = two_nodes(1e9);
    graph_stage_options o;
    o.mini_batch = 16;
    graph_stages<cost::analytical> const m(b.graph, on, cost::analytical{}, o);
    search::detail::program_judge<cost::analytical> judge(b.graph, on, m, schedule_kind::one_f_one_b);
    std::vector<stage_result> all;
    for (i64 size : {1, 4, 16})
      for (stage_objective objective : {stage_objective::iteration, stage_objective::bottleneck}) {
        stage_options s;
        s.micro_batches = {size};
        s.objective = objective;
        s.exchanges = 0;
        all.push_back(find_stages(b.graph, m, s));
      }
    double tight = 0;
    for (stage_result const& r : all) {
      double const low = judge.least(r), seconds = judge.of(r).seconds;
      CHECK(low <= seconds * (1 + 1e-9));
      tight = std::max(tight, low / seconds);
    }
    CHECK(tight > 0.5);
    REQUIRE(judge.best());
    int const before = judge.unrolled();
    stage_options s;
    s.micro_batches = {1};
    o.max_data = 1;
    machine const slow = make_cluster("one", {"device", 1e11, 1e10, i64{1} << 34, 1e-6}, 1, 1, {}, {});
    stage_result const whole = find_stages(b.graph, graph_stages<cost::analytical>(b.graph, slow, cost::analytical{}, o), s);
    CHECK(judge.least(whole) > judge.best()->seconds);
    CHECK(judge.seconds(whole) == infinity);
    CHECK(judge.unrolled() == before);
    stage_result const winner = judge.best()->stages;
    CHECK(judge.seconds(winner) == judge.best()->seconds);
    CHECK(judge.unrolled() == before);
  }
}
