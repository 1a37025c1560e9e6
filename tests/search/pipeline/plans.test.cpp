// tests/search/pipeline/plans.test.cpp - what the partitioner finds can be scheduled, unrolled and passes the checker
#include <tensorpar/search/pipeline/stages/any_model.hpp>
#include <tensorpar/search/pipeline/stages/fold.hpp>
#include <tensorpar/search/pipeline/to_plan.hpp>

#include <doctest/doctest.h>

#include <tensorpar/check/check.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/program/unroll.hpp>
#include <tensorpar/search/intra/machine_parts.hpp>
#include <tensorpar/search/pipeline/schedules/microbatch.hpp>
#include <tensorpar/zoo/graphpipe.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {
computation_graph towers() {
  model_builder g;
  zoo::candle_uno_graphpipe<>::define(g, zoo::candle_uno_graphpipe_sizes{.branches = 3, .layers = 3, .hidden = 64});
  return lower(g, {zoo::batch = 2});
}
}  // namespace

TEST_CASE("data and tensor parallel stages, with recomputation and sharded optimizers, become accepted programs") {
  computation_graph const g = towers();
  machine const on = make_cluster("small", {"device", 1e9, 1e10, i64{1} << 30, 0}, 8, 4, {"near", 4, 1e-7, 1e10}, {"far", 8, 1e-6, 1e9});
  int data = 0, tensor = 0, again = 0, parts = 0;
  for (i64 memory : {i64{1} << 30, i64{1} << 18, i64{90'000}})
    for (int max_tensor : {1, 4})
      for (bool more : {false, true}) {
        machine small = on;
        for (device_kind& k : small.kinds) k.memory = memory;
        graph_stage_options o;
        o.mini_batch = 32;
        o.max_tensor = max_tensor;
        if (max_tensor > 1) o.max_data = 2;
        o.recompute = o.shard_optimizer = more;
        o.optimizer.kind = optimizer_kind::adamw;
        graph_stages<cost::analytical> const m(g, small, cost::analytical{}, o);
        stage_result const r = find_stages(g, m);
        if (!r.feasible()) continue;
        auto const p = make_schedule(schedule_kind::one_f_one_b, r.pipeline, edges_of(r), costs_of(r));
        REQUIRE(p);
        plan const q = plan_of(g, small, m, *p, r.choices);
        CHECK(q.pipeline.unit == 2);
        for (stage_choice const& c : r.choices) {
          data += c.data > 1; tensor += c.tensor > 1; again += c.recompute; parts += c.shard_optimizer;
        }
        planned_step const s = passes::pipeline_pass(g, q);
        for (finding const& f : check(s.graph, s.plan, unroll(s))) if (f.code != fault::memory) FAIL_CHECK(f.text);
      }
  CHECK(data > 0);
  CHECK(tensor > 0);
  CHECK(again + parts > 0);
}

TEST_CASE("any number of devices in nodes of any size: the last node may be partly filled") {
  computation_graph const g = towers();
  int partly = 0, across = 0;
  for (int per_node : {1, 2, 3, 4, 5, 8})
    for (int n = 1; n <= 16; ++n) {
      INFO(n, " devices in nodes of ", per_node);
      int const full = (n + per_node - 1) / per_node * per_node;
      machine const on = search::detail::part_of(make_cluster("nodes", {"device", 1e9, 1e10, i64{1} << 30, 0}, full, per_node,
                                                              {"near", per_node, 1e-7, 1e10}, {"far", full, 1e-6, 1e9}), {0, n});
      REQUIRE(on.size() == n);
      partly += n != full;
      graph_stage_options o;
      o.mini_batch = 32;
      o.max_tensor = n % 3 ? 1 : 2;
      graph_stages<cost::analytical> const m(g, on, cost::analytical{}, o);
      stage_options least;
      least.objective = n % 2 ? stage_objective::iteration : stage_objective::bottleneck;
      least.exchanges = 2000;
      least.max_downsets = 256;
      stage_result const r = find_stages(g, m, least);
      REQUIRE(r.feasible());
      CHECK(r.bound <= r.cost.bottleneck * (1 + 1e-9));
      auto const p = make_schedule(schedule_kind::one_f_one_b, r.pipeline, edges_of(r), costs_of(r));
      REQUIRE(p);
      for (device_range const& d : p->groups) {
        CHECK(d.first >= 0);
        CHECK(d.first + d.count <= n);
        across += d.count > 1 && d.first / per_node != (d.first + d.count - 1) / per_node;
      }
      if (n % 5 == 0 || n == 7) {
        planned_step const s = passes::pipeline_pass(g, plan_of(g, on, m, *p, r.choices));
        for (finding const& f : check(s.graph, s.plan, unroll(s))) FAIL_CHECK(f.text);
      }
    }
  CHECK(partly > 0);
  CHECK(across > 0);
}

TEST_CASE("equal devices in nodes of three: copies that may lie in two nodes are priced as if they did") {
  computation_graph const g = towers();
  auto const once = [&](int n, int per_node, bool far_only) {
    link_level const near{"near", per_node, 1e-7, 1e10}, far{"far", n, 1e-6, 1e8};
    machine on{"nodes", {{"device", 1e9, 1e10, i64{1} << 30, 0}}, std::vector<int>(static_cast<std::size_t>(n), 0), {near, far}};
    if (far_only) on.links = {far};
    graph_stage_options o;
    o.mini_batch = 32;
    graph_stages<cost::analytical> const m(g, on, cost::analytical{}, o);
    double sum = 0;
    for (int v = 0; v < m.operators(); ++v) sum += m.work(v, {4, 1, 2, 1, false, false}, 0).once;
    return sum;
  };
  CHECK(once(6, 3, false) == once(6, 3, true));
  CHECK(once(5, 3, false) == once(5, 3, true));  // devices 2 and 3
  CHECK(once(3, 2, false) < once(3, 2, true));
  CHECK(once(8, 4, false) < once(8, 4, true));
}

TEST_CASE("a model behind a virtual face gives the same answers") {
  static_assert(stage_model<any_stages>);
  computation_graph const g = towers();
  machine const on = make_cluster("small", {"device", 1e9, 1e10, i64{1} << 30, 0}, 4, 4, {"near", 4, 1e-7, 1e10}, {});
  graph_stage_options o;
  o.mini_batch = 16;
  graph_stages<cost::analytical> const m(g, on, cost::analytical{}, o);
  stage_result const a = find_stages(g, m), b = find_stages(g, any_stages(m));
  CHECK(a.pipeline == b.pipeline);
  CHECK(a.cost.iteration == b.cost.iteration);
  CHECK(a.bound == b.bound);
}

TEST_CASE("stages fold round and back and forth") {
  pipeline p;
  for (int s = 0; s < 6; ++s) {
    p.groups.push_back({2 * s, 2});
    p.stages.push_back({});
    p.stages.back().group = s;
  }
  auto groups = [](pipeline const& q) {
    std::vector<int> r;
    for (pipeline_stage const& s : q.stages) r.push_back(s.group);
    return r;
  };
  pipeline const round = fold_stages(p, 3, fold_kind::round), bent = fold_stages(p, 3, fold_kind::back_and_forth);
  CHECK(groups(round) == std::vector<int>{0, 1, 2, 0, 1, 2});
  CHECK(groups(bent) == std::vector<int>{0, 1, 2, 2, 1, 0});
  CHECK(round.groups == std::vector<device_range>{{0, 2}, {2, 2}, {4, 2}});
  CHECK_THROWS_WITH_AS(fold_stages(p, 4, fold_kind::round), doctest::Contains("6 stages on 4 groups"), error);
  p.groups[2].count = 1;
  CHECK_THROWS_WITH_AS(fold_stages(p, 3, fold_kind::round), doctest::Contains("equal groups"), error);
}
