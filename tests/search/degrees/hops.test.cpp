// tests/search/degrees/hops.test.cpp - transfers between a pipeline's groups beside those of its program
#include <tensorpar/search/degrees/hops.hpp>

#include <algorithm>
#include <doctest/doctest.h>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/core/task_lane.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

training_problem gpt(int layers, i64 samples) {
  return {.graph = zoo::make("gpt3_1b3:layers=" + std::to_string(layers) + ",hidden=64,heads=4,wide=128,seq=32,vocab=256", 1), .samples = samples};
}
machine nodes(int n, int per, bool lanes) {
  device_kind const k{"device", 1e12, 1e11, i64{1} << 30, 1e-6};
  machine m = make_cluster("nodes", k, n * per, per, {"inner", per, 1e-6, 4e9}, {"outer", n * per, 5e-6, 3e8});
  m.lane_per_link = lanes;
  return m;
}
search::detail::hop_seconds hops(training_problem const& asked, machine const& on, parallel_config c) {
  cost::analytical const model;
  configurations<cost::analytical> all(asked, on, model);
  parallel_config const given = c;
  c.data = c.pipeline = c.virtual_stages = 1;
  configured_plan const one = all.plan_of(c, search::detail::part_of(on, {0, c.tensor}), c.micro_batch);
  planned_step const s = step_to_simulate(one.graph, one.plan, asked.loss, asked.scratch);
  return hops_of(search::detail::crossings_of(s.graph, s.plan.nodes), given, on, model, asked.scalar_bytes());
}
/// Seconds that the busiest lane of a device sends and receives activations and their gradients.
double busiest(training_problem const& asked, machine const& on, parallel_config const& c) {
  cost::analytical const model;
  configured_plan const x = configured(asked, on, model, c);
  planned_step const s = step_to_simulate(x.graph, x.plan, asked.loss, asked.scratch);
  std::vector<double> lanes(idx(on.size() * (1 + on.communication_lanes())), 0.0);
  double most = 0;
  for (span const& a : simulate(s.program, on, model, {true, false}).spans) {
    task const& t = s.program.tasks[idx(a.task)];
    if (t.kind != task_kind::send && t.kind != task_kind::receive) continue;
    double& lane = lanes[idx(a.device * (1 + on.communication_lanes()) + passes::lane_of(t, a.device, on))];
    most = std::max(most, lane += a.end - a.start);
  }
  return most;
}

}  // namespace

TEST_CASE("the lane that a pipeline's transfers use longest is as busy as that of its program") {
  int compared = 0, several = 0, split = 0;
  for (bool lanes : {false, true})
    for (int tensor : {1, 2})
      for (int stages : {2, 4})
        for (int chunks : {1, 2})
          for (i64 size : {1, 3}) {
            machine const on = nodes(stages * tensor / 2, 2, lanes);
            if (on.size() < 2) continue;
            parallel_config const c{.tensor = tensor, .pipeline = stages, .virtual_stages = chunks, .micro_batch = size};
            CAPTURE(lanes);
            CAPTURE(text_of(c));
            training_problem const asked = gpt(8, size * stages * 2);
            double const found = hops(asked, on, c).busy * stages * 2;
            CHECK(found > 0);
            CHECK(busiest(asked, on, c) == doctest::Approx(found).epsilon(1e-9));
            ++compared;
            several += chunks > 1;
            split += tensor > 1;
          }
  CHECK(compared == 32);
  CHECK(several == 16);
  CHECK(split == 16);
}

TEST_CASE("a micro-batch goes through all chunks and back; none goes anywhere without a pipeline") {
  training_problem const asked = gpt(8, 16);
  machine const on = nodes(4, 1, false);
  double const bytes = 32 * 64 * 4;                                    // of a sample's residual path
  auto const h = hops(asked, on, {.pipeline = 4, .micro_batch = 2});
  double const reached = cost::analytical_options{}.link_efficiency * 3e8;
  CHECK(h.way == doctest::Approx(2 * 3 * (5e-6 + 2 * bytes / reached)).epsilon(1e-9));
  CHECK(h.busy == doctest::Approx(h.way / 3 * 2).epsilon(1e-9));       // from one neighbour and to the other
  auto const twice = hops(asked, on, {.pipeline = 4, .virtual_stages = 2, .micro_batch = 2});
  CHECK(twice.way == doctest::Approx(h.way / 3 * 7).epsilon(1e-9));    // eight chunks
  CHECK(hops(asked, on, {.data = 4, .micro_batch = 2}).way == 0);
  CHECK(hops(asked, on, {.data = 4, .micro_batch = 2}).busy == 0);
}
