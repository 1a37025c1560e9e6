// tests/ir/rebatch.test.cpp - a graph on a larger batch
#include <tensorpar/ir/rebatch.hpp>
#include <tensorpar/op/operators.hpp>

#include <doctest/doctest.h>

#include "support/small_graphs.hpp"

using namespace tests;

TEST_CASE("only the batch grows: ids, operators and weights stay") {
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()}) {
    CHECK(tensorpar::ir::rebatch(g, 1).hash() == g.hash());
    computation_graph const r = tensorpar::ir::rebatch(g, 6);
    CHECK(r.hash() == tensorpar::ir::rebatch(tensorpar::ir::rebatch(g, 2), 3).hash());
    CHECK(r.hash() != g.hash());
    REQUIRE(r.values.size() == g.values.size());
    for (std::size_t x = 0; x < g.values.size(); ++x) {
      graph_value const &a = g.values[x], &b = r.values[x];
      CHECK(a.producer == b.producer);
      i64 const times = a.type.rank ? b.type.elements() / a.type.elements() : 1;
      if (a.role == value_role::parameter) CHECK(times == 1);
      if (a.role == value_role::input) CHECK(b.type.d[0].n == 6 * a.type.d[0].n);
      CHECK((times == 1 || times == 6));
    }
    for (int v = 0; v < g.node_count(); ++v) CHECK(r.node(v).op == g.node(v).op);
  }
}

TEST_CASE("an operator that fixes the batch is named") {
  computation_graph g;
  int const x = g.add_input("x", {4, 6}), y = g.add_input("y", {4, 6});
  int const v = g.add(slice_axis{0, 0, 4}, {x}, "cut");
  g.add(add{}, {out(g, v), y}, "sum");
  CHECK_THROWS_WITH_AS(tensorpar::ir::rebatch(g, 2), doctest::Contains("'cut' cannot run on 2 times its batch"), error);
  CHECK_THROWS_WITH_AS(tensorpar::ir::rebatch(g, 0), doctest::Contains("a factor of 1 or more"), error);
  computation_graph h;
  int const a = h.add_input("a", {4, 6}), t = h.add_with_weights(transpose{0, 1}, {a}, "turn");
  h.add_with_weights(linear{3}, {out(h, t)}, "mix");
  CHECK_THROWS_WITH_AS(tensorpar::ir::rebatch(h, 2), doctest::Contains("its weights depend on the batch"), error);
}

TEST_CASE("operators that cut, merge or join samples are named: rebatched, they would lose some or mix them up") {
  computation_graph halves;
  int const x = halves.add_input("x", {4, 6});
  int const a = halves.add(slice_axis{0, 0, 2}, {x}, "first"), b = halves.add(slice_axis{0, 2, 2}, {x}, "second");
  halves.add(add{}, {out(halves, a), out(halves, b)}, "sum");
  CHECK_THROWS_WITH_AS(tensorpar::ir::rebatch(halves, 2),
                       doctest::Contains("'first' cannot run on 2 times its batch: it does not take samples"), error);
  computation_graph turned;
  int const y = turned.add_input("y", {2, 3, 4}), t = turned.add(transpose{0, 1}, {y}, "turn");
  CHECK(tensorpar::ir::rebatch(turned, 2).type(out(turned, t)).d[1].n == 4);
  turned.add(merge_axes{0}, {out(turned, t)}, "merge");
  CHECK_THROWS_WITH_AS(tensorpar::ir::rebatch(turned, 2), doctest::Contains("'merge' cannot run"), error);
  computation_graph straight;
  int const z = straight.add_input("z", {2, 3, 4}), m = straight.add(merge_axes{0}, {z}, "merge");
  CHECK(tensorpar::ir::rebatch(straight, 2).type(out(straight, m)).d[0].n == 12);
  computation_graph joined;
  int const p = joined.add_input("p", {2, 3}), q = joined.add_input("q", {2, 3});
  joined.add(concat{0}, {p, q}, "pile");
  CHECK_THROWS_WITH_AS(tensorpar::ir::rebatch(joined, 2), doctest::Contains("'pile' cannot run"), error);
}

TEST_CASE("sizes that no device holds are refused before they overflow") {
  computation_graph g;
  g.add_input("x", {4, 6});
  CHECK_THROWS_WITH_AS(tensorpar::ir::rebatch(g, i64{1} << 47), doctest::Contains("2^48"), error);
  CHECK_THROWS_WITH_AS(tensorpar::ir::rebatch(g, i64{1} << 62), doctest::Contains("2^48"), error);
}
