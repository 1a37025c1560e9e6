// tests/search/activations.test.cpp - functions computed with their operators where the shardings allow it: decided with these (figure 16a)
#include <tensorpar/search/problem/activation_sites.hpp>
#include <doctest/doctest.h>

#include <random>
#include <support/effort.hpp>
#include <support/search_once.hpp>
#include <support/spine.hpp>
#include <tensorpar/check/check.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/joint/joint.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

namespace {

std::size_t at(int i) { return static_cast<std::size_t>(i); }

/// Seconds of a plan's own graph under its own choices, all in sequence.
double priced_again(joint_result const& r, machine const& on, search_options const& o) {
  objective_options with{on.size(), o.scalar_bytes, o.micro_batches, o.save_memory};
  training_graph const t = differentiate(r.graph, {o.loss, o.optimizer, o.micro_batches});
  mapping_problem const p = make_problem(t, on, cost::analytical{}, r.space.shardings, with);
  assignment a;
  for (int v = 0; v < p.operators(); ++v) {
    choice_set const& s = p.choices(v);
    int found = -1;
    for (int i = 0; i < s.count(); ++i) if (s.shardings[at(i)] == r.plan.nodes[at(v)].sharding) found = i;
    REQUIRE(found >= 0);
    a.push_back(found);
  }
  return evaluator(p)(a).seconds;
}
/// Linear operators whose sums are made in parts, and functions that come right behind one.
int split_sums(joint_result const& r) {
  int n = 0;
  for (int v = 0; v < r.graph.node_count(); ++v) {
    graph_node const& f = r.graph.node(v);
    if (!f.op.is<relu>()) continue;
    int const before = r.graph.value(f.in[0]).producer;
    if (before < 0 || !r.graph.node(before).op.is<linear>()) continue;
    bool reduced = false;
    for (ir::mesh_axis const& x : r.plan.nodes[at(before)].sharding.axes) reduced = reduced || (x.letter == 'i' && x.degree > 1);
    n += reduced;
  }
  return n;
}
int activated_nodes(computation_graph const& g) {
  int n = 0;
  for (graph_node const& v : g.nodes) n += v.op.op->first != nullptr;
  return n;
}

}  // namespace

TEST_CASE("figure 16a in a plan that is found: where sums are made in parts their function stands apart, which algebra first does not see") {
  computation_graph const g = zoo::make("candle_uno", 64 * 12);
  machine const on = preset("summit:2");
  joint_options o;
  o.search.compare = false;
  o.search.fewer_devices = false;                        // the figure is about all twelve
  joint_result const both = optimize_jointly(g, on, cost::analytical{}, o),
      one = optimize_one_after_the_other(g, on, cost::analytical{}, o);
  REQUIRE(both.feasible());
  REQUIRE(one.feasible());
  CHECK(split_sums(both) > 0);
  CHECK(activated_nodes(both.graph) > 20);
  CHECK(split_sums(one) == 0);                           // every function went into its operator before shardings were asked for
  CHECK(activated_nodes(one.graph) == 44);
  CHECK(one.cost.seconds > 1.01 * both.cost.seconds);
  CHECK(check(differentiate(both.graph, {o.search.loss, o.search.optimizer, 1}), both.plan).empty());
}

TEST_CASE("the cost of a plan is that of its own graph") {
  int joined = 0;
  for (char const* name : {"mlp_unify", "candle_uno", "dlrm", "vgg19", "inception_v3_artifact", "resnext50_artifact"})
    for (char const* cluster : {"logical:2", "summit:1"}) {
      CAPTURE(name);
      CAPTURE(cluster);
      computation_graph const g = zoo::make_reduced(name, 24);
      machine const on = preset(cluster);
      joint_options o;
      o.search.compare = false;
      o.search.grain = on.size();
      joint_result const r = optimize_jointly(g, on, cost::analytical{}, o);
      REQUIRE(r.feasible());
      CHECK(priced_again(r, on, o.search) == doctest::Approx(r.cost.seconds).epsilon(1e-9));
      CHECK(passes::rewritten(g, r.plan).hash() == r.plan.graph);
      joined += activated_nodes(r.graph);
    }
  CHECK(joined > 50);
}

TEST_CASE("a cost model that has nothing to gain from it keeps functions apart") {
  /// Whatever does two things at once is slow.
  struct reluctant {
    cost::analytical rest;
    double seconds(cost::compute_query const& q) const { return q.op.op->first ? 10 * rest.seconds(q) : rest.seconds(q); }
    double seconds(cost::reshard_query const& q) const { return rest.seconds(q); }
  };
  computation_graph const g = zoo::make_reduced("mlp_unify", 24);
  joint_result const r = optimize_jointly(g, preset("logical:2"), reluctant{});
  REQUIRE(r.feasible());
  CHECK(activated_nodes(r.graph) == 0);
}

TEST_CASE("where memory is short, and with strategies that are no plan of the space, the plan is whole") {
  computation_graph const g = zoo::make_reduced("candle_uno", 24);
  machine on = preset("logical:4");
  joint_options o;
  joint_result const roomy = optimize_jointly(g, on, cost::analytical{}, o);
  REQUIRE(roomy.feasible());
  i64 const most = *std::max_element(roomy.cost.bytes.begin(), roomy.cost.bytes.end());
  int fitting = 0;
  for (int tenths = 10; tenths > 3; --tenths) {
    on.kinds[0].memory = most * tenths / 10;
    joint_result const r = optimize_jointly(g, on, cost::analytical{}, o);
    if (!r.feasible()) continue;
    ++fitting;
    CHECK(r.cost.seconds >= roomy.bound * (1 - 1e-9));
    CHECK(passes::rewritten(g, r.plan).hash() == r.plan.graph);
    for (i64 b : r.cost.bytes) CHECK(b <= on.kinds[0].memory);
  }
  CHECK(fitting > 1);
}

TEST_CASE("plans with functions in operators train as the declared graph does") {
  int joined = 0;
  for (char const* name : {"mlp_unify", "candle_uno", "inception_v3_artifact", "vgg19"}) {
    CAPTURE(name);
    computation_graph const g = zoo::make_reduced(name, 4);
    joint_result const r = optimize_jointly(g, preset("logical:2"), cost::analytical{});
    REQUIRE(r.feasible());
    joined += activated_nodes(r.graph);
    tests::executor_of<prime_field> a(differentiate(g), tests::serial_plan(g)), b(differentiate(passes::rewritten(g, r.plan)), r.plan);
    CHECK(tests::train(a, 2) == tests::train(b, 2));
    tests::executor_of<double> c(differentiate(g), tests::serial_plan(g)), d(differentiate(passes::rewritten(g, r.plan)), r.plan);
    CHECK(tests::distance(tests::train(c, 2), tests::train(d, 2)) < 1e-9);
  }
  CHECK(joined > 20);
}
