// tests/search/intra/optimize.test.cpp - from graphs to plans
#include <doctest/doctest.h>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/program/passes/memory_pass.hpp>
#include <tensorpar/program/unroll.hpp>
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/search/intra/optimize.hpp>
#include <tensorpar/search/intra/search_options.hpp>
#include <tensorpar/peers/strategies.hpp>
#include <tensorpar/search/intra/sharding_knobs.hpp>
#include <tensorpar/simulate/engine.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::peers;

namespace {

value_id apply(computation_graph& g, op::any_op const& o, std::vector<value_id> in, std::string name = {}) {
  return g.node(g.add_with_weights(o, std::move(in), std::move(name))).out[0];
}

computation_graph mlp(i64 batch = 64) {
  computation_graph g;
  int x = g.add_input("x", shape{dim(batch), dim(64)});
  int const y = g.add_input("y", shape({dim(batch)}, dtype::i32));
  x = apply(g, relu{}, {apply(g, linear{512}, {x}, "fc1")});
  x = apply(g, relu{}, {apply(g, linear{512}, {x}, "fc2")});
  g.add_output("loss", apply(g, cross_entropy{}, {apply(g, linear{10}, {x}, "fc3"), y}));
  return g;
}
/// Two towers on one input, then their sum: branches that may run side by side.
computation_graph towers(i64 width) {
  computation_graph g;
  int const x = g.add_input("x", shape{dim(32), dim(width)});
  int ends[2];
  for (int& e : ends) e = apply(g, linear{width}, {apply(g, relu{}, {apply(g, linear{width}, {apply(g, relu{}, {x})})})});
  g.add_output("loss", apply(g, mean_squared_error{}, {apply(g, add{}, {ends[0], ends[1]}), x}));
  return g;
}
/// a -> c, a -> d, b -> d: not series-parallel.
computation_graph letter_n() {
  computation_graph g;
  int const x = g.add_input("x", shape{dim(8), dim(8)});
  int const a = apply(g, linear{8}, {x}, "a"), b = apply(g, linear{8}, {x}, "b");
  int const c = apply(g, relu{}, {a}, "c"), d = apply(g, add{}, {a, b}, "d");
  int const e = apply(g, mul{}, {d, b}, "e");
  g.add_output("loss", apply(g, mean_squared_error{}, {c, e}, "loss"));
  return g;
}
machine devices(int n, int per_node, double slow = 1e9, i64 memory = i64{1} << 32) {
  return make_cluster("test", {"d", 2e10, 1e10, memory, 2e-6}, n, per_node, {"in", per_node, 2e-6, 5e9}, {"out", n, 5e-5, slow});
}

}  // namespace

TEST_CASE("search: optimize gives plans that unroll, on any number of devices") {
  cost::analytical const model;
  double before = infinity;
  for (auto const& [n, per_node] : {std::pair{1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}, {6, 6}, {8, 8}, {12, 4}}) {
    machine const on = devices(n, per_node);
    search_result const r = optimize(mlp(), on, model);
    REQUIRE(r.feasible());
    CHECK(r.gap == 0);
    CHECK(r.bound == r.cost.seconds);
    CHECK(r.plan.cost == r.cost.seconds);
    CHECK(r.plan.bound == r.bound);
    CHECK(r.plan.graph == mlp().hash());
    CHECK(r.plan.cluster == on);
    CHECK_FALSE(r.space.relaxed);
    REQUIRE(r.baselines.size() == 3);
    for (baseline const& b : r.baselines) CHECK(b.cost.seconds >= r.cost.seconds);
    if (n <= 8) CHECK(r.cost.seconds <= before * (1 + 1e-12));
    before = n <= 8 ? r.cost.seconds : before;
    planned_step const step = passes::memory_pass(differentiate(mlp()), r.plan);
    program const p = unroll(step.graph, step.plan);
    CHECK_FALSE(p.tasks.empty());
    CHECK(optimize(mlp(), on, model).plan == r.plan);
    CHECK(optimize(mlp(), on, model).plan.hash() == r.plan.hash());
  }
}

TEST_CASE("search: slow links between nodes change the plan") {
  cost::analytical const model;
  search_result const fast = optimize(mlp(), devices(4, 4), model), slow = optimize(mlp(), devices(4, 2, 1e6), model);
  CHECK(slow.cost.seconds > fast.cost.seconds);
  CHECK(fast.plan.nodes != slow.plan.nodes);
  for (op_strategy const& n : slow.plan.nodes) CHECK(n.sharding.size() <= 2);          // one node is faster than both
}

TEST_CASE("search: baselines are what their names say") {
  training_graph const t = differentiate(mlp());
  cost::analytical const model;
  machine const on = devices(4, 4);
  mapping_problem const p = make_problem(t, on, model);
  CHECK(batch_loops(t.graph, p.operators()) == "000000");
  for (op_strategy const& n : op_strategies(p, single_device(p))) CHECK(n.sharding == ir::sharding{0, {}});
  for (op_strategy const& n : op_strategies(p, data_parallel(p, batch_loops(t.graph, p.operators()))))
    CHECK(n.sharding == ir::sharding{0, {{'0', 4, 1}}});
  auto const tensor = op_strategies(p, tensor_parallel(p, batch_loops(t.graph, p.operators())));
  for (op_strategy const& n : tensor) for (ir::mesh_axis const& a : n.sharding.axes) CHECK(a.letter != '0');
  CHECK(tensor[0].sharding.axes[0].letter == 'o');       // fc1 by outputs, relu by features
  CHECK(tensor[1].sharding.axes[0].letter == '1');
  CHECK(assignment_of(p, tensor) == tensor_parallel(p, batch_loops(t.graph, p.operators())));
  CHECK_FALSE(assignment_of(p, {}));
  std::vector<op_strategy> strange = tensor;
  strange[0].sharding.start = 3;
  CHECK_FALSE(assignment_of(p, strange));
  // 3 devices do not divide a batch of 64: two of them work
  mapping_problem const three = make_problem(t, devices(3, 3), model);
  for (op_strategy const& n : op_strategies(three, data_parallel(three, "000000"))) CHECK(n.sharding == ir::sharding{0, {{'0', 2, 1}}});
  // a batch that is summed away: what follows runs everywhere alike
  computation_graph g;
  int const x = g.add_input("x", shape{dim(4), dim(6)});
  int const s = apply(g, contraction("be->e"), {x});
  g.add_output("y", apply(g, relu{}, {s}));
  CHECK(batch_loops(g, 2) == std::string("b\0", 2));
}

TEST_CASE("search: memory is a hard constraint, and a shortage says where and how much") {
  cost::analytical const model;
  machine on = devices(4, 4);
  search_result const free = optimize(mlp(), on, model);
  i64 peak = 0;
  for (i64 b : free.cost.bytes) peak = std::max(peak, b);
  bool found_tight = false, found_none = false, none_proven = false;
  for (int percent : {99, 92, 85, 78, 71, 64, 57, 50, 43, 36, 29, 22, 15, 8, 1}) {
    on.kinds[0].memory = peak * percent / 100;
    search_result const r = optimize(mlp(), on, model);
    if (r.feasible()) {
      found_tight = true;
      for (i64 b : r.cost.bytes) CHECK(b <= on.kinds[0].memory);
      CHECK(r.cost.seconds >= free.cost.seconds);
      CHECK(r.bound <= r.cost.seconds);
      continue;
    }
    found_none = true;
    none_proven = none_proven || r.infeasible->proven;
    CHECK(r.infeasible->device >= 0);
    CHECK(r.infeasible->capacity == on.kinds[0].memory);
    CHECK(r.infeasible->missing == r.infeasible->needed - r.infeasible->capacity);
    CHECK(r.infeasible->missing > 0);
    CHECK(r.plan.nodes.empty());
    on.kinds[0].memory += r.infeasible->missing;       // exactly what was said to be missing
    CHECK(optimize(mlp(), on, model).feasible());
    i64 weights = 0;
    for (graph_value const& v : mlp().values) if (v.role == value_role::parameter) weights += 4 * v.type.elements();
    CHECK(r.infeasible->proven == (weights > 4 * r.infeasible->capacity));
  }
  CHECK(found_tight);
  CHECK(found_none);
  CHECK(none_proven);
}

TEST_CASE("search: branches run side by side where that is faster") {
  struct eager {                                       // operators do not get faster with more devices, reshards are free
    double seconds(cost::compute_query const&) const { return 1; }
    double seconds(cost::reshard_query const&) const { return 0; }
  };
  search_result const r = optimize(towers(8), devices(2, 2), eager{});
  std::vector<int> starts;
  for (op_strategy const& n : r.plan.nodes) starts.push_back(n.sharding.start);
  CHECK(std::count(starts.begin(), starts.end(), 1) > 0);
  search_options rough;
  rough.mapping.exact_budget = 0;
  search_result const t = optimize(towers(8), devices(2, 2), eager{}, rough);
  CHECK(t.cost.seconds == r.cost.seconds);             // from fork to join
  CHECK(t.gap < 1e-9);
  CHECK_FALSE(r.statistics.branches_left);
  CHECK_FALSE(t.statistics.branches_left);
  rough.mapping.branch_budget = 1;
  CHECK(optimize(towers(8), devices(2, 2), eager{}, rough).statistics.branches_left);       // says why its gap is wide
  rough.mapping.branch_budget = 0;
  search_result const s = optimize(towers(8), devices(2, 2), eager{}, rough);
  CHECK(s.cost.seconds > r.cost.seconds);              // found in sequence only
  CHECK(s.bound <= r.cost.seconds);
  CHECK(s.gap > 0);
  CHECK(s.statistics.branches_left);
}

TEST_CASE("search: branches that were priced side by side run side by side, forwards and backwards") {
  // two towers of their own inputs, or of what goes before them, joined by what all devices do
  for (bool fork : {false, true})
    for (int per : {1, 2}) {
      i64 const rows = 2048;
      computation_graph g;
      value_id ends[2];
      value_id before;
      if (fork) before = g.add_input("x", shape{dim(rows), dim(512)});
      if (fork) before = apply(g, relu{}, {apply(g, linear{512}, {before})});
      for (value_id& e : ends) {
        value_id x = fork ? before : g.add_input(&e == ends ? "user" : "item", shape{dim(rows), dim(512)});
        for (int k = 0; k < 2; ++k) x = apply(g, relu{}, {apply(g, linear{1024}, {x})});
        e = apply(g, linear{64}, {x});
      }
      int x = apply(g, layernorm{}, {apply(g, concat{}, {ends[0], ends[1]})});
      for (int k = 0; k < 3; ++k) x = apply(g, relu{}, {apply(g, linear{512}, {x})});
      int const label = g.add_input("label", shape({dim(rows)}, dtype::i32));
      g.add_output("loss", apply(g, cross_entropy{}, {apply(g, linear{10}, {x}), label}));
      search_result const r = optimize(g, logical_nodes(2, per), cost::analytical{});
      REQUIRE(r.feasible());
      int apart = 0;
      for (op_strategy const& n : r.plan.nodes) apart += n.sharding.size() < r.plan.cluster.size();
      if (!fork) CHECK(apart >= 10);
      auto const step = passes::memory_pass(differentiate(g), r.plan);
      program const p = unroll(step.graph, step.plan);
      for (bool overlap : {false, true})
        CHECK(simulate(p, r.plan.cluster, cost::analytical{}, {.overlap = overlap}).seconds <= r.cost.seconds * 1.001);
      for (auto const& b : r.baselines) CHECK(simulate(p, r.plan.cluster, cost::analytical{}, {}).seconds <= b.cost.seconds);
    }
}

TEST_CASE("search: branches beside each other do not wait for each other's exchanges, wherever the join stands") {
  // towers on devices that those of the join do not hold all of, from what goes before them or from inputs of their own
  struct { int towers, layers; i64 rows, width; bool fork; int devices, per; } const all[] = {
      {3, 2, 256, 1024, true, 6, 6}, {5, 4, 256, 4096, false, 8, 4}, {4, 2, 256, 1024, true, 6, 3}};
  for (auto const& c : all) {
    CAPTURE(c.towers);
    computation_graph g;
    value_id shared;
    if (c.fork) shared = apply(g, relu{}, {apply(g, linear{c.width}, {g.add_input("x", shape{dim(c.rows), dim(c.width)})})});
    std::vector<value_id> ends;
    for (int t = 0; t < c.towers; ++t) {
      value_id x = c.fork ? shared : g.add_input("x" + std::to_string(t), shape{dim(c.rows), dim(c.width)});
      for (int k = 0; k < c.layers; ++k) x = apply(g, relu{}, {apply(g, linear{c.width}, {x})});
      ends.push_back(x);
    }
    int x = apply(g, concat{}, ends);
    for (int k = 0; k < 2; ++k) x = apply(g, relu{}, {apply(g, linear{512}, {x})});
    int const label = g.add_input("label", shape({dim(c.rows)}, dtype::i32));
    g.add_output("loss", apply(g, cross_entropy{}, {apply(g, linear{16}, {x}), label}));
    machine const on = make_cluster("mine", {"v100", 15.7e12, 900e9, i64{16} << 30, 6e-6}, c.devices, c.per, {"in", c.per, 3e-6, 50e9},
                                    {"out", c.devices, 2e-5, 1.25e9});
    search_result const r = optimize(g, on, cost::analytical{});
    REQUIRE(r.feasible());
    int apart = 0;
    for (op_strategy const& n : r.plan.nodes) apart += n.sharding.start > 0;
    CHECK(apart > 0);
    auto const step = passes::memory_pass(differentiate(g), r.plan);
    program const p = unroll(step.graph, step.plan);
    for (bool overlap : {false, true}) CHECK(simulate(p, on, cost::analytical{}, {.overlap = overlap}).seconds <= r.cost.seconds * 1.02);
  }
}

TEST_CASE("search: a graph that is not series-parallel is planned and said to be relaxed") {
  cost::analytical const model;
  search_result const r = optimize(letter_n(), devices(4, 4), model);
  REQUIRE(r.feasible());
  CHECK(r.space.relaxed);
  CHECK(r.plan.nodes.size() == 6);
  training_graph const t = differentiate(letter_n());
  mapping_problem const p = make_problem(t, devices(4, 4), model);
  CHECK(p.relaxed);
  for (int v = 0; v < 6; ++v)                          // every tensor is there, whatever order the tree adds
    for (int u : t.graph.predecessors(v)) {
      bool found = false;
      for (operator_pair const& q : p.pairs) found = found || (q.first == u && q.second == v);
      CHECK(found);
    }
}

TEST_CASE("search: micro-batches and optimizer are part of the problem") {
  cost::analytical const model;
  search_options four, adam;
  four.micro_batches = 4;
  adam.optimizer.kind = optimizer_kind::adamw;
  double const once = optimize(mlp(), devices(4, 4), model).cost.seconds, often = optimize(mlp(), devices(4, 4), model, four).cost.seconds;
  CHECK(often > 2 * once);
  CHECK(often < 4 * once);                             // updates and parameter gradients travel once
  CHECK(optimize(mlp(), devices(4, 4), model, four).plan.micro_batches == 4);
  CHECK(optimize(mlp(), devices(1, 1), model, adam).cost.bytes[0] > optimize(mlp(), devices(1, 1), model).cost.bytes[0]);
}

TEST_CASE("search: bad input is refused in one sentence") {
  cost::analytical const model;
  CHECK_THROWS_AS(optimize(computation_graph{}, devices(2, 2), model), error);
  machine none;
  CHECK_THROWS_WITH_AS(optimize(mlp(), none, model), "no devices (at machine \"\": device); valid: at least one", error);
  for (int change = 0; change < 5; ++change) {         // what reached the eliminator, or divided by zero, before
    machine m = devices(4, 2);
    if (change == 0) m.links[1].bandwidth = -1e9;
    if (change == 1) m.links[1].latency = -1;
    if (change == 2) m.links[0].group = 0;
    if (change == 3) m.links.clear();
    if (change == 4) m.device[2] = 1;
    CAPTURE(change);
    CHECK_THROWS_WITH_AS(optimize(mlp(), m, model), doctest::Contains("(at machine \"test\": "), error);
    CHECK_THROWS_AS(make_problem(differentiate(mlp()), m, model), error);
  }
  search_options o;
  o.loss = "no such output";
  CHECK_THROWS_AS(optimize(mlp(), devices(2, 2), model, o), error);
  o = {};
  o.micro_batches = 0;
  CHECK_THROWS_WITH_AS(optimize(mlp(), devices(2, 2), model, o), "micro_batches is 0 (at optimize); valid: 1 or more", error);
  computation_graph g;
  int const x = g.add_input("x", shape{dim(axis("batch")), dim(4)});
  g.add_output("loss", apply(g, mean_squared_error{}, {apply(g, relu{}, {x}), x}));
  CHECK_THROWS_AS(optimize(g, devices(2, 2), model), error);
}

TEST_CASE("the space of a search: what is asked for, else all divisions of up to 8 devices and quarters of more") {
  for (int n = 1; n <= 64; ++n) {
    CAPTURE(n);
    machine const on = make_cluster("on", {"device", 1e12, 1e11, i64{1} << 33, 1e-6}, n, n, {"link", n, 1e-6, 1e10}, {});
    search_space const usual = space_for(on, {});
    CHECK(usual.shardings == usual_limits(n));
    CHECK(usual.grain >= 1);
    if (n <= 8) CHECK(usual.grain == 1);
    else CHECK((4 * usual.grain >= n && 4 * (usual.grain - 1) < n));
    search_options o;
    o.grain = 3;
    o.shardings = sharding_limits{.max_axes = 1};
    CHECK(space_for(on, o).grain == 3);
    CHECK(space_for(on, o).shardings == *o.shardings);
  }
}

TEST_CASE("more micro-batches than can be listed are refused at once, by number; fewer are planned") {
  search_options o;
  for (int n : {400'000, 1'000'000, std::numeric_limits<int>::max()}) {
    o.micro_batches = n;
    std::string const said = std::to_string(n) + " micro-batches of ";
    CHECK_THROWS_WITH_AS(optimize(mlp(), devices(2, 2), cost::analytical{}, o), doctest::Contains(said.c_str()), error);
    CHECK_THROWS_WITH_AS(strategies(mlp(), devices(2, 2), cost::analytical{}, o), doctest::Contains("a larger max_listed"), error);
  }
  o.micro_batches = 20;
  o.max_listed = 20 * differentiate(mlp()).graph.node_count();
  CHECK(optimize(mlp(), devices(2, 2), cost::analytical{}, o).feasible());
  ++o.micro_batches;
  CHECK_THROWS_WITH_AS(optimize(mlp(), devices(2, 2), cost::analytical{}, o), doctest::Contains("valid: at most 20 micro-batches"), error);
}
