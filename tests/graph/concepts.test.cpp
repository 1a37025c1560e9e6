// tests/graph/concepts.test.cpp - customisation points and their laws, on every kind of model
#include "support/graph_models.hpp"
#include "support/laws/graph.hpp"
#include "support/random_graph.hpp"
#include <tensorpar/graph/digraph.hpp>
#include <tensorpar/graph/sp/relaxation.hpp>

using namespace tensorpar;

namespace {

struct both_ways {  // a member and a free function that disagree: the member is found first
  int node_count() const { return 1; }
  std::vector<int> predecessors(int) const { return {}; }
};
[[maybe_unused]] int node_count(both_ways const&) { return 99; }

trainer::network two_towers(std::vector<trainer::layer>& layers) {
  // inputs 0 and 1, towers 2 and 3, meeting in 4; the records are in no special order
  layers = {{0, "left", {}}, {1, "right", {}}, {2, "dense", {}}, {3, "dense", {}}, {4, "add", {}}};
  layers[2].inputs = {&layers[0]};
  layers[3].inputs = {&layers[1]};
  layers[4].inputs = {&layers[2], &layers[3]};
  trainer::network g;
  for (auto const& l : layers) g.layers.push_back(&l);
  return g;
}

}  // namespace

TEST_CASE("graph laws hold for every model") {
  tests::random_source r{7};
  for (int i = 0; i < 20; ++i) {
    tests::lists const g = tests::random_dag(r, 1 + r.below(9), 40);
    tests::check_topology_laws(g);
    tests::check_topology_laws(graph::adjacency(g));
    tests::check_topology_laws(graph::digraph(g));
    tests::check_topology_laws(graph::reversed(g));
    graph::digraph const d(g);
    tests::check_topology_laws(graph::reversed(d));
    tests::check_topology_laws(graph::induced(g, {0}));
  }
  tests::check_topology_laws(tests::lists{});
  tests::check_topology_laws(archetypes::graph(0));
  std::vector<trainer::layer> layers;
  tests::check_topology_laws(two_towers(layers));
}

TEST_CASE("a member is found before a free function") { CHECK(tensorpar::graph::node_count(both_ways{}) == 1); }

TEST_CASE("predecessor lists of any integer type are a graph") {
  std::vector<std::vector<std::size_t>> const g{{}, {0}, {0}, {1, 2}};
  CHECK(graph::is_series_parallel(g));
  CHECK(graph::to_string(*graph::sp_decomposition(g)) == "S(0,P(1,2),3)");
}

TEST_CASE("a trainer's own graph goes through all algorithms without copying") {
  std::vector<trainer::layer> layers;
  trainer::network const g = two_towers(layers);
  CHECK(graph::is_series_parallel(g));
  CHECK(graph::to_string(*graph::sp_decomposition(g)) == "S(P(S(0,2),S(1,3)),4)");
  CHECK(graph::topological_order(g) == std::vector<int>{0, 1, 2, 3, 4});
  CHECK(graph::relax(g).added.empty());
  CHECK(graph::sinks(g) == std::vector<int>{4});
}

TEST_CASE("a node that does not exist is named") {
  tests::lists const g{{}, {0, 5}};
  CHECK_THROWS_WITH_AS(graph::adjacency{g},
                       "the graph names a node that does not exist: 5 (at predecessors of node 1); valid: node ids 0 to 1", error);
  CHECK_THROWS_AS((void)graph::is_series_parallel(g), error);
  CHECK_THROWS_AS((void)graph::topological_order(tests::lists{{-1}}), error);
}
