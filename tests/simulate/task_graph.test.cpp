// tests/simulate/task_graph.test.cpp - schedules of small task graphs with known times, and the bounds that every schedule keeps
#include <tensorpar/simulate/task_graph.hpp>
#include <doctest/doctest.h>

#include <random>

using namespace tensorpar;

namespace {
std::vector<simulation::timed_task> graph(std::vector<double> const& costs, std::vector<std::pair<int, int>> const& edges) {
  std::vector<simulation::timed_task> r;
  for (double c : costs) r.push_back({c, {}, {}});
  for (auto const& [a, b] : edges) r[static_cast<std::size_t>(b)].after.push_back(a);
  return r;
}
double free_of_lanes(std::vector<simulation::timed_task> const& g) { return simulation::finish(simulation::run_on_lanes(g, 0)); }
}  // namespace

TEST_CASE("a chain of 1, 10, 100, 1000") {
  auto const g = graph({1, 10, 100, 1000}, {{0, 1}, {1, 2}, {2, 3}});
  std::vector<simulation::task_times> const want{{0, 1}, {1, 11}, {11, 111}, {111, 1111}};
  CHECK(simulation::run_on_lanes(g, 0) == want);
  CHECK(simulation::run_on_workers(g, 1) == want);
  CHECK(simulation::run_on_workers(g, 7) == want);
}

TEST_CASE("a rhombus: 55 without limit, 70 one at a time") {
  auto const g = graph({10, 15, 20, 25}, {{0, 1}, {0, 2}, {1, 3}, {2, 3}});
  CHECK(free_of_lanes(g) == 55);
  CHECK(simulation::finish(simulation::run_on_workers(g, 4)) == 55);
  CHECK(simulation::finish(simulation::run_on_workers(g, 1)) == 70);
}

TEST_CASE("a crossing diamond: 95 without limit, 135 one at a time") {
  auto const g = graph({10, 15, 20, 25, 30, 35}, {{0, 1}, {0, 2}, {1, 3}, {1, 4}, {2, 3}, {2, 4}, {3, 5}, {4, 5}});
  CHECK(free_of_lanes(g) == 95);
  CHECK(simulation::finish(simulation::run_on_workers(g, 1)) == 135);
}

TEST_CASE("a fan of three on two workers: 230") {
  auto const g = graph({10, 100, 100, 100, 20}, {{0, 1}, {0, 2}, {0, 3}, {1, 4}, {2, 4}, {3, 4}});
  CHECK(simulation::finish(simulation::run_on_workers(g, 2)) == 230);
  CHECK(simulation::finish(simulation::run_on_workers(g, 3)) == 130);
}

TEST_CASE("operators of 10 with transfers of 1: a chain on two devices 21, a rhombus on four 32, on one 42") {
  auto chain = graph({10, 1, 10}, {{0, 1}, {1, 2}});
  chain[0].lanes = {0};
  chain[1].lanes = {2};
  chain[2].lanes = {1};
  CHECK(simulation::finish(simulation::run_on_lanes(chain, 3)) == 21);
  // 0: first, 1 2: out, 3 4: middle, 5 6: in, 7: last
  auto const rhombus = graph({10, 1, 1, 10, 10, 1, 1, 10}, {{0, 1}, {0, 2}, {1, 3}, {2, 4}, {3, 5}, {4, 6}, {5, 7}, {6, 7}});
  auto four = rhombus, one = rhombus;
  for (auto const& [task, device] : {std::pair{0, 0}, {3, 1}, {4, 2}, {7, 3}}) {
    four[static_cast<std::size_t>(task)].lanes = {device};
    one[static_cast<std::size_t>(task)].lanes = {0};
  }
  CHECK(simulation::finish(simulation::run_on_lanes(four, 4)) == 32);
  CHECK(simulation::finish(simulation::run_on_lanes(one, 1)) == 42);
}

TEST_CASE("a task on several lanes waits for all of them and holds them all") {
  std::vector<simulation::timed_task> const g{{3, {}, {0}}, {5, {}, {1}}, {1, {}, {0, 1}}, {1, {}, {0}}};
  std::vector<simulation::task_times> const want{{0, 3}, {0, 5}, {5, 6}, {6, 7}};
  CHECK(simulation::run_on_lanes(g, 2) == want);
}

TEST_CASE("no task, no time") {
  CHECK(simulation::finish(simulation::run_on_lanes({}, 3)) == 0);
  CHECK(simulation::finish(simulation::run_on_workers({}, 3)) == 0);
  CHECK(simulation::critical_path(std::vector<simulation::timed_task>{}) == 0);
}

TEST_CASE("every schedule lies between the critical path and the sum; workers keep Graham's bound") {
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    int const n = 1 + static_cast<int>(random() % 12);
    std::vector<simulation::timed_task> g(static_cast<std::size_t>(n));
    double sum = 0;
    for (int i = 0; i < n; ++i) {
      simulation::timed_task& t = g[static_cast<std::size_t>(i)];
      t.seconds = static_cast<double>(random() % 10);
      sum += t.seconds;
      for (int p = 0; p < i; ++p) if (random() % 4 == 0) t.after.push_back(p);
      for (int l = 0; l < 3; ++l) if (random() % 3 == 0) t.lanes.push_back(l);
    }
    double const longest = simulation::critical_path(g);
    CHECK(simulation::finish(simulation::run_on_lanes(g, 3)) >= longest);
    CHECK(simulation::finish(simulation::run_on_lanes(g, 3)) <= sum);
    CHECK(simulation::finish(simulation::run_on_workers(g, 1)) == sum);
    CHECK(simulation::finish(simulation::run_on_workers(g, n)) == longest);
    for (int k : {2, 3}) {
      auto const r = simulation::run_on_workers(g, k);
      double const t = simulation::finish(r), least = std::max(longest, sum / k);
      CHECK(t >= least);
      CHECK(t <= (2 - 1.0 / k) * std::max(longest, sum / k) + 1e-9);
      for (int i = 0; i < n; ++i) {
        for (int p : g[static_cast<std::size_t>(i)].after)
          CHECK(r[static_cast<std::size_t>(p)].end <= r[static_cast<std::size_t>(i)].start);
        int busy = 0;                                            // at the moment this task starts
        for (simulation::task_times const& x : r)
          busy += x.start <= r[static_cast<std::size_t>(i)].start && r[static_cast<std::size_t>(i)].start < x.end;
        CHECK(busy <= k);
      }
    }
  }
}
