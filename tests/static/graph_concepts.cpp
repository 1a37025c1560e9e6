// tests/static/graph_concepts.cpp - models, archetype and negatives of the graph concepts; every algorithm takes the archetype
#include <tensorpar/graph/convexity.hpp>
#include <tensorpar/graph/digraph.hpp>
#include <tensorpar/graph/dominators.hpp>
#include <tensorpar/graph/match.hpp>
#include <tensorpar/graph/sp/binary.hpp>
#include <tensorpar/graph/sp/duplication.hpp>
#include <tensorpar/graph/sp/relaxation.hpp>
#include <deque>
#include "support/graph_models.hpp"

using namespace tensorpar;

static_assert(graph::topology<archetypes::graph> && !graph::bidirectional_topology<archetypes::graph>);
static_assert(graph::topology<std::vector<std::vector<int>>> && graph::topology<std::vector<std::vector<std::size_t>>>);
static_assert(graph::topology<std::deque<std::deque<short>>>);
static_assert(graph::topology<trainer::network> && !graph::bidirectional_topology<trainer::network>);
static_assert(graph::bidirectional_topology<graph::digraph> && graph::bidirectional_topology<graph::adjacency> &&
              graph::bidirectional_topology<graph::subgraph>);
static_assert(graph::bidirectional_topology<graph::reversed_view<graph::digraph>> &&
              graph::bidirectional_topology<graph::reversed_view<graph::reversed_view<graph::digraph>>>);

static_assert(!graph::topology<int> && !graph::topology<std::vector<int>> && !graph::topology<std::string>);
static_assert(!graph::topology<std::vector<std::string>>);
static_assert(!graph::topology<archetypes::no_node_count> && !graph::topology<archetypes::no_predecessors>);
static_assert(!graph::topology<archetypes::predecessors_no_range>);
static_assert(!graph::topology<archetypes::predecessors_no_ids>);
static_assert(!graph::topology<archetypes::node_count_no_number> && !graph::topology<archetypes::not_const>);

// a type of this very namespace may customise by hidden friends: the customisation points do not collide with them
namespace tensorpar {
struct befriended {
  friend constexpr int node_count(befriended const&) { return 2; }
  friend constexpr core::slice<int> predecessors(befriended const&, int v) { return {&zero, v}; }
  static constexpr int zero = 0;
};
}  // namespace tensorpar
static_assert(graph::topology<befriended> && tensorpar::graph::node_count(befriended{}) == 2 && graph::is_series_parallel(befriended{}));

static_assert(graph::node_weights<std::vector<double>> && graph::node_weights<double const*> && graph::node_weights<int (*)(int)> &&
              !graph::node_weights<int>);
static_assert(!graph::node_weights<std::vector<std::string>> && graph::node_weights<graph::detail::unit_weight>);

static_assert(std::regular<graph::digraph> && std::regular<graph::sp_tree> && std::regular<graph::sp_binary> && std::regular<graph::edge>);

// the alternation of series and parallel is in the types: a part of a series asks for a visitor of leaves and parallel compositions only
struct sees_leaf { void operator()(int) const; };
struct sees_series { void operator()(graph::sp_series) const; };
struct sees_parallel { void operator()(graph::sp_parallel) const; };
template <class Part, class... F> concept visits = requires(Part p, F... f) { p.visit(f...); };
static_assert(visits<graph::sp_series_part, sees_leaf, sees_parallel> && !visits<graph::sp_series_part, sees_leaf, sees_series>);
static_assert(visits<graph::sp_parallel_part, sees_leaf, sees_series> && !visits<graph::sp_parallel_part, sees_leaf, sees_parallel>);
static_assert(visits<graph::sp_tree const, sees_leaf, sees_series, sees_parallel> && !visits<graph::sp_tree const, sees_leaf, sees_series>);

struct yes {
  constexpr bool operator()(int, int) const { return true; }
};
struct counts {
  int* n;
  constexpr bool operator()(core::slice<int>) const { return ++*n, true; }
};

// the algorithms that run at compile time, on the archetype
constexpr int matches() {
  int n = 0;
  graph::for_each_match(archetypes::graph(0), archetypes::graph(0), yes{}, counts{&n});
  return n;
}
static_assert(graph::is_series_parallel(archetypes::graph(0)) && graph::is_acyclic(archetypes::graph(0)) &&
              graph::find_cycle(archetypes::graph(0)).empty());
static_assert(graph::topological_order(archetypes::graph(0)) == std::vector<int>{0, 1, 2, 3} &&
              graph::edges(archetypes::graph(0)).size() == 4);
static_assert(graph::sources(archetypes::graph(0)) == std::vector<int>{0} && graph::sinks(archetypes::graph(0)) == std::vector<int>{3});
static_assert(graph::longest_path(archetypes::graph(0)).length == 3 && graph::weakly_connected_components(archetypes::graph(0)).count == 1);
static_assert(graph::reachability(archetypes::graph(0)).reaches(0, 3));
static_assert(graph::transitive_reduction(archetypes::graph(0)).edge_count() == 4 &&
              graph::transitive_closure(archetypes::graph(0)).edge_count() == 5);
static_assert(graph::dominators(archetypes::graph(0)).immediate(3) == 0 && graph::post_dominators(archetypes::graph(0)).immediate(0) == 3);
static_assert(graph::is_convex(archetypes::graph(0), {0, 1}) && !graph::is_convex(archetypes::graph(0), {0, 3}) &&
              graph::convex_closure(archetypes::graph(0), {0, 3}).size() == 4);
static_assert(graph::induced(archetypes::graph(0), {3, 1}).structure.edge_count() == 1 &&
              graph::contracted(archetypes::graph(0), {0, 1, 1, 2}, 3).edge_count() == 2);
static_assert(graph::node_count(graph::reversed(archetypes::graph(0))) == 4 && graph::series_pieces(archetypes::graph(0)).count == 3 &&
              matches() == 2);
static_assert(graph::digraph(archetypes::graph(0)) == graph::digraph(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}) &&
              graph::find_match(archetypes::graph(0), archetypes::graph(0), yes{}).size() == 4);

// and those that run at run time only
void instantiate() {
  archetypes::graph const g(0);
  (void)graph::sp_decomposition(g);
  (void)graph::sp_decomposition(g, graph::detail::unit_weight{});
  (void)graph::keeps_dependencies(g, graph::sp_tree::parse("0"));
  (void)graph::relax(g);
  (void)graph::relax_by_strata(g);
  (void)graph::relax_escribano(g);
  (void)graph::relax_flexible(g);
  (void)graph::relax_exactly(g);
  (void)graph::relax_by_duplication(g);
}
