// tests/exec/random_networks.test.cpp - networks made by hand, whose gradients are read twice: any plan trains them as one device does
#include <tensorpar/check/check.hpp>
#include <tensorpar/exec/device/scratch_of.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/exec/step/fuse.hpp>
#include <tensorpar/exec/step/step_for.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/training.hpp>

#include <cmath>
#include <doctest/doctest.h>

#include <optional>
#include "support/effort.hpp"
#include "support/random_network.hpp"
#include "support/random_pipeline.hpp"
#include "support/search_once.hpp"
#include "support/spine.hpp"

using namespace tests;
using namespace tensorpar::search;

namespace {

template <class S> using numbers = std::vector<std::vector<S>>;
constexpr double rate = 0.125;

/// Micro-batch j of so many.
host_batch part_of_batch(host_batch const& all, int j, int parts) {
  host_batch r = all;
  for (auto& [name, t] : r) {
    i64 const n = t.shape.elements() / parts;
    t.shape.d[0].n /= parts;
    t.real.assign(all.at(name).real.begin() + j * n, all.at(name).real.begin() + (j + 1) * n);
  }
  return r;
}
/// What parameters_of fetched.
template <class S> void store_all(executor_of<S>& e, numbers<S> const& from) {
  std::size_t i = 0;
  for (std::size_t x = 0; x < e.graph().gradient.size(); ++x) {
    if (e.graph().graph.values[x].role != value_role::parameter) continue;
    if (!from[i].empty()) e.store(static_cast<int>(x), from[i]);
    ++i;
  }
}
/// Training by definition, with no notion of micro-batches: each gives a step of its own from the same parameters, and these are added.
template <class S> numbers<S> by_definition(computation_graph const& g, int micro_batches, int steps) {
  executor_of<S> e(differentiate(g), serial_plan(g));
  e.initialise(7);
  numbers<S> now = parameters_of(e);
  std::vector<int> ids;
  for (std::size_t x = 0; x < g.values.size(); ++x) if (g.values[x].role == value_role::parameter) ids.push_back(static_cast<int>(x));
  for (int k = 0; k < steps; ++k) {
    host_batch const batch = random_batch(g, micro_batches, static_cast<u64>(k));
    numbers<S> next = now;
    for (int j = 0; j < micro_batches; ++j) {
      for (std::size_t i = 0; i < ids.size(); ++i) if (!now[i].empty()) e.store(ids[i], now[i]);
      e.step(part_of_batch(batch, j, micro_batches), rate / micro_batches);
      for (std::size_t i = 0; i < ids.size(); ++i) {
        std::vector<S> const after = e.fetch(ids[i]);
        for (std::size_t n = 0; n < after.size(); ++n) next[i][n] = next[i][n] + after[n] - now[i][n];
      }
    }
    now = std::move(next);
  }
  return now;
}
/// after(executor, k) is called after step k.
template <class S> numbers<S> trained(computation_graph const& g, planned_step const& s, int micro_batches, int steps,
                                      auto const& after) {
  auto const found = check(s.graph, s.plan, s.program);
  for (finding const& f : found) FAIL_CHECK(f.text);
  executor_of<S> e(s);
  e.initialise(7);
  for (int k = 0; k < steps; ++k) {
    e.step(random_batch(g, micro_batches, static_cast<u64>(k)), rate);
    after(e, k);
  }
  CHECK(e.copies_agree());
  CHECK(e.allocated_bytes() == e.program().arena);
  return parameters_of(e);
}
template <class S> numbers<S> trained(computation_graph const& g, planned_step const& s, int micro_batches, int steps) {
  return trained<S>(g, s, micro_batches, steps, [](auto&, int) {});
}
/// Are all numbers zero but for rounding?
bool vanished(numbers<double> const& all) {
  for (auto const& x : all) for (double y : x) if (!(std::abs(y) < 1e-15)) return false;
  return true;
}
/// In double every step begins with the same parameters: relu has a kink, so that its gradient turns a difference in the last bit of
/// what is zero but for rounding into one that can be seen (trial 729 of those under shardings). A step may take all of a parameter away:
/// the sum of (2 w)^2 at this rate does (trials 7399 and 11088), and no distance is relative to nothing.
template <class S> void equal(computation_graph const& g, planned_step const& s, int micro_batches) {
  if constexpr (std::is_same_v<S, double>) {
    trained<S>(g, s, micro_batches, 2, [&](auto& e, int k) {
      numbers<S> const b = by_definition<S>(g, micro_batches, k + 1);
      numbers<S> const a = parameters_of(e);
      CHECK(((vanished(a) && vanished(b)) || distance(a, b) < 1e-11));
      store_all(e, b);
    });
  } else {
    CHECK(trained<S>(g, s, micro_batches, 2) == by_definition<S>(g, micro_batches, 2));
  }
}
int count_for(int trial) {
  auto const all = micro_batch_counts();
  return all[static_cast<std::size_t>(trial) % all.size()];
}

/// x w w or x w, w being base + u v.
computation_graph adapter(i64 samples, bool one_layer) {
  computation_graph g;
  int const x = g.add_input("x", {samples, 4}), y = g.add_input("y", {samples, 4});
  int const u = g.add_parameter("u", {4, 2}, tensorpar::op::init::normal_02),
      v = g.add_parameter("v", {2, 4}, tensorpar::op::init::normal_02),
            base = g.add_parameter("base", {4, 4}, tensorpar::op::init::normal_02);
  auto const made = [&](tensorpar::op::any_op const& o, std::vector<value_id> in) { return out(g, g.add(o, std::move(in))); };
  int const w = made(add{}, {made(contraction("ik,kj->ij"), {u, v}), base}), h = made(contraction("bi,ij->bj"), {x, w});
  g.add_output("loss", made(mean_squared_error{}, {one_layer ? h : made(contraction("bi,ij->bj"), {h, w}), y}));
  return g;
}

/// Shardings, any order of operators, savings.
template <class S> void under_shardings(int trials, unsigned seed) {
  int read_twice = 0;
  for (int trial = 0; trial < test_effort::cases(trials); ++trial) {
    CAPTURE(trial);
    std::mt19937 draw(seed + static_cast<unsigned>(trial));
    computation_graph const g = random_network({.operators = 2 + trial % 6, .fixed_batch = trial % 2 == 0}, draw);
    int const micro = count_for(trial);
    read_twice += micro > 1 && second_readers(g) > 0;
    plan p = random_plan(g, 1 + trial % 4, draw);
    p.micro_batches = micro;
    if (trial % 3 == 0) p.node_order = tests::random_order(g, draw);
    if (trial % 3 == 1)
      for (op_strategy& n : p.nodes) n = {n.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 2 == 0};
    planned_step const s = tensorpar::exec::step_for<compute::eigen<S>>(g, p);
    equal<S>(g, s, micro);
  }
  CHECK(read_twice > test_effort::cases(trials) / 8);
}
/// Stages in any order, of sizes that differ or not, some of which part their backward pass or compute again. A sum of losses that stages
/// of other sizes make has no samples to cut or join: that is refused.
template <class S> void in_stages(int trials, unsigned seed) {
  int read_twice = 0, other_sizes = 0;
  for (int trial = 0; trial < test_effort::cases(trials); ++trial) {
    CAPTURE(trial);
    std::mt19937 draw(seed + static_cast<unsigned>(trial));
    bool const sizes = trial % 3 == 1;
    computation_graph const g = random_network({.samples = 1, .operators = 2 + trial % 6, .fixed_batch = trial % 3 == 0}, draw);
    int const micro = count_for(trial / 3) * (sizes ? 2 : 1);
    pipeline_kind const kind{.devices = 1 + trial % 4, .sizes = sizes, .shared_groups = trial % 2 == 1};
    plan p = random_pipeline(g, kind, 1, micro, draw);
    if (trial % 4 == 0)
      for (op_strategy& n : p.nodes) n = {n.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 2 == 0};
    std::optional<planned_step> s;
    try {
      s = tensorpar::exec::step_for<compute::eigen<S>>(g, p);
    } catch (error const& e) {
      std::string const why = e.what();
      CAPTURE(why);
      CHECK((sizes && why.find("of shape [] goes from micro-batches of") != why.npos));
      continue;
    }
    read_twice += micro > 1 && second_readers(g) > 0;
    for (pipeline_stage const& x : p.pipeline.stages) if (x.micro_batch != p.pipeline.stages[0].micro_batch) { ++other_sizes; break; }
    equal<S>(g, *s, micro);
  }
  CHECK(read_twice > test_effort::cases(trials) / 8);
  CHECK(other_sizes > test_effort::cases(trials) / 40);
}

}  // namespace

TEST_CASE("an adapter beside its base trains as one step on the whole batch, by any number of micro-batches") {
  host_batch const data = random_batch(adapter(12, true), 1, 3);
  numbers<double> whole;
  for (int const micro : {1, 2, 3, 4, 6, 12}) {
    CAPTURE(micro);
    computation_graph const g = adapter(12 / micro, true);
    planned_step const s = tensorpar::exec::step_for<compute::eigen<double>>(g, one_device_plan(g, training_options{"loss", {}, micro}));
    CHECK(check(s.graph, s.plan, s.program).empty());
    executor_of<double> run(s);
    run.initialise(1);
    run.step(data, 0.5);
    if (micro == 1) whole = parameters_of(run);
    CHECK(distance(parameters_of(run), whole) < 1e-14);
  }
}

TEST_CASE("a weight made in one stage, read in two or added to in the next, trains as one step on the whole batch") {
  computation_graph const g = adapter(1, false), whole = adapter(2, false);
  for (bool const both : {true, false}) {
    CAPTURE(both);
    plan p = serial_plan(g);
    pipeline& q = p.pipeline;
    q.mini_batch = 2;
    q.groups = {{0, 1}};
    q.stages.resize(2);
    q.stages[0].nodes = both ? std::vector<int>{0, 1, 2} : std::vector<int>{0};
    q.stages[1].nodes = both ? std::vector<int>{3, 4} : std::vector<int>{1, 2, 3, 4};
    q.schedule = {{}};
    for (int const s : {0, 1}) for (int const j : {0, 1}) q.schedule[0].push_back({s, pass::forward, j});
    for (int const s : {1, 0}) for (int const j : {0, 1}) q.schedule[0].push_back({s, pass::backward, j});
    planned_step const s = tensorpar::exec::step_for<compute::eigen<prime_field>>(g, p);
    CHECK(check(s.graph, s.plan, s.program).empty());
    executor_of<prime_field> run(s), serial(whole, serial_plan(whole));
    for (auto* e : {&run, &serial}) { e->initialise(1); e->step(random_batch(whole, 1, 5), 0.5); }
    CHECK(parameters_of(run) == parameters_of(serial));
  }
}

TEST_CASE("networks made by hand under random shardings train as defined, exactly in the prime field") {
  under_shardings<prime_field>(60, 1000);
}
TEST_CASE("networks made by hand under random shardings train as defined by odd numbers of micro-batches") {
  under_shardings<double>(30, 50000);
}
TEST_CASE("networks made by hand in random pipelines train as defined, exactly in the prime field") { in_stages<prime_field>(60, 100000); }
TEST_CASE("networks made by hand in random pipelines train as defined by odd numbers of micro-batches") { in_stages<double>(30, 150000); }
TEST_CASE("what the search answers for networks made by hand trains as defined, pipelines and micro-batches") {
  int staged = 0, cut = 0, refused = 0;
  for (int trial = 0; trial < test_effort::cases(24); ++trial) {
    CAPTURE(trial);
    std::mt19937 draw(200000 + static_cast<unsigned>(trial));
    computation_graph const g = random_network({.samples = 1, .operators = 3 + trial % 6}, draw);
    int const parts = 8;
    double const bandwidth = trial % 2 ? 1e12 : 1e8;
    machine const on = make_cluster("three", {"device", 1e6, 1e9, i64{1} << 30, 0}, 3, 3, {"link", 3, 1e-9, bandwidth}, {});
    planning_options o;
    o.threads = 1;
    o.micro_batches = {trial % 2 ? parts : 2};
    o.schedules = std::vector{trial % 3 ? schedule_kind::zb_h1 : schedule_kind::one_f_one_b};
    planned const r = plan_training({.graph = g, .samples = parts, .scratch = tensorpar::exec::scratch_of<compute::eigen<prime_field>>()},
                                    on, tensorpar::cost::analytical{}, o);
    REQUIRE(r.feasible());
    staged += r.plan.pipeline.stages.size() > 1;
    cut += r.plan.micro_batches > 1;
    for (tried_plan const& c : r.tried) refused += !c.refused.empty();
    planned_step const s = tensorpar::exec::step_for<compute::eigen<prime_field>>(r.graph, r.plan);
    CHECK(trained<prime_field>(g, s, parts, 2) == by_definition<prime_field>(g, parts, 2));
  }
  MESSAGE(staged << " pipelines, " << cut << " with micro-batches, " << refused << " refused");
  CHECK(staged > test_effort::cases(24) / 6);
  CHECK(cut > test_effort::cases(24) / 12);
}
