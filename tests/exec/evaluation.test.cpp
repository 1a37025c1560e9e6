// tests/exec/evaluation.test.cpp - a plan's forward operators alone: outputs as one device makes them, and training that does not notice
#include <tensorpar/exec/evaluation.hpp>

#include <doctest/doctest.h>
#include <tensorpar/exec/forward_pass.hpp>
#include <tensorpar/exec/nccl/endpoint.hpp>
#include <tensorpar/exec/step/fuse.hpp>
#include <tensorpar/exec/teams/teams.hpp>
#include <tensorpar/program/passes/pipeline_pass.hpp>

#include "support/effort.hpp"
#include "support/fake_nccl.hpp"
#include "support/host_queues.hpp"
#include "support/random_pipeline.hpp"
#include "support/spine.hpp"
#include "support/teams_once.hpp"
#include "support/typed_models.hpp"

using namespace tests;

namespace {

/// Every value that an operator makes of numbers of its own is an output: more than a model has.
computation_graph with_outputs(computation_graph g, std::mt19937& draw, bool all = false) {
  for (int v = 0; v < g.node_count(); ++v)
    for (int x : g.node(v).out)
      if (!is_integer(g.type(x).type) && !g.node(v).name.empty() && (all || draw() % 2))
        g.add_output(g.node(v).name + "!" + std::to_string(x), x);
  return g;
}
std::vector<std::string> names_of(computation_graph const& g) {
  std::vector<std::string> r;
  for (graph_port const& o : g.outputs) r.push_back(o.name);
  return r;
}
/// What one device makes of each micro-batch, one after the other.
template <class S, class E>
std::map<std::string, std::vector<S>> one_by_one(computation_graph const& g, E const& e, host_batch const& all, int n) {
  forward_pass<compute::eigen<S>> f(g);
  f.take_parameters(e);
  std::map<std::string, std::vector<S>> r;
  for (int m = 0; m < n; ++m) {
    host_batch part;
    for (auto const& [name, t] : all) {
      host_tensor u;
      u.shape = t.shape;
      u.shape.d[0].n /= n;
      i64 const k = u.shape.elements();
      if (is_integer(t.shape.type)) u.index.assign(t.index.begin() + m * k, t.index.begin() + (m + 1) * k);
      else u.real.assign(t.real.begin() + m * k, t.real.begin() + (m + 1) * k);
      part[name] = std::move(u);
    }
    f.run(part);
    for (std::string const& name : names_of(g)) {
      std::vector<S> const y = f.output(name);
      r[name].insert(r[name].end(), y.begin(), y.end());
    }
  }
  return r;
}

}  // namespace

TEST_CASE("every output is what one device makes of it, and training goes on as if nothing had been evaluated") {
  std::mt19937 draw(21);
  int trials = 0;
  for (computation_graph const& bare : {residual_mlp(), small_cnn(), small_transformer()})
    for (int trial = 0; trial < test_effort::cases(12); ++trial, ++trials) {
      computation_graph const g = with_outputs(bare, draw, trial % 2);
      training_options o;
      o.optimizer.kind = static_cast<optimizer_kind>(trial % 3);
      o.optimizer.clip_norm = trial % 2 ? 0.5 : 0;
      o.micro_batches = 1 + trial % 3;
      plan p = random_plan(g, 1 + trial % 5, draw);
      p.optimizer = o.optimizer;
      p.micro_batches = o.micro_batches;
      if (trial % 4 == 3)
        for (op_strategy& n : p.nodes) n = {n.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 2 == 0};
      if (trial % 4 == 1) p.node_order = random_order(g, draw);
      CAPTURE(trial);
      executor_of<prime_field> e(differentiate(g, o), p), undisturbed(differentiate(g, o), p);
      e.initialise(7);
      undisturbed.initialise(7);
      for (u64 k = 0; k < 2; ++k) {
        host_batch const batch = random_batch(g, o.micro_batches, 100 + k);
        bool const exact = e.evaluate(batch, names_of(g)) == one_by_one<prime_field>(g, e, batch, o.micro_batches);
        CHECK(exact);
        e.step(random_batch(g, o.micro_batches, k), 0.125);
        undisturbed.step(random_batch(g, o.micro_batches, k), 0.125);
      }
      CHECK(e.steps() == 2);
      bool const same = parameters_of(e) == parameters_of(undisturbed);
      CHECK(same);
    }
  CHECK(trials >= 9);
}

TEST_CASE("pipelines, whose stages cut the batch in ways of their own") {
  std::mt19937 draw(22);
  computation_graph const g = with_outputs(residual_mlp(), draw, true);
  for (int trial = 0; trial < test_effort::cases(16); ++trial) {
    plan p = random_pipeline(g, {.devices = 2 + trial % 4}, 1, i64{1} << (trial % 4), draw);
    if (trial % 2)
      for (op_strategy& n : p.nodes) n = {n.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 2 == 0};
    int const units = static_cast<int>(p.pipeline.mini_batch / p.pipeline.unit);
    CAPTURE(trial);
    executor_of<prime_field> e(tensorpar::passes::pipeline_pass(g, p)), undisturbed(tensorpar::passes::pipeline_pass(g, p));
    e.initialise(7);
    undisturbed.initialise(7);
    host_batch const batch = random_batch(g, units, 100);
    auto found = e.evaluate(batch, names_of(g)), want = one_by_one<prime_field>(g, e, batch, units);
    for (auto const& [name, y] : want)
      if (name.find('!') != name.npos && y.size() > static_cast<std::size_t>(units)) {             // a loss has a number per micro-batch
        bool const exact = found.at(name) == y;
        CHECK_MESSAGE(exact, name);
      }
    e.step(random_batch(g, units, 1), 0.125);
    undisturbed.step(random_batch(g, units, 1), 0.125);
    bool const same = parameters_of(e) == parameters_of(undisturbed);
    CHECK(same);
    executor_of<double> d(tensorpar::passes::pipeline_pass(g, p));
    d.initialise(7);
    double const loss = d.evaluate(batch);
    CHECK(loss == doctest::Approx(d.step(batch, 0.125).loss).epsilon(1e-12));
  }
}

TEST_CASE("the loss is that of the step, and what a step tells is untouched by it") {
  std::mt19937 draw(23);
  for (computation_graph const& g : {residual_mlp(), small_transformer()}) {
    plan p = random_plan(g, 4, draw);
    p.micro_batches = 2;
    training_options o;
    o.micro_batches = 2;
    executor_of<double> e(differentiate(g, o), p);
    train(e, 2);
    host_batch const b = random_batch(g, 2, 9);
    double const loss = e.evaluate(b);
    CHECK(loss == e.evaluate(b));
    CHECK(e.step(b, 0.1).loss == doctest::Approx(loss).epsilon(1e-12));
    CHECK(e.evaluate(b) < loss);
  }
}

namespace {
template <class S> using in_queues = compute::teams<S, queued_teams>;
template <class S> using by_nccl = executor<in_queues<S>, comm::basic_nccl<fake_nccl, queued_host>>;
}  // namespace

TEST_CASE("nothing is dropped out, and the next step draws as if nothing had been evaluated; also where steps are replayed") {
  computation_graph const g = lower(typed<models::two_dropouts>);
  host_batch const batch{{"x", {{64, 32}, std::vector<float>(64 * 32, 1), {}}}};
  auto const check = [&](auto& e, auto& undisturbed) {
    e.initialise(1);
    undisturbed.initialise(1);
    for (int k = 0; k < 4; ++k) {
      double const loss = e.evaluate(batch), told = undisturbed.step(batch, 0).loss;
      CHECK(loss == 0);
      CHECK(told > 0.5);
      CHECK(e.step(batch, 0).loss == told);
    }
  };
  executor_of<double> a(differentiate(g), serial_plan(g)), b(differentiate(g), serial_plan(g));
  check(a, b);
  by_nccl<double> c(differentiate(g), serial_plan(g)), d(differentiate(g), serial_plan(g));
  c.initialise(1);
  c.evaluate(batch);
  int const recordings = queued_host::recordings, before = queued_host::replays;
  c.step(batch, 0);
  CHECK(queued_host::recordings == recordings);            // the first step is still the first: libraries choose algorithms in it
  c.set_steps(0);
  check(c, d);
  CHECK(queued_host::replays > before);
}

TEST_CASE("devices of queues: outputs are read in time, whatever is replayed between") {
  std::mt19937 draw(24);
  for (computation_graph const& bare : {residual_mlp(), small_transformer()})
    for (int trial = 0; trial < test_effort::cases(6); ++trial) {
      computation_graph const g = with_outputs(bare, draw);
      training_options o;
      o.micro_batches = 1 + trial % 2;
      plan p = random_plan(g, 1 + trial % 4, draw);
      p.micro_batches = o.micro_batches;
      by_nccl<prime_field> e(differentiate(g, o), p);
      executor_of<prime_field> other(differentiate(g, o), p);
      e.initialise(7);
      other.initialise(7);
      for (u64 k = 0; k < 4; ++k) {
        host_batch const batch = random_batch(g, o.micro_batches, k);
        bool const exact = e.evaluate(batch, names_of(g)) == other.evaluate(batch, names_of(g));
        CHECK(exact);
        e.step(batch, 0.125);
        other.step(batch, 0.125);
      }
    }
}

TEST_CASE("inputs that no wanted output needs may be missing; what is needed is named") {
  std::mt19937 draw(25);
  computation_graph const g = with_outputs(residual_mlp(), draw, true);
  executor_of<double> e(differentiate(g), random_plan(g, 3, draw));
  host_batch batch = random_batch(g, 1, 1);
  CHECK_THROWS_WITH_AS(e.evaluate(batch), doctest::Contains("has no values yet"), error);
  e.initialise(1);
  std::string first;
  for (std::string const& n : names_of(g)) if (first.empty() && n.find('!') != n.npos) first = n;
  auto const whole = e.evaluate(batch, {first});
  CHECK(whole.size() == 1);
  batch.erase("labels");
  CHECK(e.evaluate(batch, {first, first}) == whole);
  CHECK_THROWS_WITH_AS(e.evaluate(batch), doctest::Contains("lacks input 'labels'"), error);
  CHECK_THROWS_WITH_AS(e.evaluate(batch, {"nothing"}), doctest::Contains("the model has no output 'nothing' (at evaluate); valid: '"),
                       error);
  CHECK(e.evaluate(batch, {}).empty());
  CHECK(e.evaluate(batch, {first}) == whole);              // none of this has harmed it
}

TEST_CASE("an index out of range in an evaluation is named before anything is run, and the run goes on") {
  computation_graph const g = small_transformer();
  std::mt19937 draw(27);
  plan const p = random_plan(g, 3, draw);
  executor_of<double> e(differentiate(g), p), twin(differentiate(g), p);
  e.initialise(1);
  twin.initialise(1);
  host_batch const good = random_batch(g, 1, 1);
  host_batch batch = good;
  for (auto& [name, t] : batch) if (!t.index.empty()) t.index[0] = 1 << 20;
  CHECK_THROWS_WITH_AS(e.evaluate(batch), doctest::Contains("holds 1048576 at [0, 0] (at batch); valid: 0 to 11, for "), error);
  CHECK_FALSE(e.failed());
  CHECK(e.evaluate(good) == twin.evaluate(good));
  CHECK(e.step(good, 0.125).loss == twin.step(good, 0.125).loss);
}

TEST_CASE("outputs of indices, and of what is handed over, are refused by name") {
  computation_graph g = small_transformer();
  int ids = -1;
  for (std::size_t x = 0; x < g.values.size(); ++x)
    if (ids < 0 && g.values[x].role == value_role::input && is_integer(g.values[x].type.type)) ids = static_cast<int>(x);
  g.add_output("ids", ids);
  g.add_output("flat", out(g, g.add(flatten{}, {ids}, "flat")));
  executor_of<double> e(differentiate(g), serial_plan(g));
  e.initialise(1);
  CHECK_THROWS_WITH_AS(e.evaluate(random_batch(g, 1, 1), {"flat"}), doctest::Contains("output 'flat' holds indices"), error);
  CHECK_THROWS_WITH_AS(e.evaluate(random_batch(g, 1, 1), {"ids"}), doctest::Contains("output 'ids' is handed over, not made"), error);
  forward_pass<compute::eigen<double>> f(g);
  f.take_parameters(e);
  f.run(random_batch(g, 1, 1));
  CHECK_THROWS_WITH_AS(f.output("flat"), doctest::Contains("output 'flat' holds indices"), error);
}

TEST_CASE("fused programs have the outputs that they leave in memory, and name those that they do not") {
  std::mt19937 draw(26);
  using exact = compute::teams<prime_field>;
  computation_graph const g = with_outputs(small_transformer(), draw, true);
  training_graph const t = differentiate(g);
  plan p = random_plan(g, 3, draw);
  p.scalar_bytes = sizeof(prime_field);
  executor<exact, comm::threads> plain(t, p), e(tensorpar::exec::fused<exact>(planned_step{t, p, unroll(t, p, {&exact::workspace})}));
  plain.initialise(7);
  e.initialise(7);
  host_batch const batch = random_batch(g, 1, 1);
  int left = 0, gone = 0;
  for (std::string const& name : names_of(g)) {
    try {
      bool const same = e.evaluate(batch, {name}) == plain.evaluate(batch, {name});
      CHECK_MESSAGE(same, name);
      ++left;
    } catch (error const& f) {
      CHECK_MESSAGE(std::string(f.what()).find("no task of the program leaves output '" + name + "' (at evaluate); valid: '") == 0,
                    f.what());
      CHECK(std::string(f.what()).find("or a program without fused tasks") != std::string::npos);
      ++gone;
    }
  }
  CHECK(left > 3);
  CHECK(gone > 0);
}

TEST_CASE("tasks behind a buffer: what makes its operands, where inputs are fed, the other halves of exchanges, and no more") {
  computation_graph g;
  int const x = g.add_input("x", {4, 4});
  program p;
  p.buffers.resize(6);
  p.buffers[0].value = x;                              // fed before task 0
  auto const task_of = [&](std::vector<int> in, std::vector<int> out, task_kind kind = task_kind::compute, int half = -1) {
    task t;
    t.in = std::move(in);
    t.out = std::move(out);
    t.kind = kind;
    t.other_half = half;
    p.tasks.push_back(std::move(t));
  };
  task_of({0}, {1});
  task_of({}, {2});
  task_of({2}, {}, task_kind::send, 4);
  task_of({0}, {3});
  task_of({}, {4}, task_kind::receive, 2);
  task_of({3, 4}, {5});
  task_of({5}, {2});                                   // an update in place
  CHECK(detail::tasks_behind(p, g, {5}) == std::vector<char>{1, 1, 1, 1, 1, 1, 0});
  CHECK(detail::tasks_behind(p, g, {3}) == std::vector<char>{1, 0, 0, 1, 0, 0, 0});
  CHECK(detail::tasks_behind(p, g, {4}) == std::vector<char>{0, 1, 1, 0, 1, 0, 0});
  CHECK(detail::tasks_behind(p, g, {}) == std::vector<char>(7, 0));
}
