// tests/report/choices.test.cpp - what is told of a step about memory and prefetching is what its plan decided
#include <tensorpar/report/choices.hpp>
#include <doctest/doctest.h>

#include <report/report_subject.hpp>
#include <support/random_pipeline.hpp>
#include <tensorpar/program/step_of.hpp>

using namespace tensorpar;

TEST_CASE("choices in words") {
  using words = std::vector<std::string>;
  CHECK(report::choice_words({}) == words{});
  CHECK(report::choice_words({ir::zero_stage::none, false, true}) == words{"prefetched"});
  CHECK(report::choice_words({ir::zero_stage::updates, true, false}) == words{"computed again", "ZeRO: updates in parts"});
  CHECK(report::choice_words({ir::zero_stage::gradients, false, false}) == words{"ZeRO: gradients in parts"});
  CHECK(report::choice_words({ir::zero_stage::weights, true, true}) == words{"computed again", "ZeRO: weights in parts", "prefetched"});
}

TEST_CASE("flags of a plan are found in the graph of its step, where they change it") {
  std::mt19937 draw(4);
  int updates = 0, gradients = 0, weights = 0, again = 0, none = 0;
  for (int turn = 0; turn < 40; ++turn) {
    computation_graph const g = turn % 2 ? tests::residual_mlp() : tests::small_transformer();
    plan p = tests::random_plan(g, 4, draw);
    p.prefetch = 0;
    for (op_strategy& n : p.nodes) {
      n.zero = static_cast<ir::zero_stage>(draw() % 4);
      n.recompute = draw() % 3 == 0;
    }
    planned_step const s = step_of(g, p);
    std::vector<report::operator_choice> const c = report::choices_of(s.graph, s.plan, s.program);
    REQUIRE(c.size() == p.nodes.size());
    for (std::size_t v = 0; v < c.size(); ++v) {
      bool const owns = [&] {                          // a weight lives with the first operator that reads it
        for (int x : g.node(static_cast<int>(v)).in)
          if (g.value(x).role == value_role::parameter && s.graph.gradient[static_cast<std::size_t>(x)] >= 0) return true;
        return false;
      }();
      CHECK(c[v].zero <= p.nodes[v].zero);             // no copies to share between: nothing changes
      if (!owns) CHECK(c[v].zero == ir::zero_stage::none);
      if (c[v].recomputed) CHECK(p.nodes[v].recompute);  // nobody may read it in the backward pass
      CHECK_FALSE(c[v].prefetched);
      updates += c[v].zero == ir::zero_stage::updates;
      gradients += c[v].zero == ir::zero_stage::gradients;
      weights += c[v].zero == ir::zero_stage::weights;
      again += c[v].recomputed;
      none += c[v] == report::operator_choice{};
    }
  }
  CHECK(updates > 10);
  CHECK(gradients > 10);
  CHECK(weights > 10);
  CHECK(again > 10);
  CHECK(none > 10);
}

TEST_CASE("data parallel: ZeRO is seen at every operator with weights; collectives ahead at some, and at none without prefetching") {
  computation_graph const g = tests::residual_mlp();
  plan p = tests::serial_plan(g);
  p.cluster = tests::devices(2);
  for (int v = 0; v < g.node_count(); ++v) {
    p.nodes[static_cast<std::size_t>(v)].sharding = {0, {{'0', 2, 1}}};
    if (!ir::space_of(g, v).find('0') || ir::space_of(g, v).find('0')->units % 2) p.nodes[static_cast<std::size_t>(v)].sharding = {0, {{'\0', 2, 1}}};
    p.nodes[static_cast<std::size_t>(v)].zero = ir::zero_stage::weights;
  }
  for (int prefetch : {0, 2}) {
    p.prefetch = prefetch;
    planned_step const s = step_of(g, p);
    int ahead = 0, parts = 0;
    for (report::operator_choice const& c : report::choices_of(s.graph, s.plan, s.program)) {
      ahead += c.prefetched;
      parts += c.zero == ir::zero_stage::weights;
    }
    CHECK(parts >= 3);
    CHECK((ahead > 0) == (prefetch > 0));
  }
}
