// tests/search/fit_stages.test.cpp - pipelines that are said to fit have arenas that do, and none is said to be found that has not
#include <tensorpar/search/stages/fit_stages.hpp>

#include <doctest/doctest.h>

#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/plan/check.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;

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
      o.most_tensor = tensor;
      graph_stages<analytical> const m(g, on, analytical{}, o);
      fitted_stages const r = fit_stages(g, g, on, m);
      if (!r.feasible()) {
        ++lacks;
        CHECK(r.infeasible->missing > 0);
        CHECK(r.infeasible->needed - r.infeasible->capacity == r.infeasible->missing);
        CHECK(r.plan.pipeline.empty());
        continue;
      }
      ++fits;
      pipelined_step const s = expand(g, r.plan);
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

TEST_CASE("where there is room the answer is that of find_stages") {
  computation_graph const g = zoo::make("candle_uno", 4);
  machine const on = make_cluster("large", {"device", 1e12, 1e11, i64{1} << 34, 1e-6}, 4, 4, {"link", 4, 3e-6, 5e10}, {});
  graph_stage_options o;
  o.mini_batch = 16;
  graph_stages<analytical> const m(g, on, analytical{}, o);
  fitted_stages const r = fit_stages(g, g, on, m);
  REQUIRE(r.feasible());
  CHECK(r.tried == 1);
  CHECK(r.stages.pipeline == find_stages(g, m).pipeline);
}
