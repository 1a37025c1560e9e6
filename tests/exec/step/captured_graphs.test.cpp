// tests/exec/step/captured_graphs.test.cpp - steps that replay what was written down compute what steps that are asked for task by task do
#include <tensorpar/exec/step/captured_graphs.hpp>
#include <tensorpar/exec/step/step_result.hpp>

#include <doctest/doctest.h>

#include <tensorpar/exec/comm/virtual_ranks.hpp>
#include <tensorpar/exec/nccl/endpoint.hpp>
#include <tensorpar/exec/teams/teams.hpp>
#include <tensorpar/ir/mixed_precision.hpp>

#include "support/effort.hpp"
#include "support/fake_nccl.hpp"
#include "support/laws/queues.hpp"
#include "support/spine.hpp"
#include "support/teams_once.hpp"

using namespace tests;

static_assert(tensorpar::exec::recording_memory<queued_host> && !tensorpar::exec::recording_memory<tensorpar::exec::host_memory>);

namespace {

template <class S, class Narrow = S> using in_queues = compute::teams<S, queued_teams, tensorpar::op::op_set<>, Narrow>;
static_assert(tensorpar::exec::replayable_policy<in_queues<float>> && !tensorpar::exec::replayable_policy<compute::eigen<float>>);
template <class S, class Narrow = S> using by_nccl = executor<in_queues<S, Narrow>, comm::basic_nccl<fake_nccl, queued_host>>;
template <class S, class Narrow = S>
using by_threads = executor<compute::teams<S, tensorpar::exec::host_teams<>, tensorpar::op::op_set<>, Narrow>, comm::threads>;

/// Five steps, each with a rate of its own; what they told, and the parameters.
template <class E> auto five_steps(E& e) {
  std::vector<double> told;
  e.initialise(7);
  for (u64 k = 0; k < 5; ++k) {
    step_result const r = e.step(random_batch(e.graph().graph, e.plan_value().micro_batches, k), 0.125 / static_cast<double>(k + 1));
    told.push_back(r.loss);
    told.push_back(r.gradient_norm.value_or(-1));
  }
  return std::pair(told, parameters_of(e));
}

struct counts {
  int recordings = queued_host::recordings, replays = queued_host::replays;
};

}  // namespace

TEST_CASE("runs are maximal, and nothing in them waits, is awaited before its end, or is written by the host") {
  using tensorpar::exec::detail::run_task;
  tensorpar::exec::detail::run_task const computes{true, false, false, false}, talks{false, false, false, false},
      fed{true, true, false, false}, waits{true, false, true, false}, awaited{true, false, false, true};
  using runs = std::vector<std::pair<std::size_t, std::size_t>>;
  CHECK(tensorpar::exec::detail::runs_among({}).empty());
  CHECK(tensorpar::exec::detail::runs_among({computes}).empty());
  CHECK(tensorpar::exec::detail::runs_among({computes, computes, computes}) == runs{{0, 3}});
  CHECK(tensorpar::exec::detail::runs_among({computes, talks, computes, computes, talks}) == runs{{2, 2}});
  CHECK(tensorpar::exec::detail::runs_among({fed, computes, computes, fed, fed, computes, computes}) == runs{{1, 2}, {5, 2}});
  CHECK(tensorpar::exec::detail::runs_among({computes, computes, waits, computes}) == runs{{0, 2}, {2, 2}});
  CHECK(tensorpar::exec::detail::runs_among({waits, awaited, computes, computes}) == runs{{0, 2}, {2, 2}});
  CHECK(tensorpar::exec::detail::runs_among({awaited, awaited, awaited}).empty());
  std::mt19937 draw(3);
  for (int trial = 0; trial < 500; ++trial) {
    std::vector<tensorpar::exec::detail::run_task> all(draw() % 12);
    for (tensorpar::exec::detail::run_task& t : all) t = {draw() % 5 > 0, draw() % 6 == 0, draw() % 5 == 0, draw() % 5 == 0};
    auto const apart = [&](std::size_t k) {                  // may k and k + 1 not be in one run?
      return !all[k].computes || all[k].feeds || !all[k + 1].computes || all[k + 1].feeds || all[k + 1].waits || all[k].awaited;
    };
    std::vector<char> together(all.size(), 0);
    for (auto const& [first, n] : tensorpar::exec::detail::runs_among(all)) {
      CHECK(n > 1);
      for (std::size_t k = first; k + 1 < first + n; ++k) together[k] = 1;
    }
    for (std::size_t k = 0; k + 1 < all.size(); ++k) CHECK(apart(k) == !together[k]);
  }
}

TEST_CASE("a queue that is recorded keeps the law") { check_recordings(queued_host{}); }

TEST_CASE("steps by replays are the steps, whatever changes between them: rates, moments, draws of dropout") {
  std::mt19937 draw(11);
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (int devices : {1, 3}) {
      training_options o;
      o.optimizer.kind = static_cast<optimizer_kind>(draw() % 3);
      o.optimizer.clip_norm = draw() % 2 ? 0.5 : 0;
      o.optimizer.on_non_finite = devices == 3 ? non_finite::skip : non_finite::error;
      o.micro_batches = 1 + static_cast<int>(draw() % 2);
      plan p = random_plan(g, devices, draw);
      p.optimizer = o.optimizer;
      p.micro_batches = o.micro_batches;
      counts const before;
      by_nccl<prime_field> a(differentiate(g, o), p);
      by_threads<prime_field> b(differentiate(g, o), p);
      CHECK(five_steps(a) == five_steps(b));
      counts const now;
      CHECK(now.recordings > before.recordings);
      CHECK(now.replays - before.replays == 4 * (now.recordings - before.recordings));   // the second step's, and three more
      CHECK(five_steps(a) == five_steps(b));                                             // from the beginning, by replays alone
      CHECK(counts().recordings == now.recordings);
      by_nccl<double> x(differentiate(g, o), p);
      by_threads<double> y(differentiate(g, o), p);
      CHECK(five_steps(x) == five_steps(y));
    }
}

TEST_CASE("a replayed step that is not finite changes nothing where updates are skipped") {
  computation_graph const g = residual_mlp();
  for (optimizer_kind kind : {optimizer_kind::momentum, optimizer_kind::adamw}) {
    plan p = serial_plan(g);
    p.optimizer.kind = kind;
    p.optimizer.on_non_finite = non_finite::skip;
    by_nccl<float> e(g, p), undisturbed(g, p);
    e.initialise(7);
    undisturbed.initialise(7);
    for (u64 k = 0; k < 5; ++k) {
      host_batch bad = random_batch(g, 1, k);
      bad.at("x").real[k] = std::numeric_limits<float>::quiet_NaN();
      CHECK(e.step(bad, 0.125).skipped);
      CHECK(e.step(random_batch(g, 1, k), 0.125).loss == undisturbed.step(random_batch(g, 1, k), 0.125).loss);
    }
    CHECK(parameters_of(e) == parameters_of(undisturbed));
  }
}

TEST_CASE("on one device nothing but the batch is handed over: a run from input to input") {
  computation_graph const g = small_transformer();
  plan const p = serial_plan(g);
  counts const before;
  by_nccl<float> a(differentiate(g), p);
  by_threads<float> b(differentiate(g), p);
  CHECK(five_steps(a) == five_steps(b));
  CHECK(counts().recordings - before.recordings <= 3);       // tokens and labels are written before their first readers
}

TEST_CASE("bf16 too, and many ranks in one memory") {
  std::mt19937 draw(12);
  computation_graph const g = mixed_precision(small_transformer());
  training_options o;
  o.optimizer.kind = optimizer_kind::adamw;
  plan p = random_plan(g, 3, draw);
  p.optimizer = o.optimizer;
  counts const before;
  executor<in_queues<float, bfloat16>, comm::virtual_ranks<queued_host>> a(differentiate(g, o), p);
  by_threads<float, bfloat16> b(differentiate(g, o), p);
  CHECK(five_steps(a) == five_steps(b));
  CHECK(counts().replays > before.replays);
}

TEST_CASE("a step whose course is wanted is asked for task by task; the next one is replayed again") {
  computation_graph const g = residual_mlp();
  by_nccl<double> e(differentiate(g), serial_plan(g));
  five_steps(e);
  counts const before;
  timeline record;
  e.step(random_batch(g, 1, 9), 0.125, &record);
  CHECK(record.spans.size() == e.program().tasks.size());
  CHECK(counts().replays == before.replays);
  e.step(random_batch(g, 1, 10), 0.125);
  CHECK(counts().replays > before.replays);
}

TEST_CASE("an index out of range before a replayed step is found, and named; the next step is replayed") {
  computation_graph const g = small_transformer();
  for (u64 steps : {u64{1}, u64{4}}) {
    by_nccl<float> e(differentiate(g), serial_plan(g));
    e.initialise(1);
    for (u64 k = 0; k < steps; ++k) e.step(random_batch(g, 1, k), 0.125);
    host_batch bad = random_batch(g, 1, 9);
    for (auto& [name, t] : bad) for (auto& x : t.index) x = 1 << 20;
    CHECK_THROWS_WITH_AS(e.step(bad, 0.125), doctest::Contains("holds 1048576 at [0, 0]"), error);
    CHECK_FALSE(e.failed());
    CHECK(e.steps() == steps);
    counts const before;
    for (u64 k = 0; k < 2; ++k) e.step(random_batch(g, 1, k), 0.125);
    CHECK(counts().replays > before.replays);
  }
}
