// tests/ir/computation_graph.test.cpp - graphs made node by node, from parts of themselves too, and what they refuse
#include <tensorpar/ir/computation_graph.hpp>
#include <doctest/doctest.h>

#include <string>
#include <tensorpar/op/operators.hpp>

using namespace tensorpar;

TEST_CASE("values and nodes may be made from shapes and operators of the same graph, however often its room moves") {
  computation_graph g;
  int const x = g.add_input("x", {4, 8});
  int last = g.node(g.add(scale{0.5}, {x})).out[0];
  for (int i = 0; i < 300; ++i) {
    int const y = g.add_input("y" + std::to_string(i), g.type(last));
    int const w = g.add_parameter("w" + std::to_string(i), g.value(y).type, init::ones);
    int const v = g.add_state("s" + std::to_string(i), g.type(w));
    CHECK(g.type(v) == shape{4, 8});
    last = g.node(g.add(g.node(i).op, {last})).out[0];
    REQUIRE(g.node(i + 1).op == any_op(scale{0.5}));
    REQUIRE(g.type(last) == shape{4, 8});
  }
  CHECK(g.node_count() == 301);
  CHECK(g.values.size() == 1 + 301 + 900);
}

TEST_CASE("what does not fit is refused with the operator, both shapes and the reason") {
  computation_graph g;
  int const x = g.add_input("x", {4, 8}), y = g.add_input("y", {4, 6});
  std::string text;
  try {
    g.add(add{}, {x, y}, "sum");
  } catch (error const& e) {
    text = e.what();
  }
  CHECK(text.find("operator add 'sum'") != text.npos);
  CHECK(text.find("[4,8]") != text.npos);
  CHECK(text.find("[4,6]") != text.npos);
  CHECK_THROWS_WITH_AS(g.add(add{}, {x}), doctest::Contains("has too few operands"), error);
  CHECK_THROWS_WITH_AS(g.add(concat{}, {}), doctest::Contains("no operands"), error);
  CHECK(g.node_count() == 0);
}

TEST_CASE("weights are made for operands that an operator accepts alone") {
  computation_graph g;
  int const image = g.add_input("image", {4, 3, 8, 8}), one = g.add_input("one", {});
  CHECK_THROWS_WITH_AS(g.add_with_weights(conv2d{.out = 8, .groups = 0}, {image}, "c"), doctest::Contains("not divisible by groups"), error);
  CHECK_THROWS_WITH_AS(g.add_with_weights(conv2d{.out = 0}, {image}, "c"), doctest::Contains("out must be positive"), error);
  CHECK_THROWS_WITH_AS(g.add_with_weights(linear{4}, {one}, "l"), doctest::Contains("operator linear 'l'"), error);
  CHECK_THROWS_WITH_AS(g.add_with_weights(linear{4}, {}, "l"), doctest::Contains("has too few operands"), error);
  CHECK(g.node_count() == 0);
  CHECK(g.values.size() == 2);
}

TEST_CASE("dropouts of one seed get seeds of their own, the same in every graph made alike; others keep theirs") {
  auto const seeds = [](std::initializer_list<i64> given) {
    computation_graph g;
    int x = g.add_input("x", {4, 8});
    for (i64 s : given) x = g.node(g.add(dropout{0.5, s}, {x})).out[0];
    std::vector<i64> r;
    for (graph_node const& n : g.nodes) r.push_back(n.op.as<dropout>().seed);
    return r;
  };
  CHECK(seeds({3, 4, 0}) == std::vector<i64>{3, 4, 0});
  std::vector<i64> const made = seeds({3, 3, 4, 3, 4});
  CHECK(made == seeds({3, 3, 4, 3, 4}));
  CHECK(made[0] == 3);
  CHECK(made[2] == 4);
  for (std::size_t i = 0; i < made.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) CHECK(made[i] != made[j]);
  computation_graph g;
  int const x = g.add_input("x", {4, 8});
  int const y = g.node(g.add(dropout{0.5, 3}, {x})).out[0];
  CHECK(g.node(g.append(dropout{0.5, 3}, {y})).op == any_op(dropout{0.5, 3}));
}
