// tests/search/solve/savings.test.cpp - what choices that save memory cost, checked against the program that an executor would run
#include <tensorpar/search/solve/savings.hpp>

#include "task_sums.hpp"

#include <doctest/doctest.h>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/op/operators.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::search_test;

namespace {

int apply(computation_graph& g, op::any_op const& o, std::vector<value_id> in, std::string name = {}) {
  return g.node(g.add_with_weights(o, std::move(in), std::move(name))).out[0];
}
machine four() { return make_cluster("2 x 2", {"d", 1e12, 1e11, i64{1} << 40, 1e-6}, 4, 2, {"in", 2, 1e-6, 1e10}, {"out", 4, 1e-5, 1e9}); }

/// Linear operators with activations between them; every second one of three is a cut.
computation_graph chain() {
  computation_graph g;
  int x = g.add_input("x", shape{dim(16), dim(8)});
  int const y = g.add_input("y", shape({dim(16)}, dtype::i32));
  for (int k = 0; k < 3; ++k) x = apply(g, gelu{}, {apply(g, linear{16}, {x}, "up" + std::to_string(k))});
  g.add_output("loss", apply(g, cross_entropy{}, {apply(g, linear{8}, {x}, "head"), y}));
  return g;
}
std::vector<char> all_but_loss(training_graph const& t) {
  std::vector<char> r(static_cast<std::size_t>(t.forward_nodes), 1);
  r.back() = 0;
  return r;
}

}  // namespace

TEST_CASE("savings: on a chain the objective is what the executor's tasks take") {
  machine const on = four();
  cost::analytical const model;
  training_options o;
  o.optimizer.kind = optimizer_kind::adamw;
  training_graph const t = differentiate(chain(), o);
  mapping_problem const p = make_saving_problem(t, on, model, all_but_loss(t));
  evaluator const price(p);
  std::mt19937_64 g(5);
  int equal = 0, again = 0, sharded = 0;
  for (int i = 0; i < 200; ++i) {
    assignment const a = random_in_sequence(p, g);
    double const tasks = all_tasks(t, p, a, on, model, 1), said = price(a).seconds;
    CHECK(tasks <= said * (1 + 1e-12));
    equal += tasks >= said * (1 - 1e-12);
    for (int v = 0; v < p.operators(); ++v) {
      choice_saving const s = p.choices(v).saving(a[static_cast<std::size_t>(v)]);
      again += s.recompute;
      sharded += s.zero != ir::zero_stage::none;
    }
  }
  CHECK(equal >= 50);                                  // the rest found a nearer copy, or need not be computed again
  CHECK(again > 200);
  CHECK(sharded > 100);
}

TEST_CASE("savings: the objective never counts less than the executor moves") {
  int cases = 0, saving = 0;
  for (u64 seed = 1; seed <= 100; ++seed) {
    recipe r = random_recipe(seed, 6, 4);
    r.clip = false;
    training_graph const t = r.build();
    machine const on = r.cluster();
    bytes_model const model;
    objective_options o;
    o.micro_batches = r.micro_batches;
    mapping_problem const p = make_saving_problem(t, on, model, all_but_loss(t), {}, o);
    evaluator const price(p);
    std::mt19937_64 g(seed);
    for (int i = 0; i < 5; ++i) {
      assignment const a = random_in_sequence(p, g);
      double const tasks = all_tasks(t, p, a, on, model, r.micro_batches), said = price(a).seconds;
      if (tasks > said + 1e-9) FAIL_CHECK(tasks << " bytes moved, " << said << " counted: " << r.text());
      ++cases;
      for (int v = 0; v < p.operators(); ++v) saving += !(p.choices(v).saving(a[static_cast<std::size_t>(v)]) == choice_saving{});
    }
  }
  CHECK(cases == 500);
  CHECK(saving > 500);
}

TEST_CASE("savings: choices that save nothing cost what they did") {
  machine const on = four();
  cost::analytical const model;
  training_graph const t = differentiate(chain());
  mapping_problem const plain = make_problem(t, on, model), p = make_saving_problem(t, on, model, all_but_loss(t));
  evaluator const before(plain), now(p);
  std::mt19937_64 g(3);
  for (int i = 0; i < 100; ++i) {
    assignment const a = random_in_sequence(plain, g);
    auto const same = assignment_of(p, op_strategies(plain, a));
    REQUIRE(same.has_value());
    CHECK(before(a).bytes == now(*same).bytes);
    CHECK(before(a).seconds == doctest::Approx(now(*same).seconds).epsilon(1e-12));
  }
}

TEST_CASE("savings: bytes") {
  training_options o;
  o.optimizer.kind = optimizer_kind::adamw;
  training_graph const t = differentiate(chain(), o);
  cost::analytical const model;
  mapping_problem const p = make_saving_problem(t, four(), model, all_but_loss(t));
  auto const bytes = [&](int v, std::vector<ir::mesh_axis> axes, ir::zero_stage s, bool again) {
    int const i = find_choice(p, v, {0, std::move(axes)}, {s, again});
    return i < 0 ? -1 : p.choices(v).bytes[static_cast<std::size_t>(i)];
  };
  i64 const x = 16 * 16, w = 16 * 16, b = 16;
  using enum ir::zero_stage;
  CHECK(bytes(2, {{'0', 4, 1}}, none, false) == 4 * (x / 4 + 4 * (w + b) + x / 4));
  CHECK(bytes(2, {{'0', 4, 1}}, updates, false) == 4 * (x / 4 + (w + b) + 3 * (w + b) / 4 + x / 4));
  CHECK(bytes(2, {{'0', 4, 1}}, weights, false) == 4 * (x / 4 + (w + b) + x / 4));
  CHECK(bytes(2, {{'0', 4, 1}}, weights, true) == 4 * (w + b));
  CHECK(bytes(2, {{'o', 4, 1}}, updates, false) == -1);               // no copies, nothing to share
  CHECK(bytes(3, {{'0', 4, 1}}, none, true) == 0);
  CHECK(bytes(t.forward_nodes - 1, {}, none, true) == -1);
}

TEST_CASE("savings: what is kept stands between what may be computed again") {
  computation_graph const g = chain();
  training_graph const t = differentiate(g);
  std::vector<char> const again = recomputable(g, t);
  std::vector<int> const cuts = cut_candidates(g, t);
  REQUIRE(!cuts.empty());
  for (int v : cuts) CHECK_FALSE(again[static_cast<std::size_t>(v)]);
  CHECK_FALSE(again.back());
  CHECK(std::count(again.begin(), again.end(), 1) == g.node_count() - static_cast<int>(cuts.size()) - 1);
}
