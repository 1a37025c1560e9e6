// tests/program/memory_by_kind.test.cpp - what fills a device is what lives on it at the fullest task, and of the kind that it is
#include <doctest/doctest.h>
#include <tensorpar/program/memory_by_kind.hpp>
#include <tensorpar/program/step_of.hpp>

#include "support/effort.hpp"
#include "support/random_pipeline.hpp"
#include "support/small_graphs.hpp"

using namespace tests;
using passes::memory_kind;

namespace {

/// Bytes in use on a device at its fullest task: every task is looked at.
i64 most_in_use(program const& p, int device) {
  i64 most = 0;
  for (int t = 0; t < static_cast<int>(p.tasks.size()); ++t) {
    i64 now = 0;
    for (std::size_t b = 0; b < p.buffers.size(); ++b) {
      buffer const& x = p.buffers[b];
      bool taken_over = false;
      for (std::size_t c = b + 1; c < p.buffers.size(); ++c)
        taken_over = taken_over || (p.buffers[c].in_place_of == static_cast<int>(b) && p.buffers[c].first <= t);
      bool const lives = x.persistent || (x.first <= t && t <= x.last && !taken_over);
      if (lives && std::binary_search(x.devices.begin(), x.devices.end(), device)) now += passes::aligned(x.bytes);
    }
    most = std::max(most, now);
  }
  return most;
}
passes::memory_by_kind of_device_0(computation_graph const& g, plan const& p) { return passes::memory_of(step_of(g, p))[0]; }

}  // namespace

TEST_CASE("random plans and pipelines: kinds add up to what is in use at the fullest task, below the arena") {
  std::mt19937 draw(5);
  for (int i = 0; i < test_effort::cases(60); ++i) {
    CAPTURE(i);
    computation_graph const g = i % 2 ? residual_mlp() : small_transformer();
    plan p = i % 3 == 2 ? random_pipeline(residual_mlp(), {.devices = 2 + i % 4}, 1, 4, draw) : random_plan(g, 4, draw);
    if (p.pipeline.empty()) {
      p.micro_batches = 1 + i % 2;
      p.optimizer.kind = i % 4 ? optimizer_kind::adamw : optimizer_kind::sgd;
      for (op_strategy& n : p.nodes) n = {n.sharding, static_cast<ir::zero_stage>(draw() % 4), draw() % 3 == 0};
    }
    p.prefetch = i % 5;
    planned_step const s = step_of(p.pipeline.empty() ? g : residual_mlp(), p);
    std::vector<passes::memory_by_kind> const found = passes::memory_of(s);
    REQUIRE(found.size() == s.program.arena.size());
    for (int d = 0; d < static_cast<int>(found.size()); ++d) {
      CHECK(found[static_cast<std::size_t>(d)].together() == most_in_use(s.program, d));
      CHECK(found[static_cast<std::size_t>(d)].together() <= s.program.arena[static_cast<std::size_t>(d)]);
    }
  }
}

TEST_CASE("weights, their gradients and the optimizer's state are what they weigh; ZeRO divides them") {
  computation_graph g;
  value_id x = g.add_input("x", {dim(16), dim(64)});
  for (char const* name : {"a", "b", "c", "d"}) x = g.node(g.add_with_weights(linear{64, false}, {x}, name)).out[0];
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {x, g.add_input("y", {dim(16), dim(64)})})).out[0]);
  i64 const weights = 4 * 64 * 64 * 4;
  plan p = one_device_plan(g);
  p.cluster = devices(4);
  p.micro_batches = 2;
  p.optimizer.kind = optimizer_kind::adamw;
  for (std::size_t v = 0; v < g.nodes.size(); ++v) p.nodes[v].sharding.axes = {{'0', 4, 1}};
  passes::memory_by_kind const all = of_device_0(g, p);
  CHECK(all[memory_kind::weights] == weights);
  CHECK(all[memory_kind::gradients] >= weights * 3 / 4);             // sums over micro-batches; the first is made last
  CHECK(all[memory_kind::gradients] <= weights * 3 / 2);
  CHECK(all[memory_kind::optimizer] >= 2 * weights);
  CHECK(all[memory_kind::optimizer] < 2 * weights + 1024);
  CHECK(all[memory_kind::activations] > 0);
  CHECK(all[memory_kind::activations] < weights);
  CHECK(all[memory_kind::workspace] == 0);
  auto const with = [&](ir::zero_stage z) {
    for (std::size_t v = 0; v < g.nodes.size(); ++v) if (g.nodes[v].op.is<linear>()) p.nodes[v].zero = z;
    return of_device_0(g, p);
  };
  CHECK(with(ir::zero_stage::updates)[memory_kind::optimizer] < all[memory_kind::optimizer] / 3);
  passes::memory_by_kind const parts = with(ir::zero_stage::weights);
  CHECK(parts[memory_kind::optimizer] < all[memory_kind::optimizer] / 3);
  CHECK(parts[memory_kind::weights] < all[memory_kind::weights]);
  CHECK(parts[memory_kind::gradients] < all[memory_kind::gradients]);
  CHECK(parts[memory_kind::activations] > 0);
}

TEST_CASE("kernels' scratch is workspace, and devices that another is listed for get what it has") {
  computation_graph const g = small_cnn();
  plan p = one_device_plan(g);
  p.cluster = devices(4);
  for (op_strategy& n : p.nodes) n.sharding.axes = {{'\0', 4, 1}};
  // more than all else, so that the fullest task is one that needs it
  scratch_space const some{"some", [](op::any_op const&, shapes, shapes) { return i64{1} << 24; }, 4};  // numbers of 4 bytes
  for (passes::memory_by_kind const& m : passes::memory_of(step_of(g, p, "loss", some))) CHECK(m[memory_kind::workspace] == 4 << 24);
  CHECK(passes::memory_of(step_of(g, p)) == passes::memory_of(step_to_simulate(g, p)));
}
