// tests/search/intra/scratch_levels.test.cpp - arenas with kernels' scratch as the constraint: against every assignment of small problems
#include <tensorpar/search/intra/scratch_levels.hpp>

#include "task_sums.hpp"

#include <doctest/doctest.h>
#include <tensorpar/core/index.hpp>
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
/// Products take columns of what they read, as convolutions do; or a copy of their weights; or what grows with the square of their rows,
/// as attention's scores do; or rows of what they make.
i64 columns(op::any_op const& o, shapes in, shapes) { return o.is<contraction>() && in.n > 1 ? 6 * in[0].elements() : 0; }
i64 rows(op::any_op const& o, shapes, shapes out) {
  return o.is<contraction>() ? 4 * out[0].elements() : out.n ? out[0].elements() / 2 : 0;
}
i64 weights(op::any_op const& o, shapes in, shapes) { return o.is<contraction>() && in.n > 1 ? 20 * in[1].elements() : 0; }
i64 squares(op::any_op const& o, shapes, shapes out) {
  return o.is<contraction>() ? 20 * out[0].d[0].n * out[0].d[0].n * out[0].d[1].n : 0;
}

struct tried { double seconds; i64 bytes; };
/// Of every assignment that is one.
std::vector<tried> all_of(mapping_problem const& p, arena_sizes const& arenas) {
  evaluator const price(p);
  std::vector<tried> all;
  assignment a(static_cast<std::size_t>(p.operators()), 0);
  for (bool more = true; more;) {
    if (double const s = price(a).seconds; s < infinity) {
      auto const b = arenas(op_strategies(p, a));
      all.push_back({s, std::max(b[0], b[1])});
    }
    more = false;
    for (std::size_t v = 0; v < a.size() && !more; ++v) {
      more = ++a[v] < p.choices(static_cast<int>(v)).count();
      if (!more) a[v] = 0;
    }
  }
  return all;
}

}  // namespace

TEST_CASE("with scratch: valid, and nearly always the best there is, where every assignment can be tried") {
  int feasible = 0, equal = 0, none = 0, missed = 0, gained = 0;
  double worst = 1;
  for (workspace_rule const w : {&columns, &weights, &squares})
    for (auto const& [batch, wide] : {std::pair<i64, i64>{4, 64}, {32, 16}}) {
      machine const on = make_cluster("two", {"d", 1e10, 1e9, i64{1} << 40, 1e-6}, 2, 2, {"in", 2, 1e-6, 1e9}, {});
      training_graph const t = differentiate(two_layers(batch, wide));
      mapping_problem p = make_saving_problem(t, on, cost::analytical{}, {0, 1, 0, 0}, {.max_axes = 1});
      plan like;
      like.cluster = on;
      arena_sizes const arenas(t, like, w);
      auto const need = [&](assignment const& a) { return arenas(op_strategies(p, a)); };
      std::vector<tried> const all = all_of(p, arenas);
      REQUIRE(all.size() > 300);
      i64 least = all.front().bytes, most = least;
      for (tried const& x : all) { least = std::min(least, x.bytes); most = std::max(most, x.bytes); }
      auto const scratch = scratch_by_choice(t, p, w, 4);
      for (int k = 0; k <= 8; ++k) {
        i64 const room = least - 64 + (most - least + 64) * k / 8;
        p.capacity.assign(2, room);
        double best = infinity;
        for (tried const& x : all) if (x.bytes <= room) best = std::min(best, x.seconds);
        mapping_result const r = fit_arenas(p, {}, need, scratch), plain = fit_arenas(p, {}, need);
        if (!r.found()) {
          ++none;
          missed += best < infinity;
          CHECK(r.infeasible->missing > 0);
          CHECK(r.infeasible->missing <= plain.infeasible->missing);
          if (k == 0) CHECK(best == infinity);
          continue;
        }
        ++feasible;
        CHECK(r.cost.bytes == need(r.choices));
        for (i64 b : r.cost.bytes) CHECK(b <= room);
        CHECK(r.cost.seconds == doctest::Approx(evaluator(p)(r.choices).seconds));
        CHECK(r.cost.seconds >= best * (1 - 1e-9));
        equal += r.cost.seconds <= best * (1 + 1e-9);
        worst = std::max(worst, r.cost.seconds / best);
        gained += !plain.found() || r.cost.seconds < plain.cost.seconds * (1 - 1e-9);
        if (plain.found()) CHECK(r.cost.seconds <= plain.cost.seconds * (1 + 1e-12));
      }
    }
  MESSAGE(feasible << " found, " << equal << " of them the best, the worst " << worst << " of it, " << gained << " by levels alone; "
          << none
                   << " not found, " << missed << " of them though something fits");
  CHECK(feasible >= 40);
  CHECK(equal >= feasible - 4);
  CHECK(worst < 1.02);
  CHECK(gained > 0);
  CHECK(missed <= 1);
}

TEST_CASE("scratch of a choice is the most that a task of its operator takes, wherever the choice saves nothing") {
  std::mt19937_64 g(5);
  int compared = 0;
  for (u64 seed = 1; seed <= 30; ++seed) {
    recipe const r = random_recipe(seed, 6, 4);
    training_graph const t = r.build();
    machine const on = r.cluster();
    objective_options o;
    o.micro_batches = r.micro_batches;
    mapping_problem const p = make_problem(t, on, cost::analytical{}, {}, o);
    auto const scratch = scratch_by_choice(t, p, rows, 4);
    assignment a;
    for (int v = 0; v < p.operators(); ++v) a.push_back(static_cast<int>(g() % static_cast<u64>(p.choices(v).count())));
    plan q;
    q.cluster = on;
    q.micro_batches = r.micro_batches;
    q.nodes = op_strategies(p, a);
    program const whole = unroll(t, q, {rows});
    std::vector<i64> most(static_cast<std::size_t>(p.operators()), 0);
    for (task const& k : whole.tasks)
      if (k.kind == task_kind::compute && k.workspace >= 0 && t.graph.node(k.node).origin >= 0) {
        i64& x = most[static_cast<std::size_t>(t.graph.node(k.node).origin)];
        x = std::max(x, whole.buffers[static_cast<std::size_t>(k.workspace)].bytes);
      }
    for (int v = 0; v < p.operators(); ++v) {
      i64 const said = scratch[idx(p.set_of[idx(v)])][idx(a[idx(v)])];
      CHECK(said >= most[idx(v)]);           // sums of gradients that lie alike are added where they lie, without scratch
      compared += said == most[idx(v)] && said > 0;
    }
  }
  CHECK(compared > 30);
}
