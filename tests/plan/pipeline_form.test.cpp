// tests/plan/pipeline_form.test.cpp - stages that do not partition the operators, groups that overlap, sizes that do not divide
#include <tensorpar/plan/pipeline_form.hpp>
#include <doctest/doctest.h>

#include <functional>
#include <vector>

using namespace tensorpar;

namespace {
/// Four operators in two stages on two groups of two devices; 8 samples in micro-batches of 2 and 4.
plan some() {
  plan p;
  p.cluster = make_cluster("four", {}, 4, 4, {}, {});
  p.nodes.resize(4);
  for (int v : {0, 1}) p.nodes[static_cast<std::size_t>(v)].sharding = {0, {{'0', 2, 1}}};
  for (int v : {2, 3}) p.nodes[static_cast<std::size_t>(v)].sharding = {2, {{'0', 2, 1}}};
  pipeline& q = p.pipeline;
  q.mini_batch = 8;
  q.unit = 2;
  q.groups = {{0, 2}, {2, 2}};
  q.stages.resize(2);
  q.stages[0].nodes = {0, 1};
  q.stages[0].micro_batch = 2;
  q.stages[1].nodes = {2, 3};
  q.stages[1].group = 1;
  q.stages[1].micro_batch = 4;
  q.schedule = {std::vector<pass_entry>(8), std::vector<pass_entry>(4)};
  return p;
}
}  // namespace

TEST_CASE("the stage of every operator") { CHECK(detail::stages_of_operators(4, some()) == std::vector<int>{0, 0, 1, 1}); }

TEST_CASE("what does not fit is named, with its place and what is valid") {
  struct spoilt { char const *what, *where; std::function<void(plan&)> spoil; };
  std::vector<spoilt> const all{
      {"orders for 1 groups", "pipeline: order", [](plan& p) { p.pipeline.schedule.pop_back(); }},
      {"the plan decides about 3 operators, the graph has 4", "pipeline: plan", [](plan& p) { p.nodes.pop_back(); }},
      {"2 micro-batches beside a pipeline", "pipeline: plan", [](plan& p) { p.micro_batches = 2; }},
      {"devices 3 to 4", "pipeline: group 1", [](plan& p) { p.pipeline.groups[1].first = 3; }},
      {"device 1 is in two groups", "pipeline: group 1", [](plan& p) { p.pipeline.groups[1].first = 1; }},
      {"group 2", "pipeline: stage 1", [](plan& p) { p.pipeline.stages[1].group = 2; }},
      {"3 samples per micro-batch", "pipeline: stage 0", [](plan& p) { p.pipeline.stages[0].micro_batch = 3; }},
      {"6 samples per micro-batch", "pipeline: stage 0", [](plan& p) { p.pipeline.stages[0].micro_batch = 6; }},
      {"micro-batches", "pipeline: stage 0", [](plan& p) { p.pipeline.mini_batch = 4 * (max_micro_batches + 1); }},
      {"operator 4", "pipeline: stage 1", [](plan& p) { p.pipeline.stages[1].nodes[1] = 4; }},
      {"operator 1 is in two stages", "pipeline: stage 1", [](plan& p) { p.pipeline.stages[1].nodes[0] = 1; }},
      {"operator 2 is sharded over devices 1 to 2", "pipeline: stage 1", [](plan& p) { p.nodes[2].sharding.start = 1; }},
      {"3 passes", "pipeline: order of group 0", [](plan& p) { p.pipeline.schedule[0].resize(3); }},
      {"operator 3 is in no stage", "pipeline: stages", [](plan& p) { p.pipeline.stages[1].nodes.pop_back(); }},
  };
  for (spoilt const& s : all) {
    CAPTURE(std::string(s.what));
    plan p = some();
    s.spoil(p);
    try {
      detail::stages_of_operators(4, p);
      FAIL_CHECK("accepted");
    } catch (error const& e) {
      CHECK(e.problem().find(s.what) != std::string::npos);
      CHECK(e.where() == s.where);
      CHECK(!e.valid().empty());
    }
  }
}
