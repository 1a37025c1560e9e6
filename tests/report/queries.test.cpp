// tests/report/queries.test.cpp - views over tasks and spans against plain loops, for random plans and pipelines
#include <tensorpar/report/queries.hpp>

#include <doctest/doctest.h>

#include <random>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/simulate/engine.hpp>

#include "support/random_pipeline.hpp"
#include "support/spine.hpp"

using namespace tests;
using namespace tensorpar::queries;

TEST_CASE("every query is what a loop over the program or the timeline gives") {
  computation_graph const g = small_transformer();
  std::mt19937 draw(5);
  int moved = 0, waited = 0;
  for (int trial = 0; trial < 12; ++trial) {
    CAPTURE(trial);
    plan p = random_plan_of_a_kind(g, trial, draw);
    p.graph = g.hash();
    program const q = step_of(g, p).program;
    timeline const time = simulate(q, p.cluster, tensorpar::cost::analytical{});
    for (int d = 0; d < p.cluster.size(); ++d) {
      double sent = 0, busy = 0;
      std::vector<int> numbers;
      for (std::size_t i = 0; i < q.tasks.size(); ++i) {
        task const& t = q.tasks[i];
        if (std::find(t.devices.begin(), t.devices.end(), d) == t.devices.end() || t.kind != task_kind::reshard) continue;
        numbers.push_back(static_cast<int>(i));
        sent += tensorpar::report::bytes_of_move(q, t);
      }
      CHECK((tasks(q) | on_device(d) | task_kind::reshard | ranges::views::transform([](listed_task const& t) { return t.number; }) | ranges::to<std::vector>()) == numbers);
      CHECK(total(tasks(q) | on_device(d) | task_kind::reshard | bytes) == doctest::Approx(sent));
      moved += sent > 0;
      std::vector<gap> wanted;
      span const* before = nullptr;
      for (span const& s : time.spans) {
        if (s.device != d || s.where != lane::compute) continue;
        busy += s.end - s.start;
        if (before && s.start > before->end) wanted.push_back({d, lane::compute, before->end, s.start});
        before = &s;
      }
      CHECK(total(spans(time) | on_device(d) | lane::compute | seconds) == doctest::Approx(busy));
      CHECK((spans(time) | on_device(d) | lane::compute | gaps | ranges::to<std::vector>()) == wanted);
      CHECK((spans(time) | lane::compute | gaps | on_device(d) | ranges::to<std::vector>()) == wanted);     // in any order
      waited += !wanted.empty();
    }
    int const v = static_cast<int>(draw() % static_cast<unsigned>(g.node_count()));
    std::size_t of_v = 0;
    for (task const& t : q.tasks) of_v += t.node == v;
    CHECK(static_cast<std::size_t>(ranges::distance(tasks(q) | of_node(v))) == of_v);
  }
  CHECK(moved > 0);
  CHECK(waited > 0);
}

TEST_CASE("between spans of two levels of links there is no gap: each is a lane") {
  timeline t;
  t.spans = {{0, lane::communication, 0, "a", 0, 1, 0}, {0, lane::communication, 1, "b", 2, 3, 0}, {0, lane::communication, 2, "c", 5, 6, 1}};
  CHECK((spans(t) | gaps | ranges::to<std::vector>()) == std::vector<gap>{{0, lane::communication, 1, 2}});
}

TEST_CASE("empty programs and timelines have nothing to tell, and vectors of elements are ranges too") {
  program const none;
  timeline const never;
  CHECK(total(tasks(none) | on_device(0) | bytes) == 0);
  CHECK(ranges::distance(spans(never) | gaps) == 0);
  std::vector<span> const two{{0, lane::compute, 0, "a", 0, 1}, {0, lane::compute, 1, "b", 3, 4}};
  CHECK((two | gaps | ranges::to<std::vector>()) == std::vector<gap>{{0, lane::compute, 1, 3}});
  std::vector<gap> const gone{{2, lane::communication, 1, 3}, {1, lane::compute, 0, 1}};
  CHECK(total(gone | lane::communication | seconds) == 2);
}
