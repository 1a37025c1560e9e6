// tests/typed/tables.test.cpp - a model as tables: operators with their attributes, producers, and how often repeated blocks run
#include <tensorpar/typed/tables.hpp>
#include <doctest/doctest.h>

#include <tensorpar/graph/concepts.hpp>
#include <tensorpar/graph/sp/series_parallel.hpp>
#include <tensorpar/op/kinds/contraction.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>

using namespace tensorpar;

namespace {
static_assert(graph::topology<graph_view>);
static_assert(model_complaint{}.ok());

// x -> scale(0.5) -> relu -> scale(2), the last in a block that runs 3 times within one that runs 2 times
constexpr i64 half = std::bit_cast<i64>(0.5), two = std::bit_cast<i64>(2.0);
constexpr i64 attrs[] = {half, two};
constexpr int operands[] = {0, 1, 2}, producers[] = {0, 1};
constexpr model_node nodes[] = {{&op::info<scale>, "first", {"m.cpp", 7}, 0, 0, 1, 1, 1, 1, 0, 0, -1},
                                {&op::info<relu>, nullptr, {"m.cpp", 8}, 1, 1, 1, 1, 2, 1, 0, 1, 0},
                                {&op::info<scale>, nullptr, {"m.cpp", 9}, 1, 2, 1, 1, 3, 1, 1, 1, 1}};
constexpr model_block blocks[] = {{2, -1, 1, 3, 2, 4, 0, {"m.cpp", 8}}, {3, 0, 2, 3, 3, 4, 0, {"m.cpp", 9}}};
graph_view model() {
  graph_view g{};
  g.nodes = {nodes, 3};
  g.operands = {operands, 3};
  g.producers = {producers, 2};
  g.attrs = {attrs, 2};
  g.blocks = {blocks, 2};
  return g;
}
}  // namespace

TEST_CASE("operators come back with attributes, names and places") {
  graph_view const g = model();
  CHECK(g.node_count() == 3);
  CHECK(g.op(0) == op::any_op(scale{0.5}));
  CHECK(g.op(2) == op::any_op(scale{2}));
  CHECK(g.op(1).is<relu>());
  CHECK(std::string_view(g.op(0).name) == "first");
  CHECK(g.op(1).name == nullptr);
  CHECK(g.op(2).at.line == 9);
}

TEST_CASE("predecessors are the operators that make the operands; inputs have none") {
  graph_view const g = model();
  CHECK(g.predecessors(0).n == 0);
  REQUIRE(g.predecessors(1).n == 1);
  CHECK(g.predecessors(1)[0] == 0);
  CHECK(g.predecessors(2)[0] == 1);
  CHECK(graph::is_series_parallel(g));
}

TEST_CASE("blocks within blocks run as often as both say; outside everything is once") {
  graph_view const g = model();
  CHECK(g.times(-1) == 1);
  CHECK(g.times(0) == 2);
  CHECK(g.times(1) == 6);
}
