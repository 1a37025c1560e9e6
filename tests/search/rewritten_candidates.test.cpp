// tests/search/rewritten_candidates.test.cpp - rules, micro-batches, shardings and stages together: the fastest program of all, and a sound
// one
#include <tensorpar/search/plan_training.hpp>
#include <doctest/doctest.h>

#include <support/effort.hpp>
#include <support/search_once.hpp>
#include <support/spine.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/plan/codec.hpp>
#include <tensorpar/program/evidence/certificate.hpp>
#include <tensorpar/search/rewritten_candidates.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

machine nodes(int count, int each, double bandwidth, double megabytes = 1 << 14) {
  return make_cluster("nodes", {"device", 1e11, 1e10, static_cast<i64>(megabytes * 1048576), 1e-6}, count * each, each,
                      {"inside", each, 1e-6, 1e10}, {"between", count * each, 5e-6, bandwidth});
}
bool rewrites(tried_plan const& c) { return c.what.find(", rewritten") != std::string::npos; }

/// The plan as a file has it finds its graph from the declared one, and its evidence is accepted.
void check_plan(computation_graph const& given, i64 batch, planned const& r) {
  REQUIRE(r.feasible());
  tried_plan const& best = r.tried[static_cast<std::size_t>(r.chosen)];
  for (tried_plan const& c : r.tried) if (c.feasible()) CHECK(best.seconds <= c.seconds * (1 + 1e-9));
  CHECK(rewrites(best) != r.plan.rewrites.empty());
  CHECK(r.plan.pipeline.empty() == (best.stages == 0));
  plan const read = decode(encode(r.plan), "plan");
  CHECK(read == r.plan);
  computation_graph const declared = graph_of(given, read, batch);
  CHECK(passes::rewritten(declared, read).hash() == r.graph.hash());
  CHECK(check_certificate(declared, read).empty());
  CHECK_THROWS_AS(graph_of(given, read, 2 * batch), error);
}

/// A classifier whose layers and their functions can be one operator each; samples of 12 numbers.
computation_graph layers(int count, i64 width) {
  model_builder b;
  ref x = b.input("x", {zoo::batch, 12});
  for (int i = 0; i < count; ++i) x = x | linear{width} | relu{};
  b.output("loss", all(x | linear{12}, b.input("y", {zoo::batch}, dtype::i32)) | cross_entropy{});
  return lower(b, {zoo::batch = 1});
}

}  // namespace

TEST_CASE("never slower than without rules, whose candidates are all there; rules are applied to plans of both kinds") {
  int staged = 0, flat = 0, none = 0;
  std::string const gpt = "gpt3_1b3:layers=2,hidden=64,heads=4,wide=256,seq=32,vocab=512";
  for (std::string const name : {"candle_uno", "mlp_unify", "dlrm", "gpt"})
    for (double bandwidth : {1e10, 1e8}) {
      CAPTURE(name);
      CAPTURE(bandwidth);
      if (test_effort::slow && (name == "gpt") == (bandwidth == 1e10)) continue;
      computation_graph const g = name == "gpt" ? zoo::make(gpt, 1) : zoo::make_reduced(name, 1);
      machine const on = nodes(2, 2, bandwidth);
      training_problem const asked{.graph = g, .samples = 16};
      planned const without = plan_training(asked, on, cost::analytical{});
      planned const r = plan_training(asked, on, cost::analytical{}, {.effort = effort::thorough});
      check_plan(g, 16, r);
      CHECK(r.plan.step_seconds <= without.plan.step_seconds * (1 + 1e-9));
      for (tried_plan const& c : without.tried) {
        bool there = false;
        for (tried_plan const& d : r.tried)
          // what cannot be the fastest any more is not unrolled, or not with prefetch; another pipeline of the kind is the best then
          there = there || (d.what == c.what && (d.seconds == c.seconds || d.seconds > r.plan.step_seconds)) ||
                  (d.what == c.what.substr(0, c.what.find(", mapped")) && d.seconds > r.plan.step_seconds);
        CHECK(there);
      }
      for (tried_plan const& c : without.tried) CHECK_FALSE(rewrites(c));
      if (r.plan.rewrites.empty()) ++none;
      else (r.plan.pipeline.empty() ? flat : staged) += 1;
    }
  CHECK(staged > 0);
  CHECK(flat > 0);
  CHECK(none > 0);
}

TEST_CASE("a plan with stages of rewritten layers trains exactly the parameters that the declared graph has on one device") {
  computation_graph const g = layers(5, 16);
  int staged = 0, flat = 0;
  for (bool const stages : {false, true}) {
    training_problem const asked{.graph = g, .samples = 8, .optimizer = {optimizer_kind::momentum}};
    planning_options o{.effort = effort::thorough};
    if (stages) o.micro_batches = {8};                            // so small that stages are faster
    else o.schedules = std::vector<schedule_kind>{};
    machine const on = stages ? nodes(2, 1, 1e6) : nodes(1, 2, 1e12);
    planned const r = plan_training(asked, on, cost::analytical{}, o);
    REQUIRE(r.feasible());
    CHECK_FALSE(r.plan.rewrites.empty());
    (r.plan.pipeline.empty() ? flat : staged) += 1;
    computation_graph const whole = ir::rebatch(g, 8);
    host_batch const data = tests::random_batch(whole, 1, 5);
    tests::executor_of<prime_field> one(whole, one_device_plan(whole, {"loss", asked.optimizer, 1}));
    tests::executor_of<prime_field> all(r.graph, r.plan);
    auto const trained = [&](auto& run) {
      for (int step = 0; step < 2; ++step) run.step(data, 0.125);
      return tests::parameters_by_name(run);
    };
    one.initialise(3);
    all.initialise(3);
    CHECK(trained(one) == trained(all));
  }
  CHECK(staged == 1);
  CHECK(flat == 1);
}

TEST_CASE("rules of your own, none at all, and the same answer for any number of threads") {
  computation_graph const g = zoo::make_reduced("candle_uno", 1);
  machine const on = nodes(2, 2, 1e8);
  training_problem const asked{.graph = g, .samples = 16};
  planning_options o{.effort = effort::thorough};
  std::vector<rewrite::rule> const nothing;
  o.knobs.rules.rules = &nothing;
  planned const none = plan_training(asked, on, cost::analytical{}, o), without = plan_training(asked, on, cost::analytical{});
  CHECK(none.plan == without.plan);
  CHECK(none.tried.size() == without.tried.size());
  std::vector<rewrite::rule> const some(substitution_rules().begin(), substitution_rules().end());
  o.knobs.rules.rules = &some;
  o.threads = 1;
  planned const mine = plan_training(asked, on, cost::analytical{}, o);
  planned const theirs = plan_training(asked, on, cost::analytical{}, {.effort = effort::thorough, .threads = 3});
  CHECK(mine.plan == theirs.plan);
  CHECK(mine.chosen == theirs.chosen);
}
