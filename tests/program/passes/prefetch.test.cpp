// tests/program/passes/prefetch.test.cpp - gathers before they are needed, updates behind later reductions
#include <doctest/doctest.h>
#include <tensorpar/check/check.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/program/passes/chains.hpp>
#include <tensorpar/program/passes/prefetch.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/simulate/engine.hpp>

#include "support/effort.hpp"
#include "support/random_pipeline.hpp"
#include "support/small_graphs.hpp"

using namespace tests;

namespace {

/// Four linear layers on four replicas, their weights in parts.
computation_graph four_layers() {
  computation_graph g;
  value_id x = g.add_input("x", {dim(32), dim(64)});
  for (char const* name : {"a", "b", "c", "d"}) x = g.node(g.add_with_weights(linear{64, false}, {x}, name)).out[0];
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {x, g.add_input("y", {dim(32), dim(64)})})).out[0]);
  return g;
}
plan in_parts(computation_graph const& g, int prefetch) {
  plan p;
  p.graph = g.hash();
  p.cluster = make_cluster("four", {"device", 1e9, 1e9, i64{1} << 30, 0}, 4, 4, {"link", 4, 1e-7, 1e9}, {});
  for (graph_node const& n : g.nodes)
    p.nodes.push_back({{0, {{n.op.is<linear>() ? '0' : '\0', 4, 1}}}, ir::zero_stage::weights, false});
  p.prefetch = prefetch;
  return p;
}
/// "gather b", "compute b", "reduce b", "update b", forwards and then backwards.
std::vector<std::string> told(planned_step const& s) {
  std::vector<std::string> r;
  for (task const& t : s.program.tasks) {
    graph_node const& n = s.graph.graph.node(t.node);
    if (t.kind == task_kind::compute) {
      if (n.name.empty()) continue;
      r.push_back((is_update(n.op) ? "update " : "compute ") + n.name);
    } else if (t.step.kind == ir::reshard_kind::all_gather) {
      r.push_back("gather " + n.name);
    } else if (t.step.kind == ir::reshard_kind::reduce_scatter) {
      r.push_back("reduce " + n.name);
    }
  }
  return r;
}
std::size_t place_of(std::vector<std::string> const& all, std::string const& what) {
  auto const at = std::find(all.begin(), all.end(), what);
  REQUIRE_MESSAGE(at != all.end(), what);
  return static_cast<std::size_t>(at - all.begin());
}
double seconds_of(planned_step const& s) { return simulate(s.program, s.plan.cluster, cost::analytical{}).seconds; }

}  // namespace

TEST_CASE("a weight is gathered while those before it are computed with") {
  computation_graph const g = four_layers();
  std::string const names = "abcd";
  for (int ahead : {0, 1, 2, 3, 9}) {
    CAPTURE(ahead);
    std::vector<std::string> const all = told(step_of(g, in_parts(g, ahead)));
    for (int i = 0; i < 4; ++i) {
      std::size_t const gather = place_of(all, std::string("gather ") + names[static_cast<std::size_t>(i)]);
      for (int j = 0; j < i; ++j) {
        std::size_t const compute = place_of(all, std::string("compute ") + names[static_cast<std::size_t>(j)]);
        CHECK((gather < compute) == (j >= i - ahead));
      }
      CHECK(gather < place_of(all, std::string("compute ") + names[static_cast<std::size_t>(i)]));
    }
  }
}

TEST_CASE("a gradient is reduced when it is made; its update waits for as many later ones") {
  computation_graph const g = four_layers();
  std::string const made = "dcba";
  for (int ahead : {1, 2, 3, 9}) {
    CAPTURE(ahead);
    std::vector<std::string> const all = told(step_of(g, in_parts(g, ahead)));
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 4; ++j) {
        std::size_t const update = place_of(all, std::string("update ") + made[static_cast<std::size_t>(i)]),
                          reduce = place_of(all, std::string("reduce ") + made[static_cast<std::size_t>(j)]);
        CHECK((update > reduce) == (j <= i + ahead));
      }
  }
}

TEST_CASE("communication is hidden: the step takes as long as computing, but for its ends") {
  computation_graph const g = four_layers();
  double const apart = seconds_of(step_of(g, in_parts(g, 0))), ahead = seconds_of(step_of(g, in_parts(g, 1)));
  planned_step const s = step_of(g, in_parts(g, 1));
  timeline const t = simulate(s.program, s.plan.cluster, cost::analytical{});
  double computing = 0, communicating = 0;
  for (span const& x : t.spans)
    if (x.device == 0) (x.where == lane::compute ? computing : communicating) += x.end - x.start;
  CHECK(communicating > 0.1 * computing);
  CHECK(ahead < computing + 0.5 * communicating);
  CHECK(ahead < 0.95 * apart);
}

TEST_CASE("random plans and pipelines: the same tasks, a valid program, the same arenas device by device") {
  std::mt19937 draw(9);
  int moved = 0;
  for (int i = 0; i < test_effort::cases(90); ++i) {
    CAPTURE(i);
    computation_graph const g = i % 2 ? residual_mlp() : small_transformer();
    plan p = i % 3 == 2 ? random_pipeline(residual_mlp(), {.devices = 2 + i % 4}, 1, 4, draw) : random_plan(g, 4, draw);
    if (p.pipeline.empty()) {
      p.micro_batches = 1 + i % 2;
      if (i % 4) p.optimizer.clip_norm = 1;
      for (op_strategy& n : p.nodes) n = {n.sharding, static_cast<ir::zero_stage>(draw() % 4), draw() % 3 == 0};
    }
    computation_graph const& mine = p.pipeline.empty() ? g : residual_mlp();
    p.prefetch = 0;
    planned_step const before = step_of(mine, p);
    p.prefetch = 1 + i % 4;
    planned_step const after = step_of(mine, p);
    std::vector<std::string> a, b;
    for (task const& t : before.program.tasks) a.push_back(t.name);
    for (task const& t : after.program.tasks) b.push_back(t.name);
    moved += a != b;
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    CHECK(a == b);
    std::vector<finding> const found = check(after.graph, after.plan, after.program);
    CHECK_MESSAGE(found.empty(), (found.empty() ? "" : found.front().text));
    if (p.pipeline.empty())
      for (int d = 0; d < p.cluster.size(); ++d) {
        CHECK(arena_on(d, after.graph, after.plan) == after.program.arena[static_cast<std::size_t>(d)]);
        std::vector<int> whole, own;
        program const one = unroll(after.graph, after.plan, {.device = d});
        for (task const& t : after.program.tasks)
          if (std::binary_search(t.devices.begin(), t.devices.end(), d)) whole.push_back(t.node);
        for (task const& t : one.tasks) if (!t.devices.empty()) own.push_back(t.node);
        CHECK(whole == own);
      }
  }
  CHECK(moved > test_effort::cases(30));
}

TEST_CASE("no plan starts collectives behind the operators that wait for them") {
  computation_graph const g = four_layers();
  CHECK_THROWS_WITH_AS(step_of(g, in_parts(g, -1)), doctest::Contains("prefetch is -1"), error);
}
