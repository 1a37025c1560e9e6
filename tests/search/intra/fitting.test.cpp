// tests/search/intra/fitting.test.cpp - arenas as the constraint: against every assignment of small problems
#include <tensorpar/search/intra/fitting.hpp>

#include "task_sums.hpp"

#include <doctest/doctest.h>
#include <support/effort.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/solve/savings.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::search_test;

namespace {

computation_graph two_layers(i64 batch, i64 wide) {
  computation_graph g;
  int x = g.add_input("x", shape{dim(batch), dim(8)});
  x = g.node(g.add_with_weights(linear{wide}, {x}, "up")).out[0];
  x = g.node(g.add_with_weights(gelu{}, {x}, "gelu")).out[0];
  x = g.node(g.add_with_weights(linear{8}, {x}, "down")).out[0];
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {x, g.add_input("y", shape{dim(batch), dim(8)})})).out[0]);
  return g;
}
plan on_machine(machine const& m) {
  plan p;
  p.cluster = m;
  return p;
}

}  // namespace

TEST_CASE("fitting: valid, and nearly always the best there is, where every assignment can be tried") {
  int feasible = 0, equal = 0, none = 0;
  double worst = 1;
  for (i64 batch : {4, 32})
    for (i64 wide : {16, 64}) {
      machine on = make_cluster("two", {"d", 1e10, 1e9, i64{1} << 40, 1e-6}, 2, 2, {"in", 2, 1e-6, 1e9}, {});
      training_graph const t = differentiate(two_layers(batch, wide));
      mapping_problem p = make_saving_problem(t, on, cost::analytical{}, {1, 1, 1, 0}, {.max_axes = 1});
      arena_sizes arenas(t, on_machine(on));
      auto const need = [&](assignment const& a) { return arenas(op_strategies(p, a)); };
      evaluator const price(p);
      struct tried { double seconds; i64 bytes; };
      std::vector<tried> all;
      assignment a(static_cast<std::size_t>(p.operators()), 0);
      for (bool more = true; more;) {
        if (double const s = price(a).seconds; s < infinity) {
          auto const b = need(a);
          all.push_back({s, std::max(b[0], b[1])});
        }
        more = false;
        for (std::size_t v = 0; v < a.size() && !more; ++v) {
          more = ++a[v] < p.choices(static_cast<int>(v)).count();
          if (!more) a[v] = 0;
        }
      }
      REQUIRE(all.size() > 1000);
      i64 least = all.front().bytes, most = least;
      for (tried const& x : all) { least = std::min(least, x.bytes); most = std::max(most, x.bytes); }
      for (int k = 0; k <= 12; ++k) {
        i64 const room = least - 64 + (most - least + 64) * k / 12;
        p.capacity.assign(2, room);
        double best = infinity;
        for (tried const& x : all) if (x.bytes <= room) best = std::min(best, x.seconds);
        mapping_result const r = fit_arenas(p, {}, need);
        if (!r.found()) {
          ++none;
          CHECK(r.infeasible->missing > 0);
          CHECK(r.infeasible->capacity == room);
          if (k == 0) CHECK(best == infinity);
          continue;
        }
        ++feasible;
        CHECK(r.cost.bytes == need(r.choices));
        for (i64 b : r.cost.bytes) CHECK(b <= room);
        CHECK(r.cost.seconds == doctest::Approx(price(r.choices).seconds));
        CHECK(r.cost.seconds >= best * (1 - 1e-9));
        equal += r.cost.seconds <= best * (1 + 1e-9);
        worst = std::max(worst, r.cost.seconds / best);
      }
    }
  MESSAGE(feasible << " found, " << equal << " of them the best, the worst " << worst << " of it; " << none << " not found");
  CHECK(feasible >= 35);
  CHECK(equal >= feasible - 1);
  CHECK(none >= 4);
}

TEST_CASE("fitting: an arena of one device is the program's") {
  std::mt19937_64 g(4);
  for (u64 seed = 1; seed <= static_cast<u64>(test_effort::cases(60)); ++seed) {
    recipe const r = random_recipe(seed, 6, 4);
    training_graph const t = r.build();
    machine const on = r.cluster();
    objective_options o;
    o.micro_batches = r.micro_batches;
    mapping_problem const p = make_saving_problem(t, on, cost::analytical{},
                                                  std::vector<char>(static_cast<std::size_t>(t.forward_nodes), 1), {}, o);
    plan q = on_machine(on);
    q.micro_batches = r.micro_batches;
    arena_sizes arenas(t, q);
    for (int k = 0; k < 5; ++k) {
      assignment a;
      for (int v = 0; v < p.operators(); ++v) a.push_back(static_cast<int>(g() % static_cast<u64>(p.choices(v).count())));
      q.nodes = op_strategies(p, a);
      planned_step const step = passes::memory_pass(t, q);
      program const whole = unroll(step.graph, step.plan);
      for (int d = 0; d < on.size(); ++d) CHECK(arena_on(d, step.graph, step.plan) == whole.arena[static_cast<std::size_t>(d)]);
      std::vector<i64> const said = arenas(q.nodes);
      for (int d = 0; d < on.size(); ++d) CHECK(said[static_cast<std::size_t>(d)] >= whole.arena[static_cast<std::size_t>(d)]);
    }
  }
  CHECK_THROWS_WITH_AS(arena_on(9, differentiate(two_layers(4, 16)),
                                on_machine(make_cluster("one", {"d", 1e10, 1e9, 1, 0}, 1, 1, {"in", 1, 0, 1e9}, {}))),
                       doctest::Contains("device 9 does not exist"), error);
}
