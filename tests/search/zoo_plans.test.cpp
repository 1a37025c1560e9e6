// tests/search/zoo_plans.test.cpp - every model of the zoo, small, trains under found plans as it does serially, and takes the memory said
#include <tensorpar/search/joint/joint.hpp>

#include <doctest/doctest.h>
#include <tensorpar/check/check.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/ir/mixed_precision.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/zoo/registry.hpp>

#include "support/effort.hpp"
#include "support/search_once.hpp"
#include "support/spine.hpp"

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

/// Forward, backward and update: the loss, and all parameters afterwards.
template <class S> auto trained(training_graph const& t, plan const& p, int steps) {
  tests::executor_of<S> e(t, p);
  auto const r = tests::train(e, steps);
  CHECK(e.copies_agree());
  CHECK(e.allocated_bytes() == e.program().arena);
  return r;
}
bool executes(computation_graph const& declared, plan const& p, training_options const& o, int steps) {
  plan serial = tests::serial_plan(declared);
  serial.optimizer = o.optimizer;
  training_graph const whole = differentiate(declared, o);
  planned_step const step = passes::memory_pass(differentiate(passes::rewritten(declared, p), o), p);
  auto const found = check(step.graph, step.plan, unroll(step.graph, step.plan));
  CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found.front().text));
  bool const exact = trained<prime_field>(step.graph, step.plan, steps) == trained<prime_field>(whole, serial, steps);
  return exact && tests::distance(trained<double>(step.graph, step.plan, steps), trained<double>(whole, serial, steps)) < 1e-9;
}

}  // namespace

TEST_CASE("plans of all models of the zoo execute, with all the memory there is and with little") {
  int recomputed = 0, sharded = 0, turn = 0;
  std::vector<zoo::entry> const& all = zoo::entries();
  REQUIRE(all.size() >= 20);
  for (zoo::entry const& e : all) {
    int const devices = std::vector<int>{2, 4, 8, 3, 6}[static_cast<std::size_t>(turn) % 5];
    if (turn++ % 7 && test_effort::slow) continue;
    CAPTURE(e.name);
    CAPTURE(devices);
    computation_graph const g = zoo::make_reduced(e.name, 24);
    machine on = preset("logical:" + std::to_string(devices));
    joint_options o;
    o.search.optimizer.kind = optimizer_kind::momentum;
    o.search.compare = false;
    training_options t;
    t.optimizer = o.search.optimizer;
    joint_result const free = optimize_jointly(g, on, cost::analytical{}, o);
    REQUIRE(free.feasible());
    CHECK(executes(g, free.plan, t, 1));
    if (turn % 3 == 0) {                                     // in bf16 nothing costs more, and the same is computed
      computation_graph const half = mixed_precision(g);
      joint_result const narrow = optimize_jointly(half, on, cost::analytical{}, o);
      REQUIRE(narrow.feasible());
      CHECK(narrow.cost.seconds <= free.cost.seconds * 1.001);
      CHECK(executes(half, narrow.plan, t, 1));
    }
    o.search.fewer_devices = false;                          // parts of a machine with little memory: intra/part_list
    i64 const most = *std::max_element(free.cost.bytes.begin(), free.cost.bytes.end());
    for (i64 percent : {70, 40}) {
      on.kinds[0].memory = most * percent / 100;
      joint_result const tight = optimize_jointly(g, on, cost::analytical{}, o);
      if (!tight.feasible()) { CHECK(tight.infeasible->missing > 0); break; }
      CHECK(tight.cost.seconds >= free.cost.seconds * (1 - 1e-9));
      planned_step const step = passes::memory_pass(differentiate(tight.graph, t), tight.plan);
      program const q = unroll(step.graph, step.plan);
      for (i64 bytes : q.arena) CHECK(bytes <= on.kinds[0].memory);
      CHECK(q.arena.front() == tight.cost.bytes.front());
      for (op_strategy const& n : tight.plan.nodes) {
        recomputed += n.recompute;
        sharded += n.zero != ir::zero_stage::none;
      }
      CHECK(executes(g, tight.plan, t, 1));
    }
  }
  CHECK((recomputed > 10 || test_effort::slow));
  CHECK((sharded > 10 || test_effort::slow));
}
