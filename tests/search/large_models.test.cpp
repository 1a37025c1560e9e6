// tests/search/large_models.test.cpp - the shape of LLaMA-3 405B on 4,096 devices: plans keep to the memory there is, or say what lacks
#include <tensorpar/search/joint/joint.hpp>

#include <doctest/doctest.h>

#include <support/effort.hpp>
#include <support/search_once.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <support/peaks.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

TEST_CASE("405B on 4,096 devices of 80 GB: with and without recomputation and shards the plan's program keeps to the limit") {
  if (test_effort::slow) return;                              // minutes under a sanitizer
  computation_graph const g = zoo::make("llama3_405b", 512);
  struct { bool save; i64 memory; bool fits; } const cases[] = {{true, 0, true}, {false, 0, false}, {false, i64{768} << 30, true}};
  for (auto const& [save, memory, fits] : cases) {
    CAPTURE(save);
    CAPTURE(memory);
    machine on = preset("dgx-h100:512");
    if (memory) on.kinds[0].memory = memory;
    joint_options o;
    o.search.compare = false;
    o.search.save_memory = save;
    o.search.optimizer.kind = optimizer_kind::adamw;
    joint_result const r = optimize_jointly(g, on, cost::analytical{}, o);
    REQUIRE(r.feasible() == fits);
    if (!r.feasible()) {
      CHECK(r.infeasible->missing > 0);
      CHECK(r.infeasible->needed == r.infeasible->capacity + r.infeasible->missing);
      continue;
    }
    planned_step const step = passes::memory_pass(differentiate(r.graph, {o.search.loss, o.search.optimizer, 1}), r.plan);
    int saved = 0;
    for (op_strategy const& n : r.plan.nodes) saved += n.recompute || n.zero == ir::zero_stage::weights;
    CHECK((saved > 0) == save);
    for (int d : {0, 4095}) {
      program const q = unroll(step.graph, step.plan, {.device = d});
      i64 const arena = q.arena[static_cast<std::size_t>(d)];
      auto const live = memory_over_tasks(q, d);
      CHECK(arena <= on.kinds[0].memory);
      CHECK(*std::max_element(live.begin(), live.end()) <= arena);
      CHECK(arena == r.cost.bytes[static_cast<std::size_t>(d)]);
    }
  }
}
