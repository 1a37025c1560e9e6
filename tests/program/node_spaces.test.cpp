// tests/program/node_spaces.test.cpp - loops of all nodes at once are those of each node
#include <doctest/doctest.h>

#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/program/node_spaces.hpp>
#include <tensorpar/zoo/registry.hpp>

using namespace tensorpar;

TEST_CASE("spaces of a graph are the spaces of its nodes") {
  for (zoo::entry const& e : zoo::entries()) {
    CAPTURE(e.name);
    training_graph const t = differentiate(zoo::make(e.name, e.samples_per_device));
    std::vector<ir::iteration_space> const all = passes::spaces_of(t.graph);
    REQUIRE(all.size() == t.graph.nodes.size());
    for (int v = 0; v < t.graph.node_count(); ++v) {
      ir::iteration_space const alone = ir::space_of(t.graph, v);
      auto const& x = all[static_cast<std::size_t>(v)].loops;
      REQUIRE(x.size() == alone.loops.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        ir::node_loop const& y = alone.loops[i];
        REQUIRE((x[i].letter == y.letter && x[i].units == y.units && x[i].reduced == y.reduced && x[i].in == y.in && x[i].out == y.out));
      }
    }
  }
}

TEST_CASE("one operator on other shapes has a space of its own") {
  computation_graph g;
  int const a = g.add_input("a", {6, 4}), b = g.add_input("b", {6, 8});
  for (int x : {a, b, a}) g.add(relu{}, {x});
  std::vector<ir::iteration_space> const all = passes::spaces_of(g);
  CHECK(all[0].loops.back().units == 4);
  CHECK(all[1].loops.back().units == 8);
  CHECK(all[2].loops.back().units == 4);
}
