// tests/exec/executor.test.cpp - parallel equals serial: exactly in the prime field, up to rounding in double
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/exec/step/execute_task.hpp>
#include <tensorpar/exec/step/worker_run.hpp>

#include <doctest/doctest.h>

#include "support/effort.hpp"
#include "support/random_pipeline.hpp"
#include "support/spine.hpp"
#include <tensorpar/program/evidence/certificate.hpp>

using namespace tests;

namespace {

void equal_to_serial(computation_graph const& g, int trials, u64 seed, double tolerance, bool noise) {
  std::mt19937 draw(static_cast<unsigned>(seed));
  for (int trial = 0; trial < test_effort::cases(trials); ++trial) {
    int const n = 1 + trial % 8;
    training_options o;
    o.optimizer.kind = static_cast<optimizer_kind>(trial % 3);
    if (trial % 4 == 0) o.optimizer.clip_norm = 0.5;
    if (trial % 5 == 1) o.optimizer.on_non_finite = non_finite::skip;
    o.micro_batches = trial % 3 == 1 ? 2 : 1;
    plan p = random_plan(g, n, draw), s = serial_plan(g);
    p.micro_batches = s.micro_batches = o.micro_batches;
    p.optimizer = s.optimizer = o.optimizer;
    if (trial % 3 == 0) p.node_order = random_order(g, draw);
    CAPTURE(trial);
    {
      executor_of<prime_field> a(differentiate(g, o), p), b(differentiate(g, o), s);
      bool const exact = train(a, 2) == train(b, 2);
      CHECK(exact);
      CHECK(a.copies_agree());
      CHECK(a.allocated_bytes() == a.program().arena);
    }
    // AdamW divides a gradient by its own size, so where the exact gradient is zero it amplifies rounding noise to whole steps
    if (o.optimizer.kind != optimizer_kind::adamw || !noise) {
      executor_of<double> a(differentiate(g, o), p), b(differentiate(g, o), s);
      CHECK(distance(train(a, 3), train(b, 3)) < tolerance);
    }
  }
}

}  // namespace

TEST_CASE("a residual MLP under random shardings equals serial training") { equal_to_serial(residual_mlp(), 80, 1, 1e-11, false); }
TEST_CASE("a convolutional net under random shardings equals serial training") { equal_to_serial(small_cnn(), 60, 2, 1e-11, true); }
TEST_CASE("a transformer with a shared table under random shardings equals serial training") {
  equal_to_serial(small_transformer(), 60, 3, 1e-11, true);
}

TEST_CASE("towers under random shardings equal serial training") { equal_to_serial(towers(4), 60, 4, 1e-11, false); }

TEST_CASE("operators in any valid order do what they do by number, to the bit") {
  std::mt19937 draw(5);
  computation_graph const graphs[] = {towers(5), small_transformer(), small_cnn()};
  for (int trial = 0; trial < test_effort::cases(60); ++trial) {
    CAPTURE(trial);
    computation_graph const& g = graphs[trial % 3];
    training_options o;
    o.optimizer.kind = static_cast<optimizer_kind>(trial % 3);
    if (trial % 4 == 0) o.optimizer.clip_norm = 0.5;
    o.micro_batches = 1 + trial % 2;
    plan p = random_plan(g, 1 + trial % 6, draw);
    p.micro_batches = o.micro_batches;
    p.optimizer = o.optimizer;
    plan q = p;
    q.node_order = random_order(g, draw);
    training_graph const t = differentiate(g, o);
    executor_of<prime_field> a(t, p), b(t, q);
    bool const exact = train(a, 2) == train(b, 2);
    CHECK(exact);
    CHECK(b.copies_agree());
    CHECK(b.allocated_bytes() == b.program().arena);
    executor_of<double> c(t, p), d(t, q);                              // sums are taken in the same order
    CHECK(distance(train(c, 2), train(d, 2)) < 1e-12);
  }
}

TEST_CASE("two halves of a batch, accumulated, are the batch") {
  computation_graph const g = residual_mlp();
  training_options once, twice;
  twice.micro_batches = 2;
  plan p = serial_plan(g), q = serial_plan(g);
  q.micro_batches = 2;
  // the same two micro-batches, one graph bound to 24 rows run twice against the mean of two separate gradients: compare with plain SGD on
  // double
  executor_of<double> a(differentiate(g, twice), q);
  a.initialise(7);
  host_batch const both = random_batch(g, 2, 5);
  a.step(both, 0.5);
  auto half = [&](int k) {
    host_batch b;
    for (auto const& [name, t] : both) {
      host_tensor h;
      h.shape = t.shape;
      h.shape.d[0].n /= 2;
      auto cut = [&](auto const& from, auto& to) {
        if (!from.empty())
          to.assign(from.begin() + k * static_cast<std::ptrdiff_t>(from.size() / 2),
                    from.begin() + (k + 1) * static_cast<std::ptrdiff_t>(from.size() / 2));
      };
      cut(t.real, h.real);
      cut(t.index, h.index);
      b[name] = std::move(h);
    }
    return b;
  };
  auto moved = [&](int k) {
    executor_of<double> e(differentiate(g, once), p);
    e.initialise(7);
    auto const before = parameters_of(e);
    e.step(half(k), 0.5);
    auto after = parameters_of(e);
    for (std::size_t i = 0; i < after.size(); ++i) for (std::size_t j = 0; j < after[i].size(); ++j) after[i][j] -= before[i][j];
    return after;
  };
  executor_of<double> start(differentiate(g, once), p);
  start.initialise(7);
  auto want = parameters_of(start);
  auto const x = moved(0), y = moved(1);
  for (std::size_t i = 0; i < want.size(); ++i) for (std::size_t j = 0; j < want[i].size(); ++j) want[i][j] += (x[i][j] + y[i][j]) / 2;
  CHECK(distance(parameters_of(a), want) < 1e-13);
}

TEST_CASE("bad batches and plans get one clear error") {
  computation_graph const g = residual_mlp();
  executor_of<float> e(differentiate(g), serial_plan(g));
  e.initialise(1);
  host_batch b = random_batch(g, 1, 1);
  host_batch lacking = b;
  lacking.erase("labels");
  CHECK_THROWS_WITH_AS(e.step(lacking, 0.1), "the batch lacks input 'labels' (at batch); valid: every input of the model", error);
  host_batch wrong = b;
  wrong["x"].shape.d[1].n = 47;
  CHECK_THROWS_AS(e.step(wrong, 0.1), error);
  host_batch out_of_range = b;
  out_of_range["labels"].index[3] = 99;
  CHECK_THROWS_WITH_AS(e.step(out_of_range, 0.1), doctest::Contains("99"), error);
  CHECK_NOTHROW(e.step(b, 0.1));                                                      // nothing had been run
  plan p = serial_plan(g);
  p.nodes.pop_back();
  CHECK_THROWS_WITH_AS(executor_of<float>(differentiate(g), p), doctest::Contains("a plan made for this graph"), error);
  p = serial_plan(g);
  p.nodes[0].sharding.axes = {{'o', 5, 1}};
  CHECK_THROWS_WITH_AS(executor_of<float>(differentiate(g), p), doctest::Contains("a divisor of 24"), error);
  p.nodes[0].sharding.axes = {{'o', 2, 1}};
  CHECK_THROWS_WITH_AS(executor_of<float>(differentiate(g), p), doctest::Contains("does not exist"), error);
  for (bool saves : {false, true}) {
    p.nodes[0] = {{0, {{'\0', 2, 1}, {'o', 0, 1}, {'o', 1, 1}}},
                  saves ? tensorpar::ir::zero_stage::updates : tensorpar::ir::zero_stage::none};
    CHECK_THROWS_WITH_AS(executor_of<float>(differentiate(g), p), doctest::Contains("cannot be split in 0"), error);
    CHECK(check(differentiate(g), [&] { plan q = p; q.nodes[0].zero = {}; return q; }())[0].code == fault::sharding);
  }
}

TEST_CASE("a plan and a graph that were not made for each other do not run") {
  computation_graph const g = residual_mlp();
  training_options o;
  o.micro_batches = 4;
  o.optimizer.kind = optimizer_kind::adamw;
  plan p = serial_plan(g);
  p.optimizer = o.optimizer;
  CHECK_THROWS_WITH_AS(executor_of<float>(differentiate(g, o), p), doctest::Contains("micro_batches = 4, the plan has 1"), error);
  p.micro_batches = 4;
  CHECK_NOTHROW(executor_of<float>(differentiate(g, o), p));
  CHECK_THROWS_WITH_AS(executor_of<float>(differentiate(g), p), doctest::Contains("micro_batches = 1, the plan has 4"), error);
  for (int n : {0, -1}) {
    p.micro_batches = n;
    CHECK_THROWS_WITH_AS(executor_of<float>(differentiate(g, o), p), doctest::Contains("micro_batches is"), error);
    CHECK_THROWS_WITH_AS(unroll(differentiate(g, o), p), doctest::Contains("micro_batches is"), error);
  }
  p.micro_batches = 4;
  p.optimizer = {};
  CHECK_THROWS_WITH_AS(executor_of<float>(differentiate(g, o), p), doctest::Contains("the plan's optimizer by sgd_update"), error);
  p = serial_plan(g);
  p.cluster.device.clear();
  CHECK_THROWS_WITH_AS(executor_of<float>(differentiate(g), p), doctest::Contains("no devices"), error);
  CHECK_THROWS_WITH_AS(unroll(differentiate(g), p), doctest::Contains("no devices"), error);
  p = serial_plan(g);
  seal(g, p);
  for (bool sealed : {true, false}) {
    CHECK_THROWS_WITH_AS(executor_of<float>(differentiate(tensorpar::ir::rebatch(g, 2)), p), doctest::Contains("for another batch size"),
                         error);
    if (sealed) p.tasks = p.offsets = 0;
  }
}

TEST_CASE("parameters are given before they are trained: by a seed, a checkpoint, or one by one") {
  computation_graph const g = residual_mlp();
  host_batch const b = random_batch(g, 1, 1);
  executor_of<float> seeded(differentiate(g), serial_plan(g)), stored(differentiate(g), serial_plan(g));
  CHECK_THROWS_WITH_AS(seeded.step(b, 0.1), doctest::Contains("has no values yet (at executor); valid: initialise(seed), "), error);
  seeded.initialise(1);                                                // and nothing has failed
  double const loss = seeded.step(b, 0).loss;
  for (std::size_t x = 0; x < g.values.size(); ++x)
    if (g.values[x].role == value_role::parameter) {
      CHECK_THROWS_AS(stored.step(b, 0.1), error);
      stored.store(static_cast<int>(x), seeded.fetch(static_cast<int>(x)));
    }
  CHECK(stored.step(b, 0).loss == loss);
}

namespace {
struct unheard_of {
  static constexpr auto name = "unheard_of";
  static constexpr auto notation = "... -> ...";
  constexpr tensorpar::op::inference infer(shapes in) const { return in[0]; }
  void derive(tensorpar::op::gradient_builder& g) const { g.give(0, g.emit(unheard_of{}, {g.gradient(0)})); }
};
}  // namespace

TEST_CASE("an operator that the policy has no kernel for is named, before a kernel is asked for its scratch") {
  computation_graph g;
  int const x = g.add_input("x", {4, 6}), w = g.add_parameter("w", {2, 6}, tensorpar::op::init::ones);
  int const y = out(g, g.add(unheard_of{}, {out(g, g.add(contraction("bi,oi->bo"), {x, w}))}));
  g.add_output("loss", out(g, g.add(mean_squared_error{}, {y, g.add_input("t", {4, 2})})));
  CHECK_THROWS_WITH_AS(executor_of<float>(differentiate(g), serial_plan(g)),
                       "operator unheard_of has no kernel in this compute policy (at executor); valid: an operator of the policy", error);
  CHECK(compute::eigen<float>::workspace(unheard_of{}, {}, {}) == 0);
  std::mt19937 draw(1);
  plan const p = random_pipeline(g, {.devices = 2}, 1, 2, draw);
  CHECK_THROWS_WITH_AS(executor_of<float>(tensorpar::passes::pipeline_pass(g, p)), doctest::Contains("operator unheard_of has no kernel"),
                       error);
}

TEST_CASE("what is not kept between steps is neither stored nor fetched") {
  computation_graph const g = residual_mlp();
  executor_of<float> run(differentiate(g), serial_plan(g));
  int const x = g.node(0).in[0], none = static_cast<int>(run.graph().graph.values.size());
  REQUIRE(g.value(x).role == value_role::input);
  for (int bad : std::initializer_list<int>{-1, none, x, g.output("loss")}) {
    CHECK_THROWS_WITH_AS(run.store(bad, {1}), doctest::Contains("not kept between steps"), error);
    CHECK_THROWS_WITH_AS(run.fetch(bad), doctest::Contains("a parameter or a state of the optimizer"), error);
  }
  CHECK_THROWS_WITH_AS(run.store(x, {}), doctest::Contains("'x'"), error);
}

TEST_CASE("a sealed plan runs the program that it was sealed with, in any scalar, and no other") {
  std::mt19937 draw(7);
  computation_graph const g = residual_mlp();
  for (int turn = 0; turn < 6; ++turn) {
    plan p = random_plan(g, 1 + turn % 4, draw);
    if (turn % 2) for (op_strategy& c : p.nodes) c = {c.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 2 == 0};
    seal(g, p);
    CHECK_NOTHROW(executor_of<float>(differentiate(g), p));
    CHECK_NOTHROW(executor_of<prime_field>(differentiate(g), p));
    p.tasks ^= 1;
    CHECK_THROWS_WITH_AS(executor_of<double>(differentiate(g), p), doctest::Contains("other tasks than those it was sealed with"), error);
  }
  plan p = random_pipeline(g, {.devices = 4}, 1, 4, draw);
  seal(g, p);
  CHECK_NOTHROW(executor_of<double>(tensorpar::passes::pipeline_pass(g, p)));
  p.tasks ^= 1;
  CHECK_THROWS_AS(executor_of<double>(tensorpar::passes::pipeline_pass(g, p)), error);
}

namespace {
struct breaks_on_the_last : compute::eigen<float> {
  void run(tensorpar::exec::kernel_call const& c) const {
    if (c.op->is<cross_entropy>() && c.in_block[1].offset[0] == 18) throw error("77", "the last device's rows", "");
    compute::eigen<float>::run(c);
  }
};
}  // namespace

TEST_CASE("one device's error stops all devices, and the run, whose parameters are half updated") {
  computation_graph const g = residual_mlp();
  plan p = serial_plan(g);
  p.cluster = devices(4);
  for (int v = 0; v < g.node_count(); ++v) p.nodes[static_cast<std::size_t>(v)].sharding = {0, {{'0', 4, 1}}};
  executor<breaks_on_the_last, comm::threads> e(differentiate(g), p);
  e.initialise(1);
  host_batch const b = random_batch(g, 1, 1);
  CHECK_THROWS_WITH_AS(e.step(b, 0.1), doctest::Contains("77 (at the last device's rows"), error);
  CHECK(e.failed());
  for (int again = 0; again < 2; ++again)
    CHECK_THROWS_WITH_AS(e.step(b, 0.1), doctest::Contains("this executor has failed before: 77 (at the last device's rows"), error);
  CHECK_THROWS_WITH_AS(e.evaluate(b), doctest::Contains("failed before: 77"), error);
}

TEST_CASE("a timeline has every task of every device once") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(9);
  executor_of<float> e(differentiate(g), random_plan(g, 4, draw));
  e.initialise(1);
  timeline t;
  e.step(random_batch(g, 1, 1), 0.1, &t);
  std::size_t expected = 0;
  for (task const& k : e.program().tasks) expected += k.devices.size();
  CHECK(t.spans.size() == expected);
  for (span const& s : t.spans) { CHECK(s.start <= s.end); CHECK(s.end <= t.seconds); }
}

TEST_CASE("a step tells the norm of all gradients before they are clipped, under any plan") {
  std::mt19937 draw(12);
  for (computation_graph const& g : {residual_mlp(), small_cnn()}) {
    training_options o;
    o.optimizer.clip_norm = 1e9;                           // never reached: parameters change by the gradients themselves
    auto const made = [&](plan p) {
      p.optimizer = o.optimizer;
      return executor_of<double>(differentiate(g, o), p);
    };
    auto one = made(serial_plan(g));
    one.initialise(7);
    auto const before = parameters_of(one);
    step_result const first = one.step(random_batch(g, 1, 3), 0.25);
    auto const after = parameters_of(one);
    double squares = 0;
    for (std::size_t i = 0; i < before.size(); ++i)
      for (std::size_t k = 0; k < before[i].size(); ++k) squares += std::pow((before[i][k] - after[i][k]) / 0.25, 2);
    REQUIRE(first.gradient_norm);
    CHECK(*first.gradient_norm == doctest::Approx(std::sqrt(squares)).epsilon(1e-9));
    for (int devices : {2, 4}) {
      plan p = random_plan(g, devices, draw);
      p.micro_batches = 1;
      auto many = made(p);
      many.initialise(7);
      CHECK(many.step(random_batch(g, 1, 3), 0.25).gradient_norm.value_or(0) == doctest::Approx(*first.gradient_norm).epsilon(1e-9));
      p.cluster = tests::devices(devices + 3);                // the last three are idle, and nobody asks them
      auto idle = made(p);
      for (task const& k : idle.program().tasks) CHECK(k.devices.back() < devices);
      idle.initialise(7);
      CHECK(idle.step(random_batch(g, 1, 3), 0.25).gradient_norm.value_or(0) == doctest::Approx(*first.gradient_norm).epsilon(1e-9));
      CHECK(parameters_of(idle) == parameters_of(many));
    }
    executor_of<double> free(differentiate(g), serial_plan(g));
    free.initialise(7);
    CHECK(!free.step(random_batch(g, 1, 3), 0.25).gradient_norm);
  }
}
