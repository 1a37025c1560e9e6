// tests/search/pipeline/grouped.test.cpp - groups of operators: nothing is lost silently
#include "stage_oracle.hpp"
#include "support/effort.hpp"
#include <doctest/doctest.h>
#include <tensorpar/graph/convexity.hpp>
#include <tensorpar/search/pipeline/grouped.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tests;

TEST_CASE("stages: groups of one operator are the operators; larger groups only lose, and the gap says at most how much") {
  random_source r{8};
  int lost = 0;
  for (int round = 0; round < test_effort::cases(60); ++round) {
    int const n = 3 + r.below(5);
    stage_problem_options q;
    q.devices = 2 + r.below(3);
    q.tight = round % 3 == 0;
    stage_problem const p = random_stage_problem(r, graph_of(random_sp_tree(r, n), n), q);
    stage_options o;
    o.objective = stage_objective::bottleneck;
    o.tolerance = 0;
    std::vector<int> alone;
    for (int v = 0; v < n; ++v) alone.push_back(v);
    stage_result const fine = find_stages(p.graph, p.model, o), same = find_stages_grouped(p.graph, p.model, alone, o),
                       coarse = find_stages_grouped(p.graph, p.model, light_chains(p.graph, p.model, 0.5), o);
    INFO(round, ": ", p.text);
    REQUIRE(fine.feasible() == same.feasible());
    if (!fine.feasible()) continue;
    CHECK(same.cost.bottleneck == doctest::Approx(fine.cost.bottleneck));
    if (!coarse.feasible()) continue;
    CHECK(coarse.cost.bottleneck >= fine.cost.bottleneck * (1 - 1e-9));
    CHECK(coarse.cost.bottleneck * (1 - coarse.gap) <= fine.cost.bottleneck * (1 + 1e-9));
    lost += coarse.cost.bottleneck > fine.cost.bottleneck * (1 + 1e-9);
    int seen = 0;
    for (pipeline_stage const& s : coarse.pipeline.stages) {
      CHECK(graph::is_convex(p.graph, s.nodes));
      seen += static_cast<int>(s.nodes.size());
    }
    CHECK(seen == n);
  }
  CHECK((test_effort::slow || lost > 0));
}

TEST_CASE("stages: groups that are none are refused") {
  lists const chain{{}, {0}, {1}};
  additive_stages const m(std::vector<operator_numbers>(3, operator_numbers{1, 1, 0, 0, 0, 0, 1, 0}), tensors_of(chain, {1, 1, 1}),
                          stage_devices::equal(2), {4, 2, 4, 1, false, false});
  CHECK(light_chains(chain, m, 0) == std::vector<int>{0, 1, 2});
  CHECK(light_chains(chain, m, 10) == std::vector<int>{0, 0, 0});
  CHECK_THROWS_WITH_AS(grouped_stages<additive_stages>(chain, m, {0, 1, 0}), doctest::Contains("waits for itself"), error);
  CHECK_THROWS_WITH_AS(grouped_stages<additive_stages>(chain, m, {0, 2, 2}), doctest::Contains("group 1 is empty"), error);
  CHECK_THROWS_WITH_AS(grouped_stages<additive_stages>(chain, m, {0, 1}), doctest::Contains("groups of 2 operators"), error);
}
