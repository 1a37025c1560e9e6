// tests/program/schedule.test.cpp - edges of stages from edges of operators, and what generators and simulator refuse
#include <tensorpar/program/schedule.hpp>
#include <doctest/doctest.h>

#include "support/pipelines.hpp"

using namespace tensorpar;

namespace {
std::string complaint(pipeline const& p, passes::stage_edges const& e) {
  try {
    passes::require_schedulable(p, e);
  } catch (error const& x) {
    return x.what();
  }
  return "";
}
}  // namespace

TEST_CASE("edges between stages: each pair once, none within a stage, operators without a stage ignored") {
  // 0 and 1 feed 2 and 3, 4 hangs on 3; stages {0}, {1, 2}, {3}
  tests::lists const operators{{}, {}, {0, 1}, {0, 1, 2}, {3}};
  pipeline p = tests::chain_pipeline(3, 3, 2);
  p.stages[0].nodes = {0};
  p.stages[1].nodes = {1, 2};
  p.stages[2].nodes = {3};
  CHECK(passes::stages_by_operator(p, 5) == std::vector<int>{0, 1, 1, 2, -1});
  passes::stage_edges const e = passes::edges_between_stages(operators, p);
  CHECK(e == passes::stage_edges{{}, {0}, {0, 1}});
  CHECK(passes::reversed_edges(e) == passes::stage_edges{{1, 2}, {2}, {}});
  CHECK(passes::reversed_edges(passes::reversed_edges(e)) == e);
  p.stages[2].nodes = {5};
  CHECK_THROWS_WITH_AS(passes::edges_between_stages(operators, p), "operator 5 (at stage 2); valid: 0 to 4", error);
}

TEST_CASE("a chain of stages") {
  CHECK(passes::chain_of_stages(0).empty());
  CHECK(passes::chain_of_stages(3) == passes::stage_edges{{}, {0}, {1}});
}

TEST_CASE("what cannot be scheduled is named") {
  pipeline const good = tests::chain_pipeline(2, 2, 4);
  passes::stage_edges const e = passes::chain_of_stages(2);
  CHECK(complaint(good, e).empty());
  CHECK(passes::one_stage_per_group(good));
  auto p = good;
  p.mini_batch = 0;
  CHECK(complaint(p, e).find("a mini-batch of 0 samples") == 0);
  p = good;
  p.stages[1].micro_batch = 3;
  CHECK(complaint(p, e).find("a micro-batch of 3 samples (at stage 1)") == 0);
  p = good;
  p.mini_batch = 12;
  p.stages[0].micro_batch = 2;
  p.stages[1].micro_batch = 3;
  CHECK(complaint(p, e).find("micro-batches of 3 after 2 samples (at stage 1)") == 0);
  p = good;
  p.mini_batch = i64{1} << 30;   // nobody asks for a vector of that many passes
  CHECK(complaint(p, e).find("a micro-batch of 1 samples (at stage 0)") == 0);
  p = good;
  p.stages[1].group = 2;
  CHECK(complaint(p, e) == "group 2 (at stage 1); valid: 0 to 1");
  CHECK_FALSE(passes::one_stage_per_group(p));
  p.stages[1].group = 0;
  CHECK_FALSE(passes::one_stage_per_group(p));
  p = good;
  p.stages[0].k = 0;
  CHECK(complaint(p, e).find("k of 0 (at stage 0)") == 0);
  CHECK(complaint(good, {{}, {1}}).find("an edge from stage 1 (at stage 1)") == 0);
  CHECK(complaint(good, {{}, {-1}}).find("an edge from stage -1") == 0);
  CHECK(complaint(good, passes::chain_of_stages(3)).find("edges of 3 stages") == 0);
}
