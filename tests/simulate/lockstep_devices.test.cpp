// tests/simulate/lockstep_devices.test.cpp - a program that lists one device of those that do the same: same times, same memory
#include <doctest/doctest.h>
#include <random>
#include <tensorpar/check/check.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/fuse_tasks.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/simulate/engine.hpp>

#include "support/effort.hpp"
#include "support/random_network.hpp"
#include "support/random_pipeline.hpp"

using namespace tests;

namespace {

/// Eight devices in two nodes, of one kind or of two.
machine eight(bool mixed) {
  device_kind slow{"slow", 1e9, 1e9, i64{1} << 30, 0}, fast{"fast", 3e9, 2e9, i64{1} << 30, 0};
  machine m = make_cluster("eight", slow, 8, 4, {"inside", 4, 1e-6, 1e9}, {"between", 8, 1e-5, 1e8});
  if (!mixed) return m;
  m.kinds.push_back(fast);
  for (int d = 4; d < 8; ++d) m.device[static_cast<std::size_t>(d)] = 1;
  return m;
}
/// All devices, most often, or two or four of them side by side or apart; loops in any order of strides.
ir::sharding draw_sharding(ir::iteration_space const& space, std::mt19937& draw) {
  i64 left = draw() % 3 ? 8 : draw() % 2 ? 4 : 2, stride = i64{1} << draw() % (left == 8 ? 1 : left == 4 ? 2 : 3);
  i64 const apart = 8 / (left * stride);
  ir::sharding s{static_cast<int>(draw() % static_cast<unsigned>(apart) * static_cast<unsigned>(left * stride)), {}};
  s.start += static_cast<int>(draw() % static_cast<unsigned>(stride));
  while (left > 1) {
    i64 const degree = draw() % 2 && left > 2 ? left / 2 : left;
    s.axes.push_back({space.loops.empty() ? '\0' : space.loops[draw() % space.loops.size()].letter, degree, stride});
    if (ir::misfit(space, s) >= 0) s.axes.back().letter = '\0';
    stride *= degree;
    left /= degree;
  }
  if (draw() % 2) std::reverse(s.axes.begin(), s.axes.end());
  return s;
}
plan draw_plan(computation_graph const& g, bool mixed, std::mt19937& draw) {
  plan p;
  p.graph = g.hash();
  p.cluster = eight(mixed);
  std::vector<ir::sharding> few;
  for (int v = 0; v < g.node_count(); ++v) {
    ir::iteration_space const space = ir::space_of(g, v);
    ir::sharding s = draw_sharding(space, draw);
    if (!few.empty() && draw() % 2) s = few[draw() % few.size()];
    for (ir::mesh_axis& a : s.axes) if (ir::misfit(space, s) >= 0) a.letter = '\0';
    few.push_back(s);
    p.nodes.push_back({s, static_cast<ir::zero_stage>(draw() % 5 % 4), draw() % 4 == 0});
  }
  p.prefetch = static_cast<int>(draw() % 4);
  return p;
}

/// The spans of a device: lane, level of links, task, start, end.
std::vector<std::tuple<int, int, int, double, double>> spans_of(timeline const& t, int device) {
  std::vector<std::tuple<int, int, int, double, double>> r;
  for (span const& s : t.spans) if (s.device == device) r.push_back({static_cast<int>(s.where), s.link, s.task, s.start, s.end});
  return r;
}
bool every_kernel(op::any_op const&, bool) { return true; }
/// How many devices stand for others.
int same_times(computation_graph const& g, plan const& p) {
  planned_step const all = step_of(g, p), some = step_to_simulate(g, p);
  REQUIRE(all.program.tasks.size() == some.program.tasks.size());
  CHECK(all.program.arena == some.program.arena);
  timeline const t = simulate(all.program, p.cluster, cost::analytical{}), s = simulate(some.program, p.cluster, cost::analytical{});
  CHECK(t.seconds == s.seconds);
  int others = 0;
  for (int d = 0; d < p.cluster.size(); ++d) {
    int const listed = some.program.listed_for[static_cast<std::size_t>(d)];
    others += listed != d;
    CHECK(spans_of(t, d) == spans_of(s, listed));
  }
  program const all_fused = passes::fuse_tasks(all.program, p.cluster, every_kernel, no_workspace),
                some_fused = passes::fuse_tasks(some.program, p.cluster, every_kernel, no_workspace);
  CHECK(all_fused.arena == some_fused.arena);
  CHECK(simulate(all_fused, p.cluster, cost::analytical{}).seconds == simulate(some_fused, p.cluster, cost::analytical{}).seconds);
  simulation::task_prices const price = simulation::price(some.program, p.cluster, cost::analytical{});
  CHECK(critical_path(some.program, p.cluster, price) == critical_path(all.program, p.cluster, price));
  return others;
}

}  // namespace

TEST_CASE("random plans: every device's spans and bytes are those of the one that is listed for it") {
  std::mt19937 draw(5);
  int others = 0, plans = 0;
  for (int i = 0; i < test_effort::cases(120); ++i) {
    CAPTURE(i);
    computation_graph const g = random_network({.samples = 8}, draw);
    plan p = draw_plan(g, i % 3 == 2, draw);
    p.micro_batches = 1 + i % 2;
    p.cluster.lane_per_link = i % 4 == 0;
    if (i % 8 == 4) p.cluster.links[0].group = 3;                 // groups cross it here, and not there
    others += same_times(g, p);
    ++plans;
  }
  CHECK(others > plans);                    // more than one of eight, in the mean
}

TEST_CASE("random pipelines, whose groups have parts of their own") {
  std::mt19937 draw(6);
  computation_graph const g = residual_mlp();
  int others = 0;
  for (int i = 0; i < test_effort::cases(40); ++i) {
    CAPTURE(i);
    others += same_times(g, random_pipeline(g, {.devices = 2 + i % 7, .shared_groups = i % 4 == 0}, 1, 8, draw));
  }
  CHECK(others > 0);
}

TEST_CASE("replicas need one device, whatever their number") {
  computation_graph const g = residual_mlp();
  plan p;
  p.graph = g.hash();
  p.cluster = devices(24);
  p.nodes.resize(g.nodes.size(), {{0, {{'\0', 4, 1}, {'\0', 6, 4}}}});
  CHECK(step_to_simulate(g, p).program.listed_for == std::vector<int>(24, 0));
}

TEST_CASE("a program of some devices is no program to run") {
  computation_graph const g = residual_mlp();
  plan p;
  p.graph = g.hash();
  p.cluster = devices(4);
  p.nodes.resize(g.nodes.size(), {{0, {{'\0', 4, 1}}}});
  planned_step const s = step_to_simulate(g, p);
  std::vector<finding> const found = check(s.graph, s.plan, s.program);
  REQUIRE(found.size() == 1);
  CHECK(found[0].text.find("lists one device") != std::string::npos);
  CHECK_THROWS_WITH_AS(unroll(s.graph, s.plan, {.device = 1, .lockstep = true}), doctest::Contains("one of these options"), error);
}
