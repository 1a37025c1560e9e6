// tests/search/intra/program_order.test.cpp - greedy orders: valid, never slower, the same every time, and only where operators stand apart
#include <tensorpar/search/intra/program_order.hpp>

#include <doctest/doctest.h>

#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/evidence/certificate.hpp>
#include <tensorpar/zoo/registry.hpp>

#include "support/effort.hpp"
#include "support/search_once.hpp"
#include "support/small_graphs.hpp"

using namespace tests;
using namespace tensorpar::search;

namespace {

double simulated(computation_graph const& g, plan const& p) {
  planned_step const s = passes::memory_pass(differentiate(g, training_of(p)), p);
  return simulate(unroll(s.graph, s.plan), p.cluster, tensorpar::cost::analytical{}).seconds;
}
/// A tower after the other, but the last one on a device of its own.
plan apart(computation_graph const& g, int towers) {
  plan p = serial_plan(g);
  p.cluster = preset("logical:2");
  std::string const last = std::to_string(towers - 1);
  for (int v = 0; v < g.node_count(); ++v)
    if (std::string const& name = g.node(v).name; name == "in" + last || name == "act" + last || name == "out" + last)
      p.nodes[static_cast<std::size_t>(v)].sharding.start = 1;
  return p;
}

}  // namespace

TEST_CASE("list schedules: every operator behind what it waits for, whoever is ready first goes on, the longer way before the shorter") {
  // 0 -> 1 -> 3 and 0 -> 2 -> 3, and 4 by itself, which takes long
  search::detail::operator_pass pass{{1, 1, 3, 1, 9}, {{}, {{0, 0.0}}, {{0, 0.0}}, {{1, 0.0}, {2, 0.0}}, {}}};
  std::vector<int> const numbers{0, 1, 2, 3, 4};
  CHECK(search::detail::list_schedule(pass, numbers, {{0}, {0}, {0}, {0}, {0}}, 1) == std::vector<int>{4, 0, 2, 1, 3});
  CHECK(search::detail::list_schedule(pass, numbers, {{0}, {0}, {1}, {0}, {1}}, 2) == std::vector<int>{4, 0, 1, 2, 3});
  pass.after[1][0] = 5;                                       // on its way while 2 runs
  CHECK(search::detail::list_schedule(pass, numbers, {{0}, {0}, {0}, {0}, {1}}, 2) == std::vector<int>{4, 0, 2, 1, 3});
  std::mt19937 draw(1);
  computation_graph const g = towers(6);
  for (int trial = 0; trial < 50; ++trial) {
    plan const p = random_plan(g, 4, draw);
    training_graph const t = differentiate(g);
    program const q = unroll(t, p);
    search::detail::step_passes const passes(t, q, p.cluster, tensorpar::simulation::price(q, p.cluster, tensorpar::cost::analytical{}));
    search::detail::operator_places const places(p);
    for (std::vector<int> const& lanes : places.lanes) CHECK((!lanes.empty() && lanes.back() < places.count));
    std::vector<int> sorted = random_order(g, draw);
    CHECK_FALSE(fault_of_order(g, search::detail::list_schedule(passes.forward, sorted, places.lanes, places.count), g.node_count()));
    std::reverse(sorted.begin(), sorted.end());
    std::vector<int> back = search::detail::list_schedule(passes.backward, sorted, places.lanes, places.count);
    std::reverse(back.begin(), back.end());
    CHECK_FALSE(fault_of_order(g, back, g.node_count()));
  }
}

TEST_CASE("lanes: devices that always work together share one") {
  plan p = serial_plan(towers(2));
  p.cluster = preset("logical:8");
  p.nodes.resize(3);
  p.nodes[0].sharding = {0, {{'\0', 8, 1}}};
  p.nodes[1].sharding = {0, {{'\0', 4, 1}}};
  p.nodes[2].sharding = {4, {{'\0', 2, 1}}};
  search::detail::operator_places const places(p);
  CHECK(places.count == 3);
  CHECK(places.lanes == std::vector<std::vector<int>>{{0, 1, 2}, {0}, {1}});
  CHECK_FALSE(search::detail::all_together(p));
  for (op_strategy& n : p.nodes) n.sharding = {4, {{'\0', 2, 1}}};
  CHECK(search::detail::all_together(p));                             // on a part of the machine, but together
  p.nodes[2].sharding.start = 5;
  CHECK_FALSE(search::detail::all_together(p));
}

TEST_CASE("greedy orders: a tower elsewhere does not wait for those before it") {
  computation_graph const g = towers(6);
  plan const p = apart(g, 6);
  plan const q = ordered(g, p, tensorpar::cost::analytical{});
  REQUIRE_FALSE(q.node_order.empty());
  CHECK_FALSE(fault_of_order(g, q.node_order, g.node_count()));
  CHECK(q.step_seconds == doctest::Approx(simulated(g, q)));
  CHECK(q.step_seconds < simulated(g, p) * 0.99);
  plan sealed = q;
  seal(g, sealed);
  CHECK(sealed.peak_bytes == q.peak_bytes);
  CHECK(check_certificate(g, sealed).empty());
  CHECK(ordered(g, q, tensorpar::cost::analytical{}) == q);                    // what it said of an order before does not count
}

TEST_CASE("greedy orders: none where all run together, where nothing is gained, where it takes too much memory, of a pipeline") {
  computation_graph const g = towers(6);
  plan p = serial_plan(g);
  p.cluster = preset("logical:2");
  CHECK(ordered(g, p, tensorpar::cost::analytical{}) == p);
  training_graph const t = differentiate(g);
  CHECK(greedy_order(t, p, tensorpar::cost::analytical{}).by_number == 0);     // nothing was tried
  p = apart(g, 6);
  program_order const some = greedy_order(t, p, tensorpar::cost::analytical{});
  REQUIRE_FALSE(some.order.empty());
  double const gain = 1 - some.seconds / some.by_number;
  CHECK(greedy_order(t, p, tensorpar::cost::analytical{}, gain * 1.01).order.empty());
  CHECK_FALSE(greedy_order(t, p, tensorpar::cost::analytical{}, gain * 0.99).order.empty());
  i64 const most = *std::max_element(some.bytes.begin(), some.bytes.end());
  p.cluster.kinds[0].memory = most;
  CHECK(greedy_order(t, p, tensorpar::cost::analytical{}).order == some.order);
  p.cluster.kinds[0].memory = 1;
  CHECK(greedy_order(t, p, tensorpar::cost::analytical{}).order.empty());
  p.pipeline.stages.emplace_back();
  CHECK_THROWS_WITH_AS(ordered(g, p, tensorpar::cost::analytical{}), doctest::Contains("the plan has a pipeline"), error);
}

TEST_CASE("greedy orders of random plans are valid, fit and are faster than numbers, or there is none") {
  std::mt19937 draw(2);
  int found = 0;
  for (int trial = 0; trial < test_effort::cases(60); ++trial) {
    computation_graph const g = trial % 3 ? towers(3 + trial % 5) : small_transformer();
    plan p = random_plan(g, 2 + trial % 5, draw);
    p.micro_batches = 1 + trial % 2;
    for (op_strategy& n : p.nodes) n.recompute = trial % 4 == 0 && draw() % 2;
    plan q = ordered(g, p, tensorpar::cost::analytical{});
    if (q.node_order.empty()) { CHECK(q == p); continue; }
    ++found;
    CHECK_FALSE(fault_of_order(g, q.node_order, g.node_count()));
    CHECK(simulated(g, q) < simulated(g, p) * 0.99);
    seal(g, q);
    CHECK(check_certificate(g, q).empty());
  }
  CHECK((found > 5 || test_effort::slow));
}

TEST_CASE("searches order the operators of wide nets, by any number of threads the same; without, plans are what they were") {
  computation_graph const g = zoo::make_reduced("nasnet_a", 12);
  machine const on = preset("logical:3");
  search_options o;
  o.compare = false;
  o.threads = 1;
  search_result const one = optimize(g, on, tensorpar::cost::analytical{}, o);
  o.threads = 3;
  search_result const three = optimize(g, on, tensorpar::cost::analytical{}, o);
  CHECK(one.plan == three.plan);
  REQUIRE_FALSE(one.plan.node_order.empty());
  o.reorder = false;
  search_result const plain = optimize(g, on, tensorpar::cost::analytical{}, o);
  CHECK(plain.plan.node_order.empty());
  CHECK(plain.plan.nodes == one.plan.nodes);
  CHECK(plain.cost.seconds == one.cost.seconds);
  CHECK(simulated(g, one.plan) < simulated(g, plain.plan) * 0.85);
  for (int d = 0; d < on.size(); ++d) CHECK(one.cost.bytes[static_cast<std::size_t>(d)] <= on.kind_of(d).memory);
  plan sealed = one.plan;
  seal(g, sealed);
  CHECK(sealed.peak_bytes == one.cost.bytes);
  CHECK(check_certificate(g, sealed).empty());
}
