// tests/simulate/engine_pipeline.test.cpp - pipelines' programs in virtual time: laws on random ones, and one by hand
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/unroll.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <support/peaks.hpp>

#include <doctest/doctest.h>

#include "support/effort.hpp"
#include "support/random_pipeline.hpp"

using namespace tests;

namespace {
/// Forward operators take 1 s, what they derive 2 s in all; sending takes `send`.
struct by_hand {
  double send = 0;
  double seconds(tensorpar::cost::compute_query const& q) const { return q.op.is<linear>() ? 1 : q.op.is<contraction>() ? 1 : 0; }
  double seconds(tensorpar::cost::reshard_query const&) const { return send; }
};
}  // namespace

TEST_CASE("random pipelines: between the critical path and one task after the other, memory within the arenas") {
  computation_graph const g = residual_mlp();
  std::mt19937 draw(21);
  for (int i = 0; i < test_effort::cases(40); ++i) {
    CAPTURE(i);
    plan const p = random_pipeline(g, {.devices = 2 + i % 5, .shared_groups = i % 4 == 0}, 1, 8, draw);
    program const q = unroll(tensorpar::passes::pipeline_pass(g, p));
    tensorpar::simulation::task_prices const c = tensorpar::simulation::price(q, p.cluster, tensorpar::cost::analytical{});
    timeline const t = simulate(q, p.cluster, c);
    CHECK(critical_path(q, p.cluster, c) <= t.seconds * (1 + 1e-12));
    CHECK(t.seconds <= tensorpar::simulation::serial_seconds(q, p.cluster, c) * (1 + 1e-12));
    for (memory_sample const& m : t.memory) CHECK(m.bytes <= q.arena[static_cast<std::size_t>(m.device)]);
    std::vector<double> sent(q.tasks.size(), 0);
    for (span const& s : t.spans)
      if (q.tasks[static_cast<std::size_t>(s.task)].kind == task_kind::send) sent[static_cast<std::size_t>(s.task)] = s.start;
    for (span const& s : t.spans)
      if (task const& k = q.tasks[static_cast<std::size_t>(s.task)]; k.kind == task_kind::receive)
        CHECK(s.start >= sent[static_cast<std::size_t>(k.other_half)]);
  }
}

TEST_CASE("a chain of equal stages fills and drains as the formula says, with and without the time of a transfer") {
  for (int stages : {1, 2, 4})
    for (int micro : {4, 8}) {
      computation_graph g;
      int x = g.add_input("x", {4, 16});
      for (int s = 0; s < stages; ++s) x = out(g, g.add_with_weights(linear{16, false}, {x}, "layer" + std::to_string(s)));
      g.add_output("loss", out(g, g.add(mean_squared_error{}, {x, g.add_input("y", {4, 16})}, "loss")));
      plan p;
      p.graph = g.hash();
      p.cluster = devices(stages);
      p.nodes.resize(g.nodes.size());
      p.pipeline.mini_batch = micro;
      for (int s = 0; s < stages; ++s) {
        p.pipeline.groups.push_back({s, 1});
        p.pipeline.stages.push_back({});
        p.pipeline.stages.back().nodes = {s};
        p.pipeline.stages.back().group = s;
        p.nodes[static_cast<std::size_t>(s)].sharding.start = s;
        // 1F1B: stage s starts with stages - s forward passes
        std::vector<pass_entry> o;
        int const warm = std::min(micro, stages - s);
        for (int j = 0; j < warm; ++j) o.push_back({s, pass::forward, j});
        for (int j = 0; j < micro; ++j) {
          o.push_back({s, pass::backward, j});
          if (j + warm < micro) o.push_back({s, pass::forward, j + warm});
        }
        p.pipeline.schedule.push_back(std::move(o));
      }
      p.pipeline.stages.back().nodes.push_back(stages);
      p.nodes.back().sharding.start = stages - 1;
      program const q = unroll(tensorpar::passes::pipeline_pass(g, p));
      // what goes back leaves before the weights' product is made, so draining takes one product per stage, not two
      double const got = simulate(q, p.cluster, by_hand{}).seconds;
      CHECK(got == doctest::Approx(stages == 1 ? 2 * micro : 3 * micro + 2 * stages - 3));
      CHECK(simulate(q, p.cluster, by_hand{0.01}).seconds <= got + 0.01 * 2 * (stages - 1) * micro + 1e-9);
      CHECK(simulate(q, p.cluster, by_hand{0.01}).seconds >= got + 0.01 * 2 * (stages - 1) - 1e-9);
    }
}
