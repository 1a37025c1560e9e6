// tests/search/joint/backtracking.test.cpp - the best graph of all that rules make, against making all of them
#include <tensorpar/search/joint/backtracking.hpp>

#include "all_graphs.hpp"

#include <doctest/doctest.h>

#include <random>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>
#include <tensorpar/search/joint/rewriting_knobs.hpp>
#include <tensorpar/search/solve/min_sum.hpp>
#include <support/small_graphs.hpp>

using namespace tensorpar;
using namespace tensorpar::search;
using namespace tensorpar::search_test;

namespace {

std::vector<rewrite::rule> some_rules() {
  std::vector<rewrite::rule> r;
  for (char const* text : {"add(linear(x, y), linear(x, z)) => linear(x, add(y, z))",
                           "linear(x, add(y, z)) => add(linear(x, y), linear(x, z))",
                           "linear(linear(x, y), z) => linear(x, matmul{transpose_a=0,transpose_b=0}(z, y))",
                           "concat{axis=d}(?f(x), ?f(y)) => ?f(concat{axis=d}(x, y))",
                               "?f(concat{axis=d}(x, y)) => concat{axis=d}(?f(x), ?f(y))",
                           "add(linear(x, y), linear(z, y)) => linear(add(x, z), y)",
                               "linear(add(x, z), y) => add(linear(x, y), linear(z, y))",
                           "concat{axis=-1}(linear(x, y), linear(x, z)) => linear(x, concat{axis=-2}(y, z))"})
    r.push_back(rewrite::parse_rule(text));
  return r;
}

/// Linear operators, sums, functions and concatenations on square tensors, at random; the last one is read by the loss.
computation_graph drawn(std::mt19937& draw) {
  computation_graph g;
  auto const below = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
  std::vector<int> values{g.add_input("x", {8, 8}), g.add_parameter("p", {8, 8}, op::init::ones)};
  std::vector<int> weights;
  for (int i = 0; i < 2; ++i) weights.push_back(g.add_parameter("w" + std::to_string(i), {8, 8}, op::init::fan_in));
  int last = -1;
  auto const linear_of = [&](int x) { return g.node(g.add(linear{8, false}, {x, weights[static_cast<std::size_t>(below(2))]})).out[0]; };
  for (int k = 0, n = 1 + below(3); k < n; ++k) {
    int const a = k && below(4) ? last : values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
    int const b = values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
    int const kind = below(5);
    last = kind == 0   ? linear_of(a)
           : kind == 1 ? g.node(g.add(add{}, {linear_of(a), linear_of(below(2) ? a : b)})).out[0]
           : kind == 2 ? g.node(g.add(relu{}, {a})).out[0]
           : kind == 3 ? linear_of(linear_of(a))
                       : g.node(g.add(add{}, {a, b})).out[0];
    values.push_back(last);
  }
  int const both = g.node(g.add(concat{-1}, {last, values[values.size() - 2]})).out[0];
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {both, g.add_input("y", g.type(both))})).out[0]);
  return g;
}
double min_of(computation_graph const& g, machine const& on, cost::analytical const& model, sharding_limits const& l) {
  objective_options o;
  o.grain = on.size();
  mapping_problem const p = make_problem(differentiate(g), on, model, l, o);
  std::vector<std::vector<double>> seconds;
  for (choice_set const& s : p.sets) seconds.push_back(s.seconds);
  return min_sum(p, seconds).value;
}

}  // namespace

TEST_CASE("with no threshold the search finds the best of all graphs that rules lead to") {
  std::mt19937 draw(7);
  auto const rules = some_rules();
  cost::analytical const model;
  int better = 0, graphs = 0, largest = 0;
  for (int turn = 0; turn < 160; ++turn) {
    computation_graph const g = needed(drawn(draw));
    machine const on = tests::devices(2 + turn % 3);
    sharding_limits l;
    l.max_axes = 1;
    std::vector<computation_graph> const all = all_graphs(g, rules, 2);
    double const before = min_of(g, on, model, l);
    double least = before;
    for (computation_graph const& c : all) least = std::min(least, min_of(c, on, model, l));
    graphs += static_cast<int>(all.size());
    largest = std::max(largest, static_cast<int>(all.size()));
    better += least < before * (1 - 1e-9);
    objective_options o;
    o.grain = on.size();
    piece_prices<cost::analytical> price(on, model, l, o, {});
    backtracking_options b;
    b.alpha = infinity;
    b.priced = 100000;
    auto const parts = pieces(g, {});
    piece_variants const v = substitutions(parts[0], rules, price, b);
    CHECK(v.exhausted);
    CHECK(v.priced == static_cast<int>(all.size()));
    double found = infinity;
    for (piece_variant const& x : v.all) found = std::min(found, x.table.least());
    CHECK(found == doctest::Approx(least).epsilon(1e-12));
  }
  CHECK(better > 10);
  CHECK(graphs > 400);
  CHECK(largest > 20);
}

TEST_CASE("the steps of a variant lead to its graph, and leave the ends alone") {
  std::mt19937 draw(8);
  auto const rules = some_rules();
  cost::analytical const model;
  machine const on = tests::devices(2);
  objective_options o;
  o.grain = 2;
  int steps = 0;
  for (int turn = 0; turn < 120; ++turn) {
    computation_graph const g = needed(drawn(draw));
    auto const parts = pieces(g, choose_cuts(g, differentiate(g), {}, 1));
    piece_prices<cost::analytical> price(on, model, {}, o, {});
    for (graph_piece const& p : parts) {
      backtracking_options b;
      b.alpha = 2;
      piece_variants const v = substitutions(p, rules, price, b);
      REQUIRE(!v.all.empty());
      CHECK(v.all[0].steps.empty());
      for (piece_variant const& x : v.all) {
        rewrite::open_graph h(rewrite::unsharded(p.graph));
        for (rewrite_step const& s : x.steps) {
          for (int n : s.where.node) {
            CHECK(n != p.ends.anchor);
            if (p.ends.readers) CHECK(n != p.ends.last);
          }
          CHECK(apply_rule(*s.rule, s.where, h).done());
          ++steps;
        }
        computation_graph const made = h.close().graph;
        REQUIRE(made.node_count() == x.graph.node_count());
        for (int w = 0; w < made.node_count(); ++w) CHECK(made.node(w).op == x.graph.node(w).op);
        if (p.ends.anchor >= 0) CHECK(x.graph.node(x.ends.anchor).op == p.graph.node(p.ends.anchor).op);
      }
    }
  }
  CHECK(steps > 20);
}

TEST_CASE("a budget cuts the search off and says so") {
  std::mt19937 draw(9);
  auto const rules = some_rules();
  cost::analytical const model;
  machine const on = tests::devices(2);
  objective_options o;
  o.grain = 2;
  bool cut = false;
  for (int turn = 0; turn < 20; ++turn) {
    computation_graph const g = needed(drawn(draw));
    backtracking_options b;
    b.alpha = infinity;
    b.priced = 3;
    piece_prices<cost::analytical> price(on, model, {}, o, {});
    piece_variants const v = substitutions(pieces(g, {})[0], rules, price, b);
    CHECK(v.priced <= 3);
    b.priced = 100000;
    piece_variants const all = substitutions(pieces(g, {})[0], rules, price, b);
    CHECK(v.exhausted == (all.priced <= 3));
    cut = cut || !v.exhausted;
  }
  CHECK(cut);
}
