// tests/peers/rivals.test.cpp - rivals are what their names say, run as any plan, and none that fits beats the plan
#include <tensorpar/peers/rivals.hpp>

#include <doctest/doctest.h>
#include <support/search_once.hpp>
#include <tensorpar/check/check.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/zoo/registry.hpp>

#include "support/effort.hpp"
#include "support/small_gpt.hpp"

using namespace tensorpar;
using namespace tensorpar::peers;

namespace {

rival const& named(std::vector<rival> const& all, std::string const& name) {
  for (rival const& r : all) if (r.name == name) return r;
  FAIL("no " << name);
  return all.front();
}

}  // namespace

TEST_CASE("rivals are accepted by the checker and train as one device does, exactly") {
  training_problem const asked = tests::small_gpt(16);
  computation_graph const whole = ir::rebatch(asked.graph, 16);
  host_batch const data = tests::random_batch(whole, 1, 5);
  auto const wanted = tests::trained(tests::executor_of<prime_field>(whole, one_device_plan(whole, {"loss", asked.optimizer, 1})), data);
  std::vector<rival> const all = rivals(asked, logical(4), cost::analytical{}, {.simulated = 6});
  CHECK(all.size() == 7);
  for (rival const& r : all) {
    CAPTURE(r.name);
    CAPTURE(r.settings);
    if (!r.fits()) continue;
    planned_step const s = step_of(r.graph, r.plan);
    auto const found = check(s.graph, s.plan, s.program);
    CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found.front().text));
    CHECK(tests::trained(tests::executor_of<prime_field>(r.graph, r.plan), data) == wanted);
    CHECK(simulate(s.program, s.plan.cluster, cost::analytical{}).seconds == doctest::Approx(r.step.seconds));
  }
  for (char const* name : {"DDP", "ZeRO-2", "FSDP", "Megatron"}) CHECK(named(all, name).fits());
  for (op_strategy const& n : named(all, "DDP").plan.nodes) CHECK((n.zero == ir::zero_stage::none && !n.recompute));
  CHECK(named(all, "FSDP").settings.find("ZeRO-3") != std::string::npos);
}

TEST_CASE("no rival that fits beats the plan; one that does not fit says what it lacks") {
  int compared = 0, lacking = 0;
  struct instance { char const* model; char const* cluster; i64 samples; double memory; bool planners; };
  for (instance const& i : {instance{"llama3_8b:layers=2", "dgx-h100:2", 32, 1, false}, {"llama3_8b:layers=4", "dgx-h100:1", 16, 0.2, false},
                            {"gpt3_1b3:layers=2", "dgx-a100:1", 64, 1, true}, {"mlp_unify", "logical:4", 128, 1, true}}) {
    if (test_effort::slow && compared) continue;
    std::string const model = i.model;
    CAPTURE(model);
    machine on = preset(i.cluster);
    for (device_kind& k : on.kinds) k.memory = static_cast<i64>(static_cast<double>(k.memory) * i.memory);
    training_problem const asked{.graph = zoo::make(model, 1), .samples = i.samples, .optimizer = {.kind = optimizer_kind::adamw},
                                 .precision = on.kinds[0].rates.bf16 > 0 ? precision::bf16 : precision::f32};
    planned const mine = plan_training(asked, on, cost::analytical{}, {.threads = 1});
    REQUIRE(mine.feasible());
    for (rival const& r : rivals(asked, on, cost::analytical{}, {.simulated = 12, .planners = i.planners})) {
      CAPTURE(r.name);
      CAPTURE(r.settings);
      if (!r.refused.empty()) continue;
      if (!r.fits()) {
        ++lacking;
        CHECK(r.step.infeasible->missing > 0);
        continue;
      }
      ++compared;
      // rules, and pipelines of one stage without regard to what is known, may find a thousandth
      CHECK(mine.seconds() <= r.step.seconds * (i.planners ? 1 + 1e-3 : 1 + 1e-9));
    }
  }
  CHECK((compared >= 15 || test_effort::slow));
  CHECK((lacking > 0 || test_effort::slow));
}

TEST_CASE("degrees that nothing divides by are refused, not left out") {
  std::vector<rival> const all = rivals(tests::small_gpt(7), logical(4), cost::analytical{}, {.planners = false});
  CHECK(all.size() == 4);
  CHECK(named(all, "DDP").refused.find("7 samples on 4 devices") != std::string::npos);
  CHECK(!named(all, "DDP").fits());
}
