// tests/search/joint/joint.test.cpp - rules and shardings together: as good as trying everything, and plans that train
#include <tensorpar/search/joint/develop.hpp>
#include <tensorpar/search/joint/joint.hpp>

#include "all_graphs.hpp"

#include <doctest/doctest.h>

#include <random>
#include <support/effort.hpp>
#include <support/search_once.hpp>
#include <support/spine.hpp>
#include <tensorpar/check/check.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::search_test;

namespace {

/// At most five operators, the loss included, that rules have something to say about.
computation_graph drawn(std::mt19937& draw) {
  computation_graph g;
  auto const below = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
  auto const put = [&](op::any_op const& o, std::vector<value_id> in) { return g.node(g.add(o, std::move(in))).out[0]; };
  i64 const rows = 4 << below(4);
  std::vector<int> values{g.add_input("x", {dim(rows), 8}), g.add_parameter("p", {dim(rows), 8}, op::init::ones)}, weights;
  for (int i = 0; i < 3; ++i) weights.push_back(g.add_parameter("w" + std::to_string(i), {8, 8}, op::init::fan_in));
  int last = values[1];
  std::vector<char> read(1, 1);
  int const n = 2 + below(3);
  for (int k = 0; k < n; ++k) {
    int const a = below(4) ? last : values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
    int const b = values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
    int const kind = below(6);
    last = kind < 2    ? put(linear{8, false}, {a, weights[static_cast<std::size_t>(below(3))]})
           : kind == 2 ? put(add{}, {a, b})
           : kind == 3 ? put(relu{}, {a})
           : kind == 4 ? put(mul{}, {a, b})
                       : put(scale{0.5}, {a});
    values.push_back(last);
  }
  g.add_output("loss", put(mean_squared_error{}, {last, g.add_input("y", {dim(rows), 8})}));
  return needed(g);
}
machine cluster(int devices, std::mt19937& draw) {
  double const speed = 1e9 * (1 + static_cast<double>(draw() % 100)), link = 1e7 * (1 + static_cast<double>(draw() % 1000));
  return make_cluster("random", {"device", speed, speed / 2, i64{1} << 30, 1e-7}, devices, devices == 4 && draw() % 2 ? 2 : devices,
                      {"link", devices, 1e-7, link}, {"outer", devices, 1e-6, link / 4});
}
bool learns_as(computation_graph const& declared, plan const& p, int steps) {
  computation_graph const run = passes::rewritten(declared, p);
  tests::executor_of<prime_field> a(differentiate(declared), tests::serial_plan(declared)), b(differentiate(run), p);
  bool const exact = tests::train(a, steps) == tests::train(b, steps);
  tests::executor_of<double> c(differentiate(declared), tests::serial_plan(declared)), d(differentiate(run), p);
  return exact && tests::distance(tests::train(c, steps), tests::train(d, steps)) < 1e-9;
}

}  // namespace

TEST_CASE("as good as every graph that all shipped rules lead to, under every sharding: small instances, no threshold") {
  std::mt19937 draw(11);
  int better = 0, graphs = 0;
  cost::analytical const model;
  int const cases = test_effort::cases(test_effort::slow ? 160 : 500);
  for (int turn = 0; turn < cases; ++turn) {
    computation_graph const g = drawn(draw);
    machine const on = cluster(1 + turn % 4, draw);
    joint_options o;
    o.search.compare = false;
    o.search.grain = on.size();                               // side by side: see below
    o.rewriting.alpha = infinity;
    o.rewriting.priced = 1 << 20;
    o.rewriting.growth = 1;
    o.split = false;
    joint_result const r = optimize_jointly(g, on, model, o);
    REQUIRE(r.feasible());
    CHECK(r.rewriting.exhausted);
    std::vector<computation_graph> const all = all_graphs(g, substitution_rules(), 1);
    double least = infinity, before = infinity;
    for (computation_graph const& c : all) {
      search_result const x = optimize(c, on, model, o.search);
      REQUIRE(x.feasible());
      CHECK(x.gap < 1e-9);
      least = std::min(least, x.cost.seconds);
      if (&c == &all.front()) before = x.cost.seconds;
    }
    graphs += static_cast<int>(all.size());
    CHECK(r.cost.seconds == doctest::Approx(least).epsilon(1e-9));
    CHECK(r.rewriting.bound <= least * (1 + 1e-9));
    CHECK(r.rewriting.bound >= least * (1 - 1e-6));
    CHECK(r.gap < 1e-6);
    better += r.cost.seconds < before * (1 - 1e-6);
  }
  CHECK(better > cases / 10);
  CHECK(graphs > 3 * cases);
}

TEST_CASE("side by side too no graph is below the bound, and the best one is found mostly") {
  std::mt19937 draw(15);
  cost::analytical const model;
  int found = 0, beside = 0;
  int const cases = test_effort::cases(60);
  for (int turn = 0; turn < cases; ++turn) {
    computation_graph const g = drawn(draw);
    machine const on = cluster(2 + turn % 3, draw);
    joint_options o;
    o.search.compare = false;
    o.rewriting.alpha = infinity;
    o.rewriting.priced = 1 << 20;
    o.rewriting.growth = 1;
    joint_result const r = optimize_jointly(g, on, model, o);
    double least = infinity;
    for (computation_graph const& c : all_graphs(g, substitution_rules(), 1)) {
      search_result const x = optimize(c, on, model, o.search);
      CHECK(x.gap < 1e-9);
      if (x.cost.seconds >= least) continue;
      least = x.cost.seconds;
      for (op_strategy const& n : x.plan.nodes) if (n.sharding.start) { ++beside; break; }
    }
    CHECK(r.rewriting.bound <= least * (1 + 1e-9));
    CHECK(r.cost.seconds >= least * (1 - 1e-9));
    found += r.cost.seconds <= least * (1 + 1e-9);
  }
  CHECK(found > cases * 3 / 4);
  CHECK((beside > 0 || cases < 60));
}

TEST_CASE("never worse than shardings alone; bounds hold; threshold and budget change no plan's validity") {
  std::mt19937 draw(12);
  cost::analytical const model;
  for (int turn = 0; turn < test_effort::cases(20); ++turn) {
    computation_graph const g = drawn(draw);
    machine const on = cluster(1 + turn % 4, draw);
    search_result const plain = optimize(g, on, model);
    double best = infinity;
    std::vector<joint_result> all;
    for (double alpha : {1.0, 1.05, 2.0})
      for (int budget : {1, 5, 100}) {
        joint_options o;
        o.rewriting.alpha = alpha;
        o.rewriting.priced = budget;
        o.min_part = 1 + turn % 3;
        all.push_back(optimize_jointly(g, on, model, o));
        joint_result const& r = all.back();
        REQUIRE(r.feasible());
        CHECK(r.cost.seconds <= plain.cost.seconds * (1 + 1e-12));
        CHECK(r.rewriting.bound <= r.cost.seconds * (1 + 1e-9));
        CHECK(r.bound <= r.cost.seconds);
        CHECK(passes::rewritten(g, r.plan).hash() == r.graph.hash());
        CHECK(r.plan.graph == r.graph.hash());
        best = std::min(best, r.cost.seconds);
      }
    joint_options o;
    o.rewriting.alpha = infinity;
    o.rewriting.priced = 1 << 20;
    joint_result const whole = optimize_jointly(g, on, model, o);
    CHECK(whole.rewriting.exhausted);
    CHECK(whole.bound <= best * (1 + 1e-9));
  }
}

TEST_CASE("whoever watches may end the search at any graph: the result is valid, and no better than with more") {
  struct counter final : joint_watch {
    int most, asked = 0, last = 0;
    explicit counter(int n) : most(n) {}
    bool go_on(joint_progress const& p) override {
      CHECK(p.candidates >= last);
      CHECK(p.part < p.parts);
      CHECK(p.least > 0);
      last = p.candidates;
      return ++asked <= most;
    }
  };
  computation_graph const g = zoo::make_reduced("bert_artifact", 24);
  joint_options o;
  joint_result const all = optimize_jointly(g, preset("logical:2"), cost::analytical{}, o);
  double before = infinity;
  for (int most : {0, 1, 5, 1000000}) {
    counter c(most);
    o.watch = &c;
    joint_result const r = optimize_jointly(g, preset("logical:2"), cost::analytical{}, o);
    REQUIRE(r.feasible());
    CHECK(r.cost.seconds <= before * (1 + 1e-12));
    CHECK(r.rewriting.exhausted == (c.asked <= most));
    CHECK(passes::rewritten(g, r.plan).hash() == r.plan.graph);
    before = r.cost.seconds;
    if (most == 1000000) CHECK(r.plan == all.plan);
  }
}

TEST_CASE("the same plan every time, and the steps are the plan's") {
  std::mt19937 draw(13);
  for (int turn = 0; turn < 10; ++turn) {
    computation_graph const g = drawn(draw);
    machine const on = preset("logical:4");
    joint_result const a = optimize_jointly(g, on, cost::analytical{}), b = optimize_jointly(g, on, cost::analytical{});
    CHECK(a.plan == b.plan);
    CHECK(a.rewriting.steps == static_cast<int>(a.plan.rewrites.size()));
  }
}

TEST_CASE("nothing remembered: the same plan from more work") {
  machine const on = preset("summit:1");
  for (char const* name : {"dlrm", "bert_artifact"}) {
    CAPTURE(name);
    computation_graph const g = zoo::make_reduced(name, 24);
    joint_options o;
    joint_result const a = optimize_jointly(g, on, cost::analytical{}, o);
    o.remember = false;
    joint_result const b = optimize_jointly(g, on, cost::analytical{}, o);
    CHECK(a.plan.nodes == b.plan.nodes);
    CHECK(a.plan.rewrites == b.plan.rewrites);
    CHECK(a.cost == b.cost);
    CHECK(b.rewriting.kinds == b.rewriting.parts);
    CHECK(b.rewriting.candidates >= a.rewriting.candidates);
    CHECK(b.rewriting.tables > a.rewriting.tables);
  }
}

TEST_CASE("plans of small models with rewrites train as the declared graph does, in the field and in double") {
  int rewrites = 0;
  for (char const* name : {"bert_artifact", "mlp_unify", "xdl", "dlrm", "candle_uno", "split_test"})
    for (int devices : {2, 4}) {
      CAPTURE(name);
      CAPTURE(devices);
      computation_graph const g = zoo::make_reduced(name, 24);
      joint_options o;
      o.search.compare = false;
      joint_result const r = optimize_jointly(g, preset("logical:" + std::to_string(devices)), cost::analytical{}, o);
      REQUIRE(r.feasible());
      rewrites += r.rewriting.steps;
      CHECK(learns_as(g, r.plan, 2));
    }
  CHECK(rewrites > 0);
}

TEST_CASE("a chain of two products becomes one where samples are many: the product of the weights is made once") {
  computation_graph g;
  int x = g.add_input("x", {4096, 64});
  for (int k = 0; k < 2; ++k) x = g.node(g.add_with_weights(linear{64, false}, {x}, "n" + std::to_string(k))).out[0];
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {x, g.add_input("y", {4096, 64})})).out[0]);
  joint_result const r = optimize_jointly(g, preset("logical:2"), cost::analytical{});
  REQUIRE(r.plan.rewrites.size() == 1);
  CHECK(rewrite::spell(*passes::standard_rule(r.plan.rewrites[0].rule)).find("linear(linear(x, y), z) => linear(x, matmul") != std::string::npos);
  CHECK(learns_as(g, r.plan, 3));
}

TEST_CASE("bad input is refused as by optimize") {
  computation_graph const g = zoo::make_reduced("xdl", 24);
  CHECK_THROWS_AS(optimize_jointly(g, machine{}, cost::analytical{}), error);
  joint_options o;
  o.search.loss = "nothing";
  CHECK_THROWS_WITH(optimize_jointly(g, preset("logical:2"), cost::analytical{}, o), doctest::Contains("nothing"));
  o = {};
  o.rewriting.alpha = 0.5;
  CHECK_THROWS_WITH(optimize_jointly(g, preset("logical:2"), cost::analytical{}, o), doctest::Contains("alpha"));
  o = {};
  o.rewriting.priced = 0;
  CHECK_THROWS_WITH(optimize_jointly(g, preset("logical:2"), cost::analytical{}, o), doctest::Contains("budget"));
  o = {};
  o.search.order = {{0, 1}};
  CHECK_THROWS_WITH(optimize_jointly(g, preset("logical:2"), cost::analytical{}, o), doctest::Contains("order"));
  search_options p;
  p.order = {{0, 1000}};
  CHECK_THROWS_WITH(optimize(g, preset("logical:2"), cost::analytical{}, p), doctest::Contains("1000"));
}

TEST_CASE("what follows a loss is in the last part, and outputs where a network is cut stay") {
  computation_graph g;
  auto const put = [&](op::any_op const& o,
      std::vector<value_id> in) { return g.node(g.add_with_weights(o, std::move(in), "n" + std::to_string(g.node_count()))).out[0]; };
  int x = g.add_input("x", {8, 8});
  for (int k = 0; k < 4; ++k) {
    x = put(linear{8, false}, {x});
    g.add_output("logits" + std::to_string(k), x);
  }
  int const loss = put(mean_squared_error{}, {x, g.add_input("y", {8, 8})});
  g.add_output("loss", loss);
  g.add_output("scaled", put(scale{2}, {put(scale{3}, {loss})}));
  joint_options o;
  o.min_part = 1;
  o.rewriting.alpha = 4;
  joint_result const r = optimize_jointly(g, preset("logical:2"), cost::analytical{}, o);
  REQUIRE(r.feasible());
  CHECK(r.graph.outputs.size() == g.outputs.size());
  CHECK(passes::rewritten(g, r.plan).hash() == r.graph.hash());
}

TEST_CASE("one after the other is what it says: the graph that is best on one device, and never better than both together in sequence") {
  std::mt19937 draw(14);
  cost::analytical const model;
  int worse = 0;
  int const cases = test_effort::cases(40);
  for (int turn = 0; turn < cases; ++turn) {
    computation_graph const g = drawn(draw);
    machine const on = cluster(2 + turn % 3, draw);
    joint_options o;
    o.search.grain = on.size();
    o.rewriting.alpha = infinity;
    o.rewriting.growth = 1;
    o.rewriting.priced = 1 << 20;
    joint_result const both = optimize_jointly(g, on, model, o), one = optimize_one_after_the_other(g, on, model, o);
    REQUIRE(both.feasible());
    REQUIRE(one.feasible());
    CHECK(both.cost.seconds <= one.cost.seconds * (1 + 1e-9));
    CHECK(passes::rewritten(g, one.plan).hash() == one.graph.hash());
    worse += one.cost.seconds > both.cost.seconds * (1 + 1e-6);
  }
  CHECK((worse > 0 || cases < 40));
}
