// tests/ir/computation_graph.test.cpp - graphs made node by node, from parts of themselves too, and what they refuse
#include <tensorpar/ir/computation_graph.hpp>
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <tensorpar/op/operators.hpp>

using namespace tensorpar;

TEST_CASE("values and nodes may be made from shapes and operators of the same graph, however often its room moves") {
  computation_graph g;
  int const x = g.add_input("x", {4, 8});
  int last = g.node(g.add(scale{0.5}, {x})).out[0];
  for (int i = 0; i < 300; ++i) {
    int const y = g.add_input("y" + std::to_string(i), g.type(last));
    int const w = g.add_parameter("w" + std::to_string(i), g.value(y).type, op::init::ones);
    int const v = g.add_state("s" + std::to_string(i), g.type(w));
    CHECK(g.type(v) == shape{4, 8});
    last = g.node(g.add(g.node(i).op, {last})).out[0];
    REQUIRE(g.node(i + 1).op == op::any_op(scale{0.5}));
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
  CHECK_THROWS_WITH_AS(g.add_with_weights(conv2d{.out = 8, .groups = 0}, {image}, "c"), doctest::Contains("not divisible by groups"),
                       error);
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
  CHECK(g.node(g.append(dropout{0.5, 3}, {y})).op == op::any_op(dropout{0.5, 3}));
}

TEST_CASE("extents below 1 and more than 2^48 elements are refused wherever a value is made, and nothing is made") {
  i64 const huge = i64{1} << 62, half = i64{1} << 24;
  auto const refusal = [](auto const& make) {
    computation_graph g;
    int const x = g.add_input("x", {i64{1} << 24, 4}), ids = g.add_input("ids", shape({8, 4}, dtype::i32));
    int const image = g.add_input("image", {2, 3, 8, 8});
    std::size_t const values = g.values.size();
    std::string text;
    try { make(g, x, ids, image); } catch (error const& e) { text = e.what(); }
    CHECK(g.values.size() == values);
    CHECK(g.node_count() == 0);
    return text;
  };
  using graph = computation_graph;
  std::vector<std::pair<char const*, std::function<void(graph&, int, int, int)>>> const table{
      {"input 'a' of shape [0,4] has an extent below 1", [](graph& g, int, int, int) { g.add_input("a", {0, 4}); }},
      {"parameter 'a' of shape [3,-1]", [](graph& g, int, int, int) { g.add_parameter("a", {3, -1}, op::init::zeros); }},
      {"state 'a' of shape [-4611686018427387904]", [&](graph& g, int, int, int) { g.add_state("a", {-huge}); }},
      {"has more than 2^48 elements", [&](graph& g, int, int, int) { g.add_input("a", {half, half, 2}); }},
      {"has more than 2^48 elements", [&](graph& g, int, int, int) { g.add_input("a", {huge, huge, huge, huge}); }},
      {"operator embedding 'e': a weight of shape [4611686018427387904,4096] has more than 2^48 elements",
       [&](graph& g, int, int ids, int) { g.add_with_weights(embedding{huge, 4096}, {ids}, "e"); }},
      {"operator embedding 'e': a", [&](graph& g, int, int ids, int) { g.add_with_weights(embedding{1, huge}, {ids}, "e"); }},
      {"operator linear 'l': a", [&](graph& g, int x, int, int) { g.add_with_weights(linear{huge}, {x}, "l"); }},
      {"out must be positive", [](graph& g, int x, int, int) { g.add_with_weights(linear{0}, {x}, "l"); }},
      {"operator repeat: a result of shape", [&](graph& g, int x, int, int) { g.add(op::repeat_axis{0, huge}, {x}); }},
      {"operator constant: a result of shape", [&](graph& g, int, int, int) { g.add(constant{1, 2, {huge, huge}}, {}); }},
      {"operator constant: a result of shape [0]", [](graph& g, int, int, int) { g.add(constant{1, 1, {0}}, {}); }},
      {"operator contraction: a result of shape", [](graph& g, int x, int, int) { g.add(contraction("ae,bf->aebf"), {x, x}); }},
      {"element counts differ", [&](graph& g, int x, int, int) { g.add(reshape{0, 3, {huge, huge, 4}}, {x}); }},
      {"at most 2^48",
       [&](graph& g, int, int, int image) { g.add_with_weights(conv2d{.out = 2, .kernel = huge, .pad = huge}, {image}, "c"); }},
      {"at most 2^48", [&](graph& g, int, int, int image) { g.add(pool2d{huge, 1, huge / 2, true}, {image}); }},
      {"operator conv2d 'c': a", [&](graph& g, int, int, int image) { g.add_with_weights(conv2d{.out = huge}, {image}, "c"); }},
  };
  for (auto const& [text, make] : table) {
    CAPTURE(text);
    std::string const got = refusal(make);
    CAPTURE(got);
    CHECK(got.find(text) != got.npos);
  }
}

TEST_CASE("two inputs, parameters, states or outputs of one name are refused; values of different kinds may share one") {
  computation_graph g;
  int const x = g.add_input("x", {4, 8});
  g.add_parameter("x", {4}, op::init::zeros);
  g.add_state("x", {4});
  g.add_output("x", x);
  CHECK_THROWS_WITH_AS(g.add_input("x", {4, 8}), doctest::Contains("two inputs named 'x'"), error);
  CHECK_THROWS_WITH_AS(g.add_parameter("x", {4, 8}, op::init::ones), doctest::Contains("two parameters named 'x'"), error);
  CHECK_THROWS_WITH_AS(g.add_state("x", {4, 8}), doctest::Contains("two states named 'x'"), error);
  CHECK_THROWS_WITH_AS(g.add_output("x", x), doctest::Contains("two outputs named 'x'"), error);
  g.add_with_weights(linear{4}, {x}, "l");
  std::size_t const values = g.values.size();
  CHECK_THROWS_WITH_AS(g.add_with_weights(linear{8}, {x}, "l"), doctest::Contains("two parameters named 'l.0'"), error);
  CHECK(g.values.size() == values);
  computation_graph copy = g;
  CHECK_THROWS_AS(copy.add_input("x", {4}), error);
  copy.append_value(value_role::input, "x", {4});
  copy.value(x).name = "y";
  copy.values.back().name = "z";
  CHECK_NOTHROW(copy.add_input("x", {4}));                  // names that are no longer there are free
  for (int k = 0; k < 3; ++k) CHECK_NOTHROW(g.add_with_weights(linear{8}, {x}, ""));      // no name is none that could be taken
  CHECK_THROWS_WITH_AS(g.add_output("out", 99), doctest::Contains("output 'out' reads value 99"), error);
  CHECK_THROWS_WITH_AS(g.add(relu{}, {-1}), doctest::Contains("operator relu '' reads value -1"), error);
  CHECK_THROWS_WITH_AS(g.add_with_weights(linear{2}, {77}, "m"), doctest::Contains("reads value 77"), error);
}
