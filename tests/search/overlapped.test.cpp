// tests/search/overlapped.test.cpp - how far ahead collectives start is what is simulated to be fastest and fits
#include <doctest/doctest.h>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/search/overlapped.hpp>
#include <tensorpar/zoo/registry.hpp>

#include "support/small_graphs.hpp"

using namespace tests;

namespace {

/// Eight linear layers on four replicas, their weights in parts, over links on which gathers take as long as products.
struct in_parts {
  training_problem asked;
  plan p;
  in_parts() {
    computation_graph g;
    value_id x = g.add_input("x", {dim(32), dim(64)});
    for (int i = 0; i < 8; ++i) x = g.node(g.add_with_weights(linear{64, false}, {x}, "w" + std::to_string(i))).out[0];
    g.add_output("loss", g.node(g.add(mean_squared_error{}, {x, g.add_input("y", {dim(32), dim(64)})})).out[0]);
    p.graph = g.hash();
    p.cluster = make_cluster("four", {"device", 1e9, 1e9, i64{1} << 30, 0}, 4, 4, {"link", 4, 1e-7, 5e8}, {});
    for (graph_node const& n : g.nodes)
      p.nodes.push_back({{0, {{n.op.is<linear>() ? '0' : '\0', 4, 1}}}, ir::zero_stage::weights, false});
    asked.graph = std::move(g);
  }
  tensorpar::search::simulated_plan with(int prefetch) {
    p.prefetch = prefetch;
    return tensorpar::search::simulated(asked.graph, p, asked, cost::analytical{});
  }
  tensorpar::search::simulated_plan chosen(double bar = infinity) {
    return tensorpar::search::overlapped(asked.graph, p, asked, cost::analytical{}, bar);
  }
};

}  // namespace

TEST_CASE("the fastest of what is tried, with the seconds and bytes of the plan's own program") {
  in_parts x;
  auto const apart = x.with(0), best = x.chosen();
  CHECK(best.prefetch > 0);
  CHECK(x.p.prefetch == best.prefetch);
  CHECK(best.seconds < apart.seconds);
  CHECK(best.seconds >= best.computing);
  CHECK(best.seconds >= best.communicating);
  CHECK(best.peak > apart.peak);
  CHECK(x.with(best.prefetch).seconds == best.seconds);
  CHECK(x.with(best.prefetch).peak == best.peak);
  for (int ahead = 1; ahead <= best.prefetch; ahead *= 2) CHECK(x.with(ahead).seconds >= best.seconds);
}

TEST_CASE("what does not fit is not chosen; where nothing fits, what is missing is said") {
  in_parts x;
  auto const apart = x.with(0), best = x.chosen();
  x.p.cluster.kinds[0].memory = best.peak - 1;
  auto const less = x.chosen();
  CHECK(less.prefetch < best.prefetch);
  CHECK(!less.infeasible);
  CHECK(less.peak < best.peak);
  x.p.cluster.kinds[0].memory = apart.peak / 2;
  auto const none = x.chosen();
  REQUIRE(none.infeasible);
  CHECK(none.infeasible->missing > 0);
}

TEST_CASE("nothing is tried for a plan that computes for longer than the best step takes") {
  in_parts x;
  auto const apart = x.with(0);
  auto const slow = x.chosen(0.9 * apart.computing);
  CHECK(slow.prefetch == 0);
  CHECK(slow.seconds == apart.seconds);
}

TEST_CASE("one prefetch alone is tried where the plan fits with it, else the others") {
  in_parts x;
  auto const only = [&](int ahead) { return tensorpar::search::overlapped(x.asked.graph, x.p, x.asked, cost::analytical{}, infinity, ahead); };
  auto const apart = x.with(0), best = x.chosen();
  CHECK(only(0).seconds == apart.seconds);
  CHECK(x.p.prefetch == 0);
  CHECK(only(best.prefetch).seconds == best.seconds);
  x.p.cluster.kinds[0].memory = best.peak - 1;
  auto const less = only(best.prefetch);
  CHECK(!less.infeasible);
  CHECK(less.seconds == x.chosen().seconds);
  CHECK(x.p.prefetch < best.prefetch);
}

TEST_CASE("the prefetch of a pipeline of many micro-batches is that of few: no other makes the whole step faster") {
  using namespace tensorpar::search;
  training_problem const asked{.graph = zoo::make("gpt3_1b3:layers=6,hidden=1024,wide=4096,heads=16,vocab=1024,seq=512", 1),
                               .samples = 32, .precision = precision::bf16};
  cost::analytical const model;
  configurations<cost::analytical> all(asked, preset("dgx-h100:1"), model);
  for (int chunks : {1, 3}) {
    CAPTURE(chunks);
    parallel_config c{.data = 1, .tensor = 4, .pipeline = 2, .virtual_stages = chunks, .micro_batch = 1};
    std::optional<int> const few = prefetch_of_few(all, c, asked, model);
    REQUIRE(few);
    CHECK(*few > 0);
    configured_plan x = all.plan_of(c);
    simulated_plan const found = overlapped(x.graph, x.plan, asked, model, infinity, few), best = overlapped(x.graph, x.plan, asked, model, infinity);
    CHECK(found.prefetch == *few);
    CHECK(found.seconds <= 1.005 * best.seconds);
    c.micro_batch = 8;                                           // four micro-batches
    CHECK(!prefetch_of_few(all, c, asked, model));
  }
  CHECK(!prefetch_of_few(all, {.data = 8}, asked, model));
}
