// tests/search/plan_training.test.cpp - of shardings with any number of micro-batches and of pipelines the fastest program that fits is
// taken
#include <tensorpar/search/plan_training.hpp>
#include <doctest/doctest.h>

#include <support/effort.hpp>
#include <support/search_once.hpp>
#include <tensorpar/check/check.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/ir/mixed_precision.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/plan/codec.hpp>
#include <tensorpar/program/evidence/certificate.hpp>
#include <tensorpar/search/candidates.hpp>
#include <tensorpar/search/effort.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

machine nodes(int count, int each, double bandwidth, double megabytes = 1 << 14) {
  return make_cluster("nodes", {"device", 1e11, 1e10, static_cast<i64>(megabytes * 1048576), 1e-6}, count * each, each,
                      {"inside", each, 1e-6, 1e10}, {"between", count * each, 5e-6, bandwidth});
}
std::string const gpt = "gpt3_1b3:layers=3,hidden=64,heads=4,wide=256,seq=32,vocab=512";

double simulated(computation_graph const& g, plan const& p) {
  return simulate(step_of(g, p).program, p.cluster, cost::analytical{}).seconds;
}
/// What holds of every answer, whatever was asked.
void check_result(computation_graph const& given, i64 batch, machine const& on, planned const& r) {
  REQUIRE(r.feasible());
  REQUIRE(r.chosen >= 0);
  tried_plan const& best = r.tried[static_cast<std::size_t>(r.chosen)];
  CHECK(best.feasible());
  for (tried_plan const& c : r.tried) if (c.feasible()) CHECK(best.seconds <= c.seconds * (1 + 1e-9));
  planned_step const s = step_of(r.graph, r.plan);
  require_accepted(check(s.graph, s.plan, s.program), "plan");
  CHECK(s.program.arena == r.arena());
  for (int d = 0; d < on.size(); ++d) CHECK(r.arena()[static_cast<std::size_t>(d)] <= on.kind_of(d).memory);
  CHECK(*std::max_element(r.arena().begin(), r.arena().end()) == best.peak);
  CHECK(best.seconds == doctest::Approx(simulated(r.graph, r.plan)));
  CHECK(r.seconds() == best.seconds);
  CHECK(passes::task_hash(r.step.program) == r.plan.tasks);
  CHECK(r.plan.peak_bytes == r.arena());
  CHECK(check(r.step.graph, r.step.plan, r.step.program).empty());
  plan again = r.plan;                                           // sealed as a plan without its program is
  again.tasks = again.offsets = 0;
  again.peak_bytes.clear();
  seal(r.graph, again);
  CHECK(again == r.plan);
  CHECK(r.step.plan.offsets == r.plan.offsets);
  CHECK(r.step.plan.tasks == r.plan.tasks);
  CHECK(best.stages == static_cast<int>(r.plan.pipeline.stages.size()));
  if (r.plan.pipeline.empty()) {
    CHECK(r.plan.micro_batches == best.micro_batches);
    CHECK(r.graph.hash() == ir::rebatch(given, batch / best.micro_batches).hash());
  } else {
    CHECK(r.plan.pipeline.mini_batch == batch);
    CHECK(r.graph.hash() == given.hash());
  }
}

}  // namespace

TEST_CASE("never slower than shardings on all micro-batches at once, nor than the pipelines of either schedule; both kinds are chosen") {
  int shardings = 0, pipelines = 0;
  for (std::string const& name : {gpt, std::string("candle_uno"), std::string("mlp_unify")})
    for (double bandwidth : {1e10, 1e8}) {
      CAPTURE(name);
      CAPTURE(bandwidth);
      if (test_effort::slow && (name == gpt) == (bandwidth == 1e10)) continue;
      computation_graph const g = name == gpt ? zoo::make(name, 1) : zoo::make_reduced(name, 1);
      machine on = nodes(2, 2, bandwidth);
      if (bandwidth == 1e8) on.kinds[0].flops = 5e9;                         // where computing counts, stages pay
      planned const r = plan_training({.graph = g, .samples = 16}, on, cost::analytical{});
      check_result(g, 16, on, r);
      double const seconds = r.plan.step_seconds * (1 - 1e-9);
      search_result const flat = optimize(ir::rebatch(g, 16), on, cost::analytical{});
      CHECK(seconds <= simulated(ir::rebatch(g, 16), flat.plan));
      graph_stage_options o;
      o.mini_batch = 16;
      o.max_tensor = 2;
      graph_stages<cost::analytical> const m(g, on, cost::analytical{}, o);
      for (schedule_kind k : {schedule_kind::one_f_one_b, schedule_kind::zb_h1}) CHECK(seconds <= fit_stages(g, g, on, m, {}, k).seconds);
      (r.plan.pipeline.empty() ? shardings : pipelines) += 1;
      CHECK(r.plan.bound > 0);
      CHECK(r.plan.bound <= r.plan.step_seconds);
      for (tried_plan const& c : r.tried)                                    // a pipeline's is about all plans
        if (!r.plan.pipeline.empty() && c.feasible()) CHECK(r.plan.bound <= c.seconds);
    }
  CHECK(shardings > 0);
  CHECK(pipelines > 0);
}

TEST_CASE("where memory is short there are more micro-batches, stages, or what is missing; what is found fits") {
  computation_graph const g = zoo::make(gpt, 1);
  int more = 0, lacks = 0;
  training_problem asked{.graph = g, .samples = 16, .optimizer = {optimizer_kind::adamw}};
  for (double megabytes = 24; megabytes > 0.5; megabytes /= test_effort::slow ? 3 : 2) {
    CAPTURE(megabytes);
    machine const on = nodes(1, 2, 1e9, megabytes);
    planned const r = plan_training(asked, on, cost::analytical{});
    if (r.feasible()) {
      check_result(g, 16, on, r);
      CHECK(r.plan.optimizer == asked.optimizer);
      for (tried_plan const& c : r.tried) more += c.what == "shardings" && c.micro_batches > 1;
      continue;
    }
    ++lacks;
    CHECK(r.chosen == -1);
    CHECK(r.plan.nodes.empty());
    CHECK(r.infeasible->needed - r.infeasible->capacity == r.infeasible->missing);
    for (tried_plan const& c : r.tried) {
      REQUIRE(c.infeasible);
      CHECK(c.infeasible->missing >= r.infeasible->missing);
    }
  }
  CHECK(more > (test_effort::slow ? 1 : 2));
  CHECK(lacks > 0);
}

TEST_CASE("only what is asked for is looked at, and equal questions have equal answers for any number of threads") {
  computation_graph const g = zoo::make(gpt, 2);
  machine const on = nodes(2, 2, 1e8);
  training_problem const asked{.graph = g, .samples = 16, .name = "gpt"};
  planning_options o{.micro_batches = {4, 2}, .schedules = std::vector<schedule_kind>{}};
  planned const flat = plan_training(asked, on, cost::analytical{}, o);
  std::vector<int> looked_at;
  for (tried_plan const& c : flat.tried) {
    CHECK((c.what == "shardings" || c.what == "shardings, overlapped" || c.what.find("degrees: ") == 0));
    CHECK((c.micro_batches == 4 || c.micro_batches == 2));
    CHECK(c.stages == 0);
    if (c.what == "shardings") looked_at.push_back(c.micro_batches);
  }
  CHECK(looked_at == std::vector{4, 2});
  CHECK(flat.plan.pipeline.empty());
  CHECK(flat.plan.model == "gpt");
  o.schedules = {schedule_kind::gpipe};
  o.threads = 1;
  planned const one = plan_training(asked, on, cost::analytical{}, o);
  CHECK(one.tried.back().what.find("gpipe") == 0);
  o.threads = 3;
  planned const three = plan_training(asked, on, cost::analytical{}, o);
  CHECK(one.plan == three.plan);
  CHECK(one.chosen == three.chosen);
  REQUIRE(one.tried.size() == three.tried.size());
  for (std::size_t i = 0; i < one.tried.size(); ++i) CHECK(one.tried[i].seconds == three.tried[i].seconds);
  planned const alone = plan_training(asked, nodes(1, 1, 1e8), cost::analytical{});       // one device: no stages
  CHECK(alone.tried.size() == 1);
}

TEST_CASE("loss, optimizer and size of numbers are those of the options, for every kind of plan") {
  model_builder b;
  ref x = b.input("x", {zoo::batch, 256});
  for (int i = 0; i < 6; ++i) x = x | linear{256} | relu{};
  b.output("distance", all(x, b.input("y", {zoo::batch, 256})) | mean_squared_error{});
  computation_graph const g = lower(b, {zoo::batch = 1});
  for (bool const staged : {false, true}) {
    training_problem asked{.graph = g, .samples = 64, .loss = "distance", .optimizer = {optimizer_kind::adamw}};
    asked.scratch.scalar_bytes = 8;
    asked.optimizer.clip_norm = 1;
    planning_options o;
    if (!staged) o.schedules = std::vector<schedule_kind>{};
    double const bandwidth = staged ? 1e7 : 1e12;               // slow: activations are smaller than weights
    machine const on = make_cluster("two", {"core", 2e9, 1e10, i64{1} << 30, 2e-6}, 2, 2, {"network", 2, 2e-5, bandwidth}, {});
    planned const r = plan_training(asked, on, cost::analytical{}, o);
    REQUIRE(r.feasible());
    CHECK(r.plan.pipeline.empty() != staged);
    CHECK(r.plan.optimizer == asked.optimizer);
    CHECK(r.plan.scalar_bytes == 8);
    CHECK(step_of(r.graph, r.plan, "distance").program.arena == r.arena());
  }
}

TEST_CASE("a quick search is the best assignment of all devices, and no pipeline; more effort is never slower") {
  for (std::string const name : {"candle_uno", "mlp_unify", "dlrm"})
    for (double bandwidth : {1e10, 1e8}) {
      CAPTURE(name);
      if (test_effort::slow && (name == "dlrm") == (bandwidth == 1e10)) continue;
      training_problem const asked{.graph = zoo::make_reduced(name, 1), .samples = 16};
      machine const on = nodes(2, 2, bandwidth);
      planned const quick = plan_training(asked, on, cost::analytical{}, {.effort = effort::quick});
      check_result(asked.graph, 16, on, quick);
      search_options o;
      o.fewer_devices = false;
      o.micro_batches = quick.plan.micro_batches;
      o.reduction = quick.plan.reduction;
      search_result const whole = optimize(quick.graph, on, cost::analytical{}, o);
      CHECK(quick.plan.nodes == whole.plan.nodes);
      CHECK(quick.plan.node_order == whole.plan.node_order);
      CHECK(quick.plan.cost == quick.plan.step_seconds);
      CHECK(quick.plan.step_seconds <= whole.plan.cost * (1 + 1e-9));              // in which nothing overlaps
      CHECK(quick.plan.bound > 0);
      CHECK(quick.plan.bound <= quick.plan.step_seconds);
      for (tried_plan const& c : quick.tried) CHECK((c.what == "shardings" || c.what.find("degrees: ") == 0));
      CHECK(plan_training(asked, on, cost::analytical{}).seconds() <= quick.seconds() * (1 + 1e-9));
      planned const staged = plan_training(asked, on, cost::analytical{},
                                           {.effort = effort::quick, .schedules = std::vector{schedule_kind::gpipe}});
      CHECK(staged.tried.back().what.find("gpipe") == 0);
    }
}

TEST_CASE("a quick search has pipelines of equal stages where memory is short and links are slow, and none where no schedule is allowed") {
  training_problem const asked{.graph = zoo::make("gpt3_1b3:layers=4,hidden=256,heads=4,wide=1024,seq=32,vocab=64", 1), .samples = 256,
                               .optimizer = {optimizer_kind::adamw}};
  machine const on = nodes(4, 2, 3e7, 16);
  cost::analytical const model;
  planned const quick = plan_training(asked, on, model, {.effort = effort::quick});
  check_result(asked.graph, 256, on, quick);
  CHECK(quick.plan.pipeline.stages.size() >= 2);
  CHECK(quick.plan.bound > 0.05 * quick.seconds());
  planned const flat = plan_training(asked, on, model, {.effort = effort::quick, .schedules = std::vector<schedule_kind>{}});
  CHECK(flat.plan.pipeline.empty());
  CHECK(quick.seconds() < 0.4 * flat.seconds());
  if (test_effort::slow) return;
  configurations<cost::analytical> all(asked, on, model);
  int fit = 0;
  for (int const tensor : {1, 2})                                          // as a user would configure them
    for (int const stages : {2, 4})
      for (i64 const samples : {2, 4, 8})
        for (recomputation const again : {recomputation::none, recomputation::selective, recomputation::full}) {
          configured_plan const x = all.plan_of({.data = 8 / stages / tensor, .tensor = tensor, .pipeline = stages,
                                                 .micro_batch = samples, .recompute = again});
          simulated_plan const s = search::simulated(x.graph, x.plan, asked, model);
          if (s.infeasible) continue;
          ++fit;
          CHECK(quick.seconds() <= s.seconds * 1.01);                      // eight are simulated, those of least estimates
        }
  CHECK(fit > 0);
}

TEST_CASE("schedules: those that are asked for; else two, and none where the search is to be quick") {
  std::vector const two{schedule_kind::one_f_one_b, schedule_kind::zb_h1};
  CHECK(tensorpar::detail::schedules_of({}) == two);
  CHECK(tensorpar::detail::schedules_of({.effort = effort::thorough}) == two);
  CHECK(tensorpar::detail::schedules_of({.effort = effort::quick}).empty());
  for (effort e : {effort::quick, effort::normal, effort::thorough}) {
    CHECK(tensorpar::detail::schedules_of({.effort = e, .schedules = std::vector<schedule_kind>{}}).empty());
    CHECK(tensorpar::detail::schedules_of({.effort = e, .schedules = std::vector{schedule_kind::gpipe}})
          == std::vector{schedule_kind::gpipe});
  }
}

TEST_CASE("divisors in a row: from 1 to the number, each by the next prime factor larger") {
  auto const row = [](i64 n) { return tensorpar::detail::divisors_in_a_row(n); };
  CHECK(row(1) == std::vector<i64>{1});
  CHECK(row(48) == std::vector<i64>{1, 2, 4, 8, 16, 48});
  CHECK(row(45) == std::vector<i64>{1, 3, 9, 45});
  CHECK(row(7) == std::vector<i64>{1, 7});
  i64 const large = 2147483647;                                  // a prime
  CHECK(row(2 * large) == std::vector<i64>{1, 2, 2 * large});
  CHECK(row(large * large) == std::vector<i64>{1, large * large});
  for (i64 n = 1; n < 500; ++n) {
    std::vector<i64> const r = row(n);
    CHECK(r.back() == n);
    for (std::size_t i = 1; i < r.size(); ++i) CHECK((r[i] > r[i - 1] && r[i] % r[i - 1] == 0));
  }
}

TEST_CASE("the problem's precision decides bytes and rates, is written down, and is what the plan runs") {
  computation_graph const g = zoo::make(gpt, 1);
  machine const on = preset("dgx-h100");
  planning_options const quick{.effort = effort::quick};
  auto const planned_in = [&](computation_graph const& given, precision p) {
    return plan_training({.graph = given, .samples = 16, .precision = p}, on, cost::analytical{}, quick);
  };
  planned const f32 = planned_in(g, precision::f32), tf32 = planned_in(g, precision::tf32), bf16 = planned_in(g, precision::bf16),
                fp8 = planned_in(g, precision::fp8);
  check_result(g, 16, on, f32);
  check_result(g, 16, on, tf32);
  check_result(mixed_precision(g), 16, on, bf16);
  check_result(mixed_precision(g), 16, on, fp8);
  CHECK(tf32.seconds() <= f32.seconds());                // other plans may be found, none that is slower under faster products
  CHECK(bf16.seconds() < tf32.seconds());
  CHECK(fp8.seconds() <= bf16.seconds());
  for (auto const& [r, p] : {std::pair{&f32, precision::f32}, {&tf32, precision::tf32}, {&bf16, precision::bf16}, {&fp8, precision::fp8}}) {
    CHECK(r->plan.precision == p);
    CHECK(r->step.plan.precision == p);
    CHECK(r->plan.cluster == at_precision(on, p));
    plan const read = decode(encode(r->plan), "plan");
    CHECK(read == r->plan);
    CHECK(graph_of(g, read, 16).hash() == r->graph.hash());
  }
  // a graph in bf16 says it itself
  planned const said = planned_in(mixed_precision(g), precision::f32);
  CHECK(said.plan == bf16.plan);
  CHECK_THROWS_WITH_AS(planned_in(mixed_precision(g), precision::tf32), doctest::Contains("a graph in bf16 for training in tf32"), error);
  CHECK_THROWS_WITH_AS(plan_training({.graph = g, .precision = precision::bf16}, preset("summit:1"), cost::analytical{}, quick),
                       doctest::Contains("\"V100-SXM2-16GB\" has no known FLOP/s in bf16"), error);
}

TEST_CASE("a batch with an odd factor, bf16, and devices of two kinds; plans that were written and read find their graph") {
  computation_graph const one = zoo::make(gpt, 1);
  machine mixed = nodes(2, 2, 1e8);
  mixed.kinds.push_back({"slow", 5e10, 1e10, i64{1} << 34, 1e-6});
  mixed.device = {0, 0, 1, 1};
  int staged = 0;
  for (machine const& on : {nodes(2, 2, 1e10), mixed})
    for (bool const bf16 : {false, true}) {
      if (test_effort::slow && bf16 == (on.kinds.size() == 1)) continue;
      computation_graph const g = bf16 ? mixed_precision(one) : one;
      planned const r = plan_training({.graph = g, .samples = 15, .optimizer = {optimizer_kind::adamw}}, on, cost::analytical{});
      check_result(g, 15, on, r);
      for (tried_plan const& c : r.tried) staged += c.feasible() && c.stages > 1 && c.micro_batches % 5 == 0;
      plan const read = decode(encode(r.plan), "plan");
      CHECK(graph_of(g, read, 15).hash() == r.graph.hash());
      CHECK(check_certificate(r.graph, read).empty());
    }
  CHECK(staged > 0);
}

TEST_CASE("what cannot be is refused by name, and what is too large is said to be") {
  computation_graph const g = zoo::make(gpt, 2);
  machine const on = nodes(1, 2, 1e9);
  auto const of = [&](i64 batch, planning_options const& o = {}) { return plan_training({.graph = g, .samples = batch}, on,
                                                                                        cost::analytical{}, o); };
  CHECK_THROWS_WITH_AS(of(15), doctest::Contains("a batch of 15 samples for a graph of 2"), error);
  CHECK_THROWS_WITH_AS(of(-2), doctest::Contains("a multiple of the graph's batch"), error);
  planning_options o;
  o.micro_batches = {3};
  CHECK_THROWS_WITH_AS(of(16, o), doctest::Contains("numbers that divide 8"), error);
  o.micro_batches = {};
  for (i64 size : {i64{0}, i64{3}, i64{6}, i64{32}}) {
    o.knobs.stages.micro_batches = {size};
    CHECK_THROWS_WITH_AS(of(16, o), doctest::Contains("2 times numbers that divide 8"), error);
  }
  o.knobs.stages.micro_batches = {};
  computation_graph empty;
  int const none = empty.add_input("x", {1, 6});
  empty.add_output("loss", empty.node(empty.add(mean_squared_error{}, {none, none})).out[0]);
  empty.value(none).type.d[0] = 0;                               // as no graph is made, by a pass of one's own
  CHECK_THROWS_WITH_AS(plan_training({.graph = empty, .samples = 8}, on, cost::analytical{}),
                       doctest::Contains("'x' of shape [0,6] has no samples"), error);
  o.knobs.max_placed = 1;
  CHECK_THROWS_WITH_AS(of(16, o), doctest::Contains("more operators times micro-batches than 1 "), error);
  o.knobs.max_placed = i64{g.node_count()};                           // one micro-batch, no more
  planned const r = of(16, o);
  REQUIRE(r.feasible());
  for (tried_plan const& c : r.tried) {
    if (c.feasible()) CHECK(c.micro_batches == 1);
    else CHECK(c.seconds == infinity);
  }
  o = {};
  std::vector<rewrite::rule> const no_rules;
  o.knobs.rules.rules = &no_rules;
  CHECK_THROWS_WITH_AS(of(16, o), doctest::Contains("valid: effort::thorough"), error);
  o = {};
  o.schedules = {schedule_kind::zb_v};                           // for stages that take turns on a device
  planned const flat = of(16, o);
  REQUIRE(flat.feasible());
  CHECK(flat.plan.pipeline.empty());
  CHECK(flat.tried.back().refused.find("twice as many stages as groups") != std::string::npos);
  computation_graph fixed;                                       // its first operator holds for four samples only
  int const x = fixed.add_input("x", {4, 6}), y = fixed.add_input("y", {4, 6});
  int const cut = fixed.node(fixed.add(slice_axis{0, 0, 4}, {x}, "cut")).out[0];
  fixed.add_output("loss", fixed.node(fixed.add(mean_squared_error{}, {cut, y})).out[0]);
  CHECK_THROWS_WITH_AS(plan_training({.graph = fixed, .samples = 8}, on, cost::analytical{}), doctest::Contains("times its batch"), error);
}

TEST_CASE("a summed loss is one in every plan that is compared; a sum plus a mean is refused where micro-batches may differ") {
  auto const net = [](bool mean_as_well) {
    computation_graph g;
    int const x = g.add_input("x", {1, 64}), y = g.add_input("y", {1, 64});
    int const h = g.node(g.add_with_weights(linear{64}, {x}, "l")).out[0];
    int loss = g.node(g.add(contraction("be,be->"), {h, y})).out[0];
    if (mean_as_well) loss = g.node(g.add(add{}, {loss, g.node(g.add(mean_squared_error{}, {h, y})).out[0]})).out[0];
    g.add_output("loss", loss);
    return g;
  };
  machine const on = nodes(1, 2, 1e9);
  planning_options o;
  training_problem summed{.graph = net(false), .samples = 8};
  for (int micro : {1, 4, 8}) {
    o.micro_batches = {micro};
    o.schedules = std::vector<schedule_kind>{};
    planned const r = plan_training(summed, on, cost::analytical{}, o);
    check_result(net(false), 8, on, r);
    CHECK(r.plan.reduction == loss_reduction::sum);
  }
  o.schedules = {schedule_kind::one_f_one_b};
  CHECK_THROWS_WITH_AS(plan_training({.graph = net(true), .samples = 8}, on, cost::analytical{}, o),
                       doctest::Contains("adds a sum over samples to what"), error);
  summed.reduction = loss_reduction::mean;
  CHECK_THROWS_WITH_AS(plan_training(summed, on, cost::analytical{}, o), doctest::Contains("is a sum over samples, not a mean"), error);
}
