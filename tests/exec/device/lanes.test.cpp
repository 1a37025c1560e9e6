// tests/exec/device/lanes.test.cpp - lanes keep the order of every pair of accesses that matters, and no other
#include <tensorpar/exec/device/lanes.hpp>
#include <doctest/doctest.h>

#include <random>
#include <thread>
#include <tensorpar/program/core/task_lane.hpp>
#include "support/effort.hpp"
#include "support/link_levels.hpp"
#include "support/random_pipeline.hpp"
#include "support/spine.hpp"

using namespace tests;

namespace {

bool overlap(std::vector<tensorpar::exec::byte_range> const& a, std::vector<tensorpar::exec::byte_range> const& b) {
  for (tensorpar::exec::byte_range x : a)
    for (tensorpar::exec::byte_range y : b) if (std::max(x.begin, y.begin) < std::min(x.end, y.end)) return true;
  return false;
}
bool conflict(tensorpar::exec::lane_task const& a, tensorpar::exec::lane_task const& b) {
  return overlap(a.writes, b.writes) || overlap(a.reads, b.writes) || overlap(a.writes, b.reads);
}
/// Every pair looked at.
std::vector<int> waits_of_pairs(std::vector<tensorpar::exec::lane_task> const& tasks, int lanes) {
  std::vector<int> r;
  for (std::size_t k = 0; k < tasks.size(); ++k)
    for (int l = 0; l < lanes; ++l) {
      int number = 0, wait = 0;
      for (std::size_t j = 0; j < k; ++j) {
        if (tasks[j].lane != l || l == tasks[k].lane) continue;
        ++number;
        if (conflict(tasks[j], tasks[k])) wait = number;
      }
      r.push_back(wait);
    }
  return r;
}
std::vector<tensorpar::exec::lane_task> random_tasks(std::mt19937& draw, int lanes) {
  std::vector<tensorpar::exec::lane_task> r(draw() % 30);
  i64 const size = 1 + draw() % 60;
  for (tensorpar::exec::lane_task& t : r) {
    t.lane = draw() % 3 ? 0 : 1 + static_cast<int>(draw() % static_cast<unsigned>(lanes - 1));
    for (auto* side : {&t.reads, &t.writes})
      for (auto n = draw() % 3; n-- > 0;) {
        i64 const a = static_cast<i64>(draw() % static_cast<unsigned>(size)), b = static_cast<i64>(draw() % static_cast<unsigned>(size));
        side->push_back({std::min(a, b), std::max(a, b)});                     // some are empty
      }
  }
  return r;
}

/// Pairs of spans of one device, of these kinds, that share some time.
template <class Kinds> int beside_one_another(timeline const& t, Kinds const& kinds) {
  int r = 0;
  for (span const& a : t.spans)
    for (span const& b : t.spans) r += a.device == b.device && kinds(a, b) && a.start < b.end && b.start < a.end;
  return r;
}

/// Threads whose communication runs beside their computing.
struct beside : comm::threads {
  static constexpr bool overlaps = true;
  using comm::threads::threads;
};
/// The same over a slow network, and kernels that take a while too: then that both go on at once does not hang on a scheduler's luck.
struct slow_kernels : compute::eigen<float> {
  static inline bool fail = false;                         // at the loss; nothing is slow then
  void run(tensorpar::exec::kernel_call const& c) const {
    if (fail && c.op->is<cross_entropy>()) throw error("no such label", "a kernel", "");
    if (fail) return compute::eigen<float>::run(c);
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
    compute::eigen<float>::run(c);
  }
};
struct slow : beside {
  using beside::beside;
  template <class E> void all_reduce(group const& g, E const* in, E* out, i64 n) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    comm::threads::all_reduce(g, in, out, n);
  }
};

}  // namespace

TEST_CASE("waits are those that a look at all pairs finds") {
  std::mt19937 draw(1);
  for (int trial = 0; trial < 3000; ++trial) {
    int const lanes = 2 + trial % 3;
    auto const tasks = random_tasks(draw, lanes);
    CHECK(tensorpar::exec::lane_waits(tasks, lanes) == waits_of_pairs(tasks, lanes));
  }
  CHECK(tensorpar::exec::lane_waits({}, 2).empty());
}

TEST_CASE("any progress of lanes that keep to the waits gives every byte what the sequence gives it") {
  std::mt19937 draw(2);
  for (int trial = 0; trial < 500; ++trial) {
    std::size_t const count = 2 + static_cast<std::size_t>(trial % 3);
    auto const tasks = random_tasks(draw, static_cast<int>(count));
    auto const waits = tensorpar::exec::lane_waits(tasks, static_cast<int>(count));
    auto run = [&](std::vector<std::size_t> const& order) {
      std::vector<u64> memory(64, 0);
      for (std::size_t k : order) {
        u64 seen = k + 1;
        for (tensorpar::exec::byte_range b : tasks[k].reads)
          for (i64 i = b.begin; i < b.end; ++i) seen = seen * 1000003 + memory[static_cast<std::size_t>(i)];
        for (tensorpar::exec::byte_range b : tasks[k].writes)
          for (i64 i = b.begin; i < b.end; ++i) memory[static_cast<std::size_t>(i)] = seen;
      }
      return memory;
    };
    std::vector<std::size_t> sequence, mixed, at(count, 0);
    std::vector<std::vector<std::size_t>> lanes(count);
    for (std::size_t k = 0; k < tasks.size(); ++k) { sequence.push_back(k); lanes[static_cast<std::size_t>(tasks[k].lane)].push_back(k); }
    auto const may = [&](std::size_t lane) {
      if (at[lane] == lanes[lane].size()) return false;
      for (std::size_t l = 0; l < count; ++l) if (waits[lanes[lane][at[lane]] * count + l] > static_cast<int>(at[l])) return false;
      return true;
    };
    while (mixed.size() < tasks.size()) {
      std::size_t lane = draw() % count, asked = 0;
      for (; !may(lane) && asked < count; ++asked) lane = (lane + 1) % count;
      REQUIRE(asked < count);
      mixed.push_back(lanes[lane][at[lane]++]);
    }
    CHECK(run(mixed) == run(sequence));
  }
}

TEST_CASE("a lane waits for the other's progress, and no longer when they are stopped") {
  tensorpar::exec::lane_progress p(3);
  auto const await = [&](int own, std::vector<int> by_lane) { return p.await(own, {by_lane.data(), 3}); };
  CHECK(await(0, {0, 0, 0}));
  std::vector<int> order;
  std::thread communicates([&] {
    CHECK(await(1, {1, 0, 0}));
    order.push_back(2);
    p.ended(1);
  });
  std::thread beside_it([&] {
    CHECK(await(2, {1, 1, 0}));
    order.push_back(3);
    p.ended(2);
  });
  order.push_back(1);
  p.ended(0);
  CHECK(await(0, {0, 1, 1}));
  communicates.join();
  beside_it.join();
  CHECK(order == std::vector<int>{1, 2, 3});
  std::thread stuck([&] { CHECK(!await(1, {5, 0, 0})); });
  p.stop();
  stuck.join();
  CHECK(!await(0, {0, 0, 0}));
  p.restart();
  CHECK(await(1, {0, 0, 0}));
}

TEST_CASE("devices that communicate beside computing get what they get one after the other, to the bit") {
  computation_graph const g[] = {residual_mlp(), small_cnn(), small_transformer()};
  std::mt19937 draw(6);
  for (int trial = 0; trial < test_effort::cases(45); ++trial) {
    computation_graph const& x = g[trial % 3];
    training_options o;
    o.optimizer.kind = static_cast<optimizer_kind>(trial % 2);
    if (trial % 4 == 0) o.optimizer.clip_norm = 0.5;
    plan p = random_plan(x, 2 + trial % 5, draw);
    p.optimizer = o.optimizer;
    CAPTURE(trial);
    executor_of<prime_field> a(differentiate(x, o), p);
    executor_of<prime_field, beside> b(differentiate(x, o), p);
    bool const exact = train(a, 2) == train(b, 2);
    CHECK(exact);
    executor_of<float> c(differentiate(x, o), p);
    executor_of<float, beside> d(differentiate(x, o), p);
    bool const same = train(c, 2) == train(d, 2);
    CHECK(same);
  }
  for (int trial = 0; trial < test_effort::cases(15); ++trial) {
    plan p = random_pipeline(g[0], {.devices = 2 + trial % 3}, 1, i64{1} << (trial % 4), draw);
    if (trial % 2)
      for (op_strategy& n : p.nodes) n = {n.sharding, static_cast<tensorpar::ir::zero_stage>(draw() % 4), draw() % 2 == 0};
    CAPTURE(trial);
    auto const run = [&](auto& e) {
      e.initialise(7);
      for (int k = 0; k < 2; ++k) e.step(random_batch(g[0], static_cast<int>(p.pipeline.mini_batch / p.pipeline.unit), 3), 0.125);
      return parameters_of(e);
    };
    executor_of<prime_field> a(tensorpar::passes::pipeline_pass(g[0], p));
    executor_of<prime_field, beside> b(tensorpar::passes::pipeline_pass(g[0], p));
    bool const exact = run(a) == run(b);
    CHECK(exact);
  }
}

TEST_CASE("over a slow network a device computes while it communicates; the timeline shows both") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(1);
  plan p = serial_plan(g);
  p.cluster = random_plan(g, 2, draw).cluster;
  for (op_strategy& n : p.nodes) n.sharding = {0, {{'0', 2, 1}}};                  // data parallel: gradients are all-reduced
  executor<slow_kernels, slow> run(differentiate(g), p);
  run.initialise(1);
  timeline what;
  run.step(random_batch(g, 1, 1), 0.1, &what);
  CHECK(beside_one_another(what, [](span const& a, span const& b) { return a.where == lane::communication && b.where == lane::compute; }) > 0);
}

TEST_CASE("what a device cuts out of its own memory is done by the lane that computes, as it is simulated") {
  computation_graph const g = small_transformer();
  std::mt19937 draw(3);
  int cuts = 0;
  for (int trial = 0; trial < 10; ++trial) {
    executor_of<prime_field, beside> run(differentiate(g), random_plan(g, 4, draw));
    run.initialise(1);
    timeline what;
    run.step(random_batch(g, run.plan_value().micro_batches, 1), 0.1, &what);
    for (span const& s : what.spans) {
      task const& t = run.program().tasks[static_cast<std::size_t>(s.task)];
      bool const cut = t.kind != task_kind::compute && t.step.kind == tensorpar::ir::reshard_kind::slice;
      CHECK((s.where == lane::communication) == (t.kind != task_kind::compute && !cut));
      cuts += cut;
    }
  }
  CHECK(cuts > 0);
}

TEST_CASE("links that have lanes of their own: the same numbers to the bit, in the lanes that the simulator has them in") {
  std::mt19937 draw(8);
  computation_graph const g[] = {residual_mlp(), small_cnn(), small_transformer()};
  int levels = 0, exchanges = 0;
  for (int trial = 0; trial < test_effort::cases(30); ++trial) {
    bool const staged = trial % 5 == 4;
    computation_graph const& x = g[staged ? 0 : trial % 3];
    plan p = staged ? random_pipeline(x, {.devices = 4 + trial % 3}, 1, 4, draw) : random_plan(x, trial % 3 ? 4 : 6, draw);
    plan q = p;
    q.cluster = on_link_levels(q.cluster);
    CAPTURE(trial);
    executor_of<prime_field> a(x, p);
    executor_of<prime_field, beside> b(x, q);
    auto const run = [&](auto& e, timeline* what) {
      e.initialise(7);
      int const parts = staged ? static_cast<int>(p.pipeline.mini_batch / p.pipeline.unit) : p.micro_batches;
      for (int k = 0; k < 2; ++k) e.step(random_batch(x, parts, 3), 0.125, what);
      return parameters_of(e);
    };
    timeline what;
    bool const exact = run(a, nullptr) == run(b, &what);
    CHECK(exact);
    std::size_t spans = 0;
    for (task const& t : b.program().tasks) spans += t.devices.size();
    CHECK(what.spans.size() == spans);
    int last = 0;
    for (span const& s : what.spans) {
      task const& t = b.program().tasks[static_cast<std::size_t>(s.task)];
      int const own = s.where == lane::compute ? 0 : 1 + s.link;
      CHECK(own == tensorpar::passes::lane_of(t, s.device, q.cluster));
      last = std::max(last, s.link);
      exchanges += own > 0 && t.step.kind == tensorpar::ir::reshard_kind::exchange;
    }
    levels += last;
  }
  CHECK(levels > test_effort::cases(30));
  CHECK(exchanges > 0);
}

TEST_CASE("over slow networks a device communicates over links of two levels at the same time") {
  computation_graph const g = residual_mlp();
  plan p = serial_plan(g);
  std::mt19937 draw(1);
  p.cluster = on_link_levels(random_plan(g, 4, draw).cluster);
  p.prefetch = 2;
  for (std::size_t v = 0; v < p.nodes.size(); ++v) p.nodes[v].sharding = {0, {{'0', v % 2 ? 4 : 2, 1}}};     // all-reduces among four, and among two
  executor<slow_kernels, slow> run(differentiate(g), p);
  run.initialise(1);
  timeline what;
  run.step(random_batch(g, 1, 1), 0.1, &what);
  auto const levels = [](span const& a, span const& b) { return a.where == lane::communication && b.where == lane::communication && a.link < b.link; };
  CHECK(beside_one_another(what, levels) > 0);
}

TEST_CASE("a kernel that fails stops the thread that communicates, and the other way round") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(1);
  for (int trial = 0; trial < 10; ++trial) {
    executor<slow_kernels, slow> run(differentiate(g), random_plan(g, 4, draw));
    run.initialise(1);
    host_batch const b = random_batch(g, 1, 1);
    slow_kernels::fail = true;
    for (int again = 0; again < 2; ++again) {              // an evaluation leaves it as it was
      CHECK_THROWS_WITH_AS(run.evaluate(b), doctest::Contains("(loss:cross_entropy)"), error);
      CHECK_FALSE(run.failed());
    }
    CHECK_THROWS_WITH_AS(run.step(b, 0.1), doctest::Contains("(loss:cross_entropy)"), error);
    CHECK(run.failed());
    slow_kernels::fail = false;
  }
}
