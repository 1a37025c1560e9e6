// tests/exec/trainer.test.cpp - what was planned trains as one device does, at once and from a stored plan, for any scalar
#include <tensorpar/exec/trainer.hpp>

#include <doctest/doctest.h>

#include <tensorpar/plan/codec.hpp>

#include <support/search_once.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/zoo/registry.hpp>

#include "support/spine.hpp"

using namespace tests;

namespace {

machine nodes(double bandwidth, double megabytes = 1 << 14) {
  return make_cluster("nodes", {"device", 1e9, 1e10, static_cast<i64>(megabytes * 1048576), 1e-6}, 4, 2, {"inside", 2, 1e-6, 1e10},
                      {"between", 4, 5e-6, bandwidth});
}
/// A classifier whose layers and their functions can be one operator each; one sample.
computation_graph layers() {
  model_builder b;
  ref x = b.input("x", {zoo::batch, 12});
  for (int i = 0; i < 5; ++i) x = x | linear{16} | relu{};
  b.output("loss", all(x | linear{12}, b.input("y", {zoo::batch}, dtype::i32)) | cross_entropy{});
  return lower(b, {zoo::batch = 1});
}
template <class E> auto trained(E&& run, host_batch const& data) {
  run.initialise(3);
  for (int step = 0; step < 2; ++step) run.step(data, 0.125);
  return parameters_by_name(run);
}
template <class S> using trainer_of = trainer<compute::eigen<S>, comm::threads>;

}  // namespace

TEST_CASE("plans of every kind, at once and read from text, with scratch counted or not: exactly the parameters of one device") {
  training_problem asked{.graph = layers(), .samples = 8, .optimizer = {optimizer_kind::momentum}, .name = "layers"};
  computation_graph const whole = tensorpar::ir::rebatch(asked.graph, 8);
  host_batch const data = random_batch(whole, 1, 5);
  auto const wanted = trained(executor_of<prime_field>(whole, one_device_plan(whole, {"loss", asked.optimizer, 1})), data);
  int staged = 0, flat = 0, rewritten_plans = 0;
  for (bool const counted : {false, true})
    for (effort const how : {effort::quick, effort::normal, effort::thorough})
      for (double bandwidth : {1e12, 1e6}) {
        CAPTURE(counted);
        CAPTURE(static_cast<int>(how));
        CAPTURE(bandwidth);
        asked.scratch = counted ? tensorpar::exec::scratch_of<compute::eigen<prime_field>>() : scratch_space{};
        planning_options o{.effort = how};
        if (bandwidth < 1e9) o.micro_batches = {8};                   // so small that stages are faster
        planned const p = plan_training(asked, nodes(bandwidth), tensorpar::cost::analytical{}, o);
        REQUIRE(p.feasible());
        (p.plan.pipeline.empty() ? flat : staged) += 1;
        rewritten_plans += !p.plan.rewrites.empty();
        CHECK(trained(trainer_of<prime_field>(p), data) == wanted);
        plan const read = decode(encode(p.plan), "plan");
        CHECK(trained(trainer_of<prime_field>(asked, read), data) == wanted);
        trainer_of<float> narrow(p);                                  // another scalar than it was planned for
        CHECK(narrow.program().scalar_bytes == sizeof(float));
        CHECK(trained(trainer_of<float>(asked, read), data) == trained(narrow, data));
      }
  CHECK(staged > 0);
  CHECK(flat > 0);
  CHECK(rewritten_plans > 0);
}

TEST_CASE("an answer without a plan, and a plan of another problem, are refused by name") {
  training_problem asked{.graph = layers(), .samples = 8};
  planned const none = plan_training(asked, nodes(1e9, 0.001), tensorpar::cost::analytical{});
  REQUIRE(!none.feasible());
  CHECK_THROWS_WITH_AS(trainer_of<float>{none}, doctest::Contains("no plan fits: device"), error);
  CHECK_THROWS_WITH_AS(trainer_of<float>(asked, none.plan), doctest::Contains("no plan fits: device"), error);
  planned const p = plan_training(asked, nodes(1e9), tensorpar::cost::analytical{}, {.effort = effort::quick});
  asked.samples = 12;
  CHECK_THROWS_WITH_AS(trainer_of<float>(asked, p.plan), doctest::Contains("for another batch size"), error);
}
