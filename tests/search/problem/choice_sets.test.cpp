// tests/search/problem/choice_sets.test.cpp - choices priced by their kinds are priced as each by itself
#include <tensorpar/search/problem/choice_layouts.hpp>
#include <tensorpar/search/problem/choice_sets.hpp>
#include <doctest/doctest.h>

#include "support/effort.hpp"
#include "support/random_network.hpp"
#include "support/search_once.hpp"
#include "task_sums.hpp"
#include <tensorpar/ir/machine/machine_presets.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/solve/objective.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::search_test;

namespace {
/// Equal devices by two names: nobody may take one's price for the other's, so every choice is priced.
machine by_two_names(machine m) {
  m.kinds.push_back(m.kinds[0]);
  for (std::size_t d = 1; d < m.device.size(); d += 2) m.device[d] = 1;
  return m;
}
void same_tables(training_graph const& t, machine const& on, objective_options const& o, double bar) {
  machine const two = by_two_names(on);
  cost::analytical const model;
  choice_book<cost::analytical> one_book(on, model, o), two_book(two, model, o);
  mapping_problem const a = search::detail::objective_builder<cost::analytical>(t, one_book).make({}, bar),
                        b = search::detail::objective_builder<cost::analytical>(t, two_book).make({}, bar);
  REQUIRE(a.sets.size() == b.sets.size());
  for (std::size_t s = 0; s < a.sets.size(); ++s) {
    CHECK(a.sets[s].shardings == b.sets[s].shardings);
    CHECK(a.sets[s].savings == b.sets[s].savings);
    CHECK(a.sets[s].seconds == b.sets[s].seconds);
    CHECK(a.sets[s].bytes == b.sets[s].bytes);
  }
  REQUIRE(a.costs.size() == b.costs.size());
  for (std::size_t k = 0; k < a.costs.size(); ++k) CHECK(a.costs[k].seconds == b.costs[k].seconds);
}

/// Operators take what they take, reshards nothing: what is left is how often each operator runs, and on which parts.
struct no_movements {
  cost::analytical compute;
  double seconds(cost::compute_query const& q) const { return compute.seconds(q); }
  double seconds(cost::reshard_query const&) const { return 0; }
};
training_graph step_of(computation_graph const& g, int micro) {
  training_options o;
  o.micro_batches = micro;
  return differentiate(g, o);
}
int apply(computation_graph& g, op::any_op const& o, std::vector<value_id> in) {
  return g.node(g.add_with_weights(o, std::move(in), {})).out[0];
}
/// Gradients that an operator makes and another one's update reads: of a parameter that is added to an activation, of two such parameters,
/// of one that is learned in the loss, and of one that three operators read.
computation_graph gradients_of_others(int kind) {
  computation_graph g;
  shape const s{dim(4), dim(8)};
  int const x = g.add_input("x", s), p = g.add_parameter("p", s, op::init::ones);
  int h = apply(g, linear{8}, {x});
  if (kind == 0) h = apply(g, add{}, {h, p});
  if (kind == 1) h = apply(g, add{}, {g.add_parameter("q", s, op::init::ones), p});
  if (kind == 3) h = apply(g, mul{}, {apply(g, add{}, {apply(g, add{}, {h, p}), p}), p});
  int loss = apply(g, mean_squared_error{}, {apply(g, linear{8}, {apply(g, relu{}, {h})}), x});
  if (kind == 2) loss = apply(g, add{}, {loss, g.add_parameter("c", scalar, op::init::ones)});
  g.add_output("loss", loss);
  return g;
}
/// Does the program add gradients of an operator elsewhere than the operator's sharding says, because they lie alike there?
bool adds_elsewhere(training_graph const& t, mapping_problem const& p, assignment const& a, machine const& on, int micro) {
  plan q;
  q.cluster = on;
  q.nodes = op_strategies(p, a);
  q.micro_batches = micro;
  program const all = unroll(t, q);
  for (task const& x : all.tasks) {
    graph_node const& n = t.graph.node(x.node);
    if (x.kind != task_kind::compute || !n.op.is<add>() || n.phase != step_phase::backward) continue;
    ir::sharding const& own = q.nodes[static_cast<std::size_t>(n.origin)].sharding;
    ir::layout const should = result_layout(ir::space_of(t.graph, x.node), n.letters, own, 0);
    if (!(all.buffers[static_cast<std::size_t>(x.out[0])].where == should)) return true;
  }
  return false;
}
}  // namespace

TEST_CASE("gradients are added up over micro-batches as often as the program does it, whoever reads the sum") {
  no_movements const model;
  int same = 0, elsewhere = 0;
  auto const compare = [&](computation_graph const& g, int devices, u64 seed) {
    machine const on = make_cluster("t", {"d", 1e12, 1e11, i64{1} << 40, 1e-6}, devices, devices, {"in", devices, 1e-6, 1e10}, {});
    for (int micro = 1; micro <= 4; ++micro) {
      training_graph const t = step_of(g, micro);
      mapping_problem const p = make_problem(t, on, model, {}, {devices, 4, micro});
      evaluator const price(p);
      std::mt19937_64 r(seed);
      for (int i = 0; i < 4; ++i) {
        assignment const a = random_in_sequence(p, r);
        if (adds_elsewhere(t, p, a, on, micro)) { ++elsewhere; continue; }
        double const tasks = all_tasks(t, p, a, on, model, micro), said = price(a).seconds;
        ++same;
        if (std::abs(tasks - said) > 1e-9 * tasks)
          FAIL_CHECK("seed " << seed << ", " << micro << " micro-batches: " << said << " for " << tasks);
      }
    }
  };
  for (int kind = 0; kind < 4; ++kind) for (int devices : {1, 2, 4}) compare(gradients_of_others(kind), devices, static_cast<u64>(kind));
  int const drawn = test_effort::cases(40);
  for (int seed = 0; seed < drawn; ++seed) {
    std::mt19937 draw(static_cast<unsigned>(seed));
    compare(tests::random_network({2, 3 + seed % 5}, draw), 1 + seed % 4, static_cast<u64>(seed));
  }
  CHECK(same >= 4 * elsewhere);
}

TEST_CASE("what a search says of a plan is what the simulator says of it, where operators stand in sequence") {
  int const drawn = test_effort::cases(25);
  for (int seed = 0; seed < drawn; ++seed) {
    std::mt19937 draw(static_cast<unsigned>(seed));
    computation_graph const g = tests::random_network({2, 3 + seed % 5}, draw);
    for (int micro = 1; micro <= 4; ++micro) {
      int const n = 1 + seed % 4;
      machine const on = make_cluster("t", {"d", 1e12, 1e11, i64{1} << 40, 1e-6}, n, n, {"in", n, 1e-6, 1e10}, {});
      search_options o;
      o.micro_batches = micro;
      o.grain = n;
      o.compare = o.reorder = false;
      search_result const r = optimize(g, on, cost::analytical{}, o);
      planned_step const step = passes::memory_pass(step_of(g, micro), r.plan);
      double const run = simulate(unroll(step.graph, step.plan), on, cost::analytical{}, simulation_options{false, false}).seconds;
      CHECK_MESSAGE(r.cost.seconds == doctest::Approx(run).epsilon(1e-9), "seed " << seed << ", " << micro << " micro-batches");
    }
  }
}

TEST_CASE("seconds and bytes of every choice, with and without updates in parts, and with a bar") {
  for (u64 seed = 0; seed < 30; ++seed) {
    recipe r = random_recipe(seed, 5, 3);
    r.micro_batches = 1 + static_cast<int>(seed % 3);
    training_graph const t = r.build();
    for (bool parts : {false, true}) same_tables(t, preset("summit"), objective_options{2, 4, r.micro_batches, parts}, infinity);
  }
  training_graph const t = differentiate(zoo::make("mlp_unify", 64), {});
  same_tables(t, preset("summit"), objective_options{6, 4, 1, true}, infinity);
  same_tables(t, preset("summit"), objective_options{6, 4, 1, true}, 1.0);
}

TEST_CASE("a bar leaves choices out, and what is left costs what it cost") {
  training_graph const t = differentiate(zoo::make("mlp_unify", 64), {});
  machine const on = preset("summit");
  cost::analytical const model;
  choice_book<cost::analytical> book(on, model, objective_options{6, 4, 1, true});
  search::detail::objective_builder<cost::analytical> build(t, book);
  mapping_problem const all = build.make({});
  double least = 0;
  for (int v = 0; v < all.operators(); ++v) least += *std::min_element(all.choices(v).seconds.begin(), all.choices(v).seconds.end());
  mapping_problem const some = build.make({}, 1.02 * least);
  int fewer = 0;
  REQUIRE(some.pairs.size() == all.pairs.size());
  auto const original = [&](int v, int i) {
    auto const &a = all.choices(v), &b = some.choices(v);
    for (int k = 0; k < a.count(); ++k) {
      auto const at = static_cast<std::size_t>(k), here = static_cast<std::size_t>(i);
      if (a.shardings[at] == b.shardings[here] && a.saving(k) == b.saving(i) && a.seconds[at] == b.seconds[here]) return k;
    }
    return -1;
  };
  for (int v = 0; v < all.operators(); ++v) fewer += some.choices(v).count() < all.choices(v).count();
  CHECK(fewer > 0);
  int never_together = 0, priced = 0;
  for (std::size_t k = 0; k < all.pairs.size(); ++k) {
    operator_pair const& q = some.pairs[k];
    for (int i = 0; i < some.choices(q.first).count(); ++i)
      for (int j = 0; j < some.choices(q.second).count(); ++j) {
        double const s = some.seconds(q, i, j);
        if (s == infinity) { ++never_together; continue; }
        ++priced;
        int const a = original(q.first, i), b = original(q.second, j);
        REQUIRE(a >= 0);
        REQUIRE(b >= 0);
        if (s != all.seconds(all.pairs[k], a, b)) CHECK(s == all.seconds(all.pairs[k], a, b));
      }
  }
  CHECK(priced > 0);
  CHECK(never_together > 0);
}
