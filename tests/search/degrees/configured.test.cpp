// tests/search/degrees/configured.test.cpp - the plan of a configuration is what it says, and trains as one device does
#include <tensorpar/search/degrees/configured.hpp>

#include <doctest/doctest.h>
#include <support/search_once.hpp>
#include <tensorpar/check/check.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/program/memory_by_kind.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tensorpar/zoo/registry.hpp>

#include "support/small_gpt.hpp"

using namespace tensorpar;
using namespace tensorpar::search;

TEST_CASE("configurations of every kind are accepted by the checker and train as one device does, exactly") {
  training_problem const asked = tests::small_gpt(16);
  computation_graph const whole = ir::rebatch(asked.graph, 16);
  host_batch const data = tests::random_batch(whole, 1, 5);
  auto const wanted = tests::trained(tests::executor_of<prime_field>(whole, one_device_plan(whole, {"loss", asked.optimizer, 1})), data);
  struct degrees { int data, tensor, pipeline, chunks; };
  int turn = 0;                                                          // each degree meets each sharding and each recomputation
  for (degrees const d : {degrees{8, 1, 1, 1}, {4, 2, 1, 1}, {2, 4, 1, 1}, {1, 8, 1, 1}, {2, 2, 2, 1}, {2, 2, 2, 2}, {1, 4, 2, 2}, {1, 2, 4, 1}}) {
    ++turn;
    for (auto const sharding : {ir::zero_stage::none, ir::zero_stage::updates, ir::zero_stage::weights, ir::zero_stage::gradients})
      for (auto const again : {recomputation::none, recomputation::selective, recomputation::full}) {
        if ((static_cast<int>(sharding) + static_cast<int>(again) + turn) % 3) continue;
        parallel_config const c{.data = d.data, .tensor = d.tensor, .pipeline = d.pipeline, .virtual_stages = d.chunks,
                                .micro_batch = again == recomputation::none ? 2 : 1, .sequence_parallel = again != recomputation::full,
                                .sharding = sharding, .recompute = again, .recompute_layers = turn % 2};
        CAPTURE(text_of(c));
        configured_plan const x = configured(asked, logical(8), cost::analytical{}, c);
        planned_step const s = step_of(x.graph, x.plan);
        auto const found = check(s.graph, s.plan, s.program);
        CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found.front().text));
        CHECK(tests::trained(tests::executor_of<prime_field>(x.graph, x.plan), data) == wanted);
        CHECK(x.plan.pipeline.stages.size() == (d.pipeline > 1 ? static_cast<std::size_t>(d.pipeline * d.chunks) : 0));
        int shared = 0, repeated = 0;
        for (op_strategy const& n : x.plan.nodes) shared += n.zero == sharding && sharding != ir::zero_stage::none, repeated += n.recompute;
        CHECK((shared > 0) == (sharding != ir::zero_stage::none));
        CHECK((repeated > 0) == (again != recomputation::none));
      }
  }
}

TEST_CASE("ZeRO-2 scatters every micro-batch's gradients and keeps no whole sum, in a pipeline or without") {
  training_problem const asked = tests::small_gpt(16);
  for (int stages : {1, 2}) {
    CAPTURE(stages);
    auto const of = [&](ir::zero_stage shared) {
      parallel_config const c{.data = 4, .pipeline = stages, .micro_batch = 1, .sharding = shared, .prefetch = 0};
      configured_plan const x = configured(asked, logical(4 * stages), cost::analytical{}, c);
      planned_step const s = step_of(x.graph, x.plan);
      CHECK(check(s.graph, s.plan, s.program).empty());
      i64 scatters = 0;
      for (task const& t : s.program.tasks)
        scatters += t.kind == task_kind::reshard && t.step.kind == ir::reshard_kind::reduce_scatter;
      return std::pair(passes::memory_of(s).front()[passes::memory_kind::gradients], scatters);
    };
    auto const [whole, once] = of(ir::zero_stage::updates);
    auto const [parts, each] = of(ir::zero_stage::gradients);
    CHECK(parts < whole * 3 / 4);                     // what one micro-batch just made is whole
    CHECK(once > 0);
    CHECK(each == 4 * once);                          // micro-batches
  }
}

TEST_CASE("tensor parallelism is Megatron's: heads, and products split along what the next one sums") {
  training_problem const asked{.graph = zoo::make("gpt3_1b3:layers=3", 1), .samples = 32, .precision = precision::bf16};
  configured_plan const x = configured(asked, preset("dgx-h100"), cost::analytical{}, {.tensor = 8, .micro_batch = 4});
  int heads = 0, columns = 0, rows = 0;
  auto const letter = [&](int v) { return x.plan.nodes[static_cast<std::size_t>(v)].sharding.axes.back().letter; };
  for (int v = 0; v < x.graph.node_count(); ++v) {
    graph_node const& n = x.graph.node(v);
    if (n.block < 0) continue;
    if (n.op.is<attention>()) heads += letter(v) == 'e';
    if (!n.op.is<linear>()) continue;
    bool const down = x.graph.value(n.in[0]).type.last().n == 8192 || x.graph.node(x.graph.value(n.in[0]).producer).op.is<attention>();
    (down ? rows : columns) += letter(v) == (down ? 'i' : 'o');
  }
  CHECK(heads == 3);
  CHECK(columns == 3 * 4);
  CHECK(rows == 3 * 2);
  CHECK(x.plan.precision == precision::bf16);
  CHECK(x.plan.micro_batches == 8);
}

TEST_CASE("tensor parallelism communicates while it computes gradients of weights, with what it recomputes in time") {
  training_problem const asked{.graph = zoo::make("gpt3_1b3:layers=6,hidden=4096,wide=16384,heads=32,vocab=1024", 1), .samples = 4, .precision = precision::bf16};
  machine const on = preset("dgx-h100:1");
  cost::analytical const model;
  auto const uncovered = [&](int prefetch) {                             // of the time that device 0 communicates
    configured_plan const x = configured(asked, on, model, {.tensor = 8, .micro_batch = 2, .recompute = recomputation::selective, .prefetch = prefetch});
    planned_step const s = step_of(x.graph, x.plan);
    timeline const t = simulate(s.program, x.plan.cluster, model);
    double computing = 0, communicating = 0;
    for (span const& k : t.spans) if (k.device == 0) (k.where == lane::compute ? computing : communicating) += k.end - k.start;
    CHECK(communicating > 0.1 * computing);
    return (t.seconds - computing) / communicating;
  };
  CHECK(uncovered(0) > 0.85);
  CHECK(uncovered(2) < 0.75);                                            // results of the forward pass are waited for
}

TEST_CASE("a pipeline has up to two stages more than layers: what stands before them, and what follows") {
  training_problem const asked = tests::small_gpt(16);
  parallel_config const c{.tensor = 2, .pipeline = 3, .virtual_stages = 2, .micro_batch = 1};
  training_problem some = asked;
  some.samples = 15;
  configured_plan const x = configured(some, logical(6), cost::analytical{}, c);
  REQUIRE(x.plan.pipeline.stages.size() == 6);
  for (std::size_t s = 0; s < 6; ++s) {
    int layers = 0;
    for (int v : x.plan.pipeline.stages[s].nodes) layers = std::max(layers, x.graph.node(v).op.is<attention>() ? 1 : 0);
    CHECK(layers == (s > 0 && s < 5));
    CHECK(!x.plan.pipeline.stages[s].nodes.empty());
  }
  planned_step const s = step_of(x.graph, x.plan);
  CHECK(check(s.graph, s.plan, s.program).empty());
}

TEST_CASE("a stage keeps what it was sent: recomputing asks for nothing again") {
  training_problem const asked = tests::small_gpt(16);
  for (auto const again : {recomputation::none, recomputation::selective, recomputation::full}) {
    configured_plan const x = configured(asked, logical(4), cost::analytical{}, {.tensor = 2, .pipeline = 2, .micro_batch = 2, .recompute = again});
    planned_step const s = step_of(x.graph, x.plan);
    int sends = 0;
    for (task const& t : s.program.tasks)
      sends += t.kind == task_kind::send && s.program.buffers[static_cast<std::size_t>(t.in[0])].type.rank == 3;
    CHECK(sends == 2 * 8);                                               // activations and their gradients of 8 micro-batches
  }
}

TEST_CASE("what does not divide is refused, and says what would") {
  training_problem const asked = tests::small_gpt(16);
  auto const refused = [&](parallel_config const& c, char const* problem) {
    CHECK_THROWS_WITH_AS(configured(asked, logical(8), cost::analytical{}, c), doctest::Contains(problem), error);
  };
  refused({.data = 4, .prefetch = 0}, "tensor 1, pipeline 1, data 4, micro-batches of 1 on 8 devices");
  refused({.data = 8, .tensor = 0}, "a degree of 0");
  refused({.data = 8, .micro_batch = 3}, "16 samples in micro-batches of 3 on 8 replicas");
  refused({.data = 1, .pipeline = 8}, "4 repeated layers for 8 stages");
  refused({.data = 1, .pipeline = 8}, "and two for what stands at the ends");
}
