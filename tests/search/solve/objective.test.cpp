// tests/search/solve/objective.test.cpp - what the mapping problem counts, checked against the program that an executor would run
#include "task_sums.hpp"

#include <doctest/doctest.h>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/search/solve/baselines.hpp>
#include <tensorpar/search/solve/objective.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::search_test;

namespace {

int apply(computation_graph& g, op::any_op const& o, std::vector<value_id> in, std::string name = {}) {
  return g.node(g.add_with_weights(o, std::move(in), std::move(name))).out[0];
}

computation_graph mlp(i64 batch, std::vector<i64> const& sizes) {
  computation_graph g;
  int x = g.add_input("x", shape{dim(batch), dim(sizes[0])});
  int const y = g.add_input("y", shape({dim(batch)}, dtype::i32));
  for (std::size_t i = 1; i < sizes.size(); ++i) {
    x = apply(g, linear{sizes[i]}, {x}, "fc" + std::to_string(i));
    if (i + 1 < sizes.size()) x = apply(g, relu{}, {x});
  }
  g.add_output("loss", apply(g, cross_entropy{}, {x, y}));
  return g;
}
machine four(i64 memory = i64{1} << 40) {
  return make_cluster("2 x 2", {"d", 1e12, 1e11, memory, 1e-6}, 4, 2, {"in", 2, 1e-6, 1e10}, {"out", 4, 1e-5, 1e9});
}

}  // namespace

TEST_CASE("search: on a chain the objective is what the executor's tasks take") {
  machine const on = four();
  cost::analytical const model;
  training_graph const t = differentiate(mlp(16, {8, 12, 20, 4}));
  mapping_problem const p = make_problem(t, on, model);
  CHECK_FALSE(p.relaxed);
  evaluator const price(p);
  std::mt19937_64 g(5);
  int equal = 0;
  for (int i = 0; i < 200; ++i) {
    assignment const a = random_in_sequence(p, g);
    double const tasks = all_tasks(t, p, a, on, model, 1), said = price(a).seconds;
    CHECK(tasks <= said * (1 + 1e-12));
    equal += tasks >= said * (1 - 1e-12);
  }
  CHECK(equal >= 100);                                 // the rest found a nearer copy
  std::string const batch = batch_loops(t.graph, p.operators());
  assignment const data = data_parallel(p, batch);
  CHECK(all_tasks(t, p, data, on, model, 1) == doctest::Approx(price(data).seconds).epsilon(1e-12));
  assignment const one = single_device(p);
  CHECK(all_tasks(t, p, one, on, model, 1) == doctest::Approx(price(one).seconds).epsilon(1e-12));
}

TEST_CASE("search: the objective never counts less than the executor moves") {
  int cases = 0;
  for (u64 seed = 1; seed <= 150; ++seed) {
    recipe r = random_recipe(seed, 6, 4);
    r.clip = false;                                    // the executor computes the factor on all devices, outside of any operator
    training_graph const t = r.build();
    machine const on = r.cluster();
    bytes_model const model;
    objective_options o;
    o.micro_batches = r.micro_batches;
    mapping_problem const p = make_problem(t, on, model, {}, o);
    evaluator const price(p);
    std::mt19937_64 g(seed);
    for (int i = 0; i < 5; ++i) {
      assignment const a = random_in_sequence(p, g);
      double const tasks = all_tasks(t, p, a, on, model, r.micro_batches), said = price(a).seconds;
      if (tasks > said + 1e-9) FAIL_CHECK(tasks << " bytes moved, " << said << " counted: " << r.text());
      ++cases;
    }
  }
  CHECK(cases == 750);
}

TEST_CASE("search: gradients that are added up over micro-batches count, as often as they are added") {
  computation_graph g;
  int const ids = g.add_input("ids", shape({dim(8)}, dtype::i32)), y = g.add_input("y", shape{dim(8), dim(16)});
  int const x = apply(g, embedding{4096, 64}, {ids}, "rows");      // a gradient as large as the table, for eight rows
  g.add_output("loss", apply(g, mean_squared_error{},
                             {apply(g, linear{16}, {apply(g, relu{}, {apply(g, linear{64}, {x}, "a")})}, "b"), y}));
  machine const on = four();
  cost::analytical const model;
  for (int micro : {1, 3}) {
    training_options o;
    o.micro_batches = micro;
    training_graph const t = differentiate(g, o);
    objective_options with;
    with.micro_batches = micro;
    mapping_problem const p = make_problem(t, on, model, {}, with);
    evaluator const price(p);
    for (assignment const& a : {single_device(p), data_parallel(p, batch_loops(t.graph, p.operators()))})
      CHECK(all_tasks(t, p, a, on, model, micro) == doctest::Approx(price(a).seconds).epsilon(1e-12));
    std::mt19937_64 r(7);
    for (int i = 0; i < 50; ++i) {
      assignment const a = random_in_sequence(p, r);
      CHECK(all_tasks(t, p, a, on, model, micro) <= price(a).seconds * (1 + 1e-12));
    }
  }
}

TEST_CASE("search: skip connections, shared parameters and gradients are in the problem") {
  computation_graph g;
  int const x = g.add_input("x", shape{dim(4), dim(8)});
  int const a = apply(g, linear{8}, {x}, "a");
  int const b = apply(g, relu{}, {a}, "b");
  int const c = apply(g, add{}, {a, b}, "c");          // a -> c is implied by a -> b -> c, yet moves a tensor
  int const w = g.node(0).in[1];
  int const d = g.node(g.add(linear{8, false}, {c, w}, "d")).out[0];
  g.add_output("loss", apply(g, mean_squared_error{}, {d, x}));
  training_graph const t = differentiate(g);
  bytes_model const model;
  mapping_problem const p = make_problem(t, four(), model);
  CHECK(graph::to_string(p.tree) == "((((0;1);2);3);4)");
  std::vector<std::pair<int, int>> pairs;
  for (operator_pair const& q : p.pairs) pairs.push_back({q.first, q.second});
  CHECK(pairs == std::vector<std::pair<int, int>>{{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}, {3, 4}});
  // 0-3: the parameter, and the gradient that passes through the addition unchanged; 1-3: the same gradient
  // one operator on two devices by rows, its neighbour by columns: an all-to-all each way, for the skip connection too
  auto const pick_sharding = [&](int v, char letter) { return find_choice(p, v, {0, {{letter, 2, 1}}}); };
  assignment rows, cols;
  for (int v = 0; v < 5; ++v) { rows.push_back(v == 4 ? single_device(p)[4] : pick_sharding(v, '0')); cols.push_back(rows.back()); }
  cols[1] = pick_sharding(1, '1');
  double const tensor = 4.0 * 4 * 8, one_way = tensor / 2 / 2;  // bytes a device sends in an all-to-all of two
  evaluator const price(p);
  CHECK(price(cols).seconds - price(rows).seconds == 4 * one_way);                                    // a -> b, b -> c, and both gradients
  cols = rows;
  cols[2] = pick_sharding(2, '1');
  CHECK(price(cols).seconds - price(rows).seconds == 3 * one_way);                                    // a -> c, b -> c, c -> d
  // two users of one tensor that want it alike pay once each: the objective counts per pair, the executor lets them share
  int const columns = pick_sharding(0, 'o');
  CHECK(p.seconds(p.pairs[1], columns, rows[2]) == one_way);                                          // a -> c
  CHECK(p.seconds(p.pairs[0], columns, rows[1]) == 2 * one_way);                                      // a -> b, and the gradient of b
}

TEST_CASE("search: memory estimate of an operator") {
  training_options o;
  o.optimizer.kind = optimizer_kind::adamw;
  training_graph const t = differentiate(mlp(16, {8, 12, 4}), o);
  cost::analytical const model;
  mapping_problem const p = make_problem(t, four(), model);
  auto const bytes = [&](int v, std::vector<ir::mesh_axis> axes) {
    return p.choices(v).bytes[static_cast<std::size_t>(find_choice(p, v, {0, std::move(axes)}))];
  };
  i64 const x = 16 * 8, w = 12 * 8, b = 12, y = 16 * 12;
  CHECK(bytes(0, {}) == 4 * (x + 4 * (w + b) + y));                                  // parameter, gradient, two moments
  CHECK(bytes(0, {{'0', 4, 1}}) == 4 * (x / 4 + 4 * (w + b) + y / 4));
  CHECK(bytes(0, {{'o', 4, 1}}) == 4 * (x + (w + b) + y / 4));
  CHECK(bytes(0, {{'i', 2, 1}}) == 4 * (x / 2 + 4 * (w / 2 + b) + y));
  CHECK(bytes(1, {{'0', 2, 1}}) == 4 * (y / 2 + y / 2));
}

TEST_CASE("search: choices above a bar are left out, the optimum is not") {
  machine const on = four();
  cost::analytical const model;
  training_graph const t = differentiate(mlp(64, {64, 512, 512, 10}));
  choice_book<cost::analytical> book(on, model, {});
  search::detail::objective_builder<cost::analytical> build(t, book);
  mapping_problem const all = build.make({});
  std::vector<std::vector<double>> seconds;
  for (choice_set const& s : all.sets) seconds.push_back(s.seconds);
  double const least = min_sum(all, seconds).value;
  mapping_problem const some = build.make({}, least * (1 + 1e-6));
  int before = 0, after = 0;
  for (choice_set const& s : all.sets) before += s.count();
  for (choice_set const& s : some.sets) after += s.count();
  CHECK(after < before);
  seconds.clear();
  for (choice_set const& s : some.sets) seconds.push_back(s.seconds);
  additive_optimum const x = min_sum(some, seconds);
  CHECK(x.value == doctest::Approx(least).epsilon(1e-12));
  CHECK(evaluator(some)(x.choices).seconds == doctest::Approx(least).epsilon(1e-12));
}
