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
using archetypes::graph;

static_assert(topology<graph> && !bidirectional_topology<graph>);
static_assert(topology<std::vector<std::vector<int>>> && topology<std::vector<std::vector<std::size_t>>>);
static_assert(topology<std::deque<std::deque<short>>>);
static_assert(topology<trainer::network> && !bidirectional_topology<trainer::network>);
static_assert(bidirectional_topology<digraph> && bidirectional_topology<adjacency> && bidirectional_topology<subgraph>);
static_assert(bidirectional_topology<reversed_view<digraph>> && bidirectional_topology<reversed_view<reversed_view<digraph>>>);

static_assert(!topology<int> && !topology<std::vector<int>> && !topology<std::string>);
static_assert(!topology<std::vector<std::string>>);
static_assert(!topology<archetypes::no_node_count> && !topology<archetypes::no_predecessors>);
static_assert(!topology<archetypes::predecessors_no_range>);
static_assert(!topology<archetypes::predecessors_no_ids>);
static_assert(!topology<archetypes::node_count_no_number> && !topology<archetypes::not_const>);

// a type of this very namespace may customise by hidden friends: the customisation points do not collide with them
namespace tensorpar {
struct befriended {
  friend constexpr int node_count(befriended const&) { return 2; }
  friend constexpr slice<int> predecessors(befriended const&, int v) { return {&zero, v}; }
  static constexpr int zero = 0;
};
}  // namespace tensorpar
static_assert(topology<befriended> && tensorpar::node_count(befriended{}) == 2 && is_series_parallel(befriended{}));

static_assert(node_weights<std::vector<double>> && node_weights<double const*> && node_weights<int (*)(int)> && !node_weights<int>);
static_assert(!node_weights<std::vector<std::string>> && node_weights<detail::unit_weight>);

static_assert(std::regular<digraph> && std::regular<sp_tree> && std::regular<sp_binary> && std::regular<edge>);

// the alternation of series and parallel is in the types: a part of a series asks for a visitor of leaves and parallel compositions only
struct sees_leaf { void operator()(int) const; };
struct sees_series { void operator()(sp_series) const; };
struct sees_parallel { void operator()(sp_parallel) const; };
template <class Part, class... F> concept visits = requires(Part p, F... f) { p.visit(f...); };
static_assert(visits<sp_series_part, sees_leaf, sees_parallel> && !visits<sp_series_part, sees_leaf, sees_series>);
static_assert(visits<sp_parallel_part, sees_leaf, sees_series> && !visits<sp_parallel_part, sees_leaf, sees_parallel>);
static_assert(visits<sp_tree const, sees_leaf, sees_series, sees_parallel> && !visits<sp_tree const, sees_leaf, sees_series>);

struct yes {
  constexpr bool operator()(int, int) const { return true; }
};
struct counts {
  int* n;
  constexpr bool operator()(slice<int>) const { return ++*n, true; }
};

// the algorithms that run at compile time, on the archetype
constexpr int matches() {
  int n = 0;
  for_each_match(graph(0), graph(0), yes{}, counts{&n});
  return n;
}
static_assert(is_series_parallel(graph(0)) && is_acyclic(graph(0)) && find_cycle(graph(0)).empty());
static_assert(topological_order(graph(0)) == std::vector<int>{0, 1, 2, 3} && edges(graph(0)).size() == 4);
static_assert(sources(graph(0)) == std::vector<int>{0} && sinks(graph(0)) == std::vector<int>{3});
static_assert(longest_path(graph(0)).length == 3 && weakly_connected_components(graph(0)).count == 1);
static_assert(reachability(graph(0)).reaches(0, 3));
static_assert(transitive_reduction(graph(0)).edge_count() == 4 && transitive_closure(graph(0)).edge_count() == 5);
static_assert(dominators(graph(0)).immediate(3) == 0 && post_dominators(graph(0)).immediate(0) == 3);
static_assert(is_convex(graph(0), {0, 1}) && !is_convex(graph(0), {0, 3}) && convex_closure(graph(0), {0, 3}).size() == 4);
static_assert(induced(graph(0), {3, 1}).structure.edge_count() == 1 && contracted(graph(0), {0, 1, 1, 2}, 3).edge_count() == 2);
static_assert(node_count(reversed(graph(0))) == 4 && series_pieces(graph(0)).count == 3 && matches() == 2);
static_assert(digraph(graph(0)) == digraph(4, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}) && find_match(graph(0), graph(0), yes{}).size() == 4);

// and those that run at run time only
void instantiate() {
  graph const g(0);
  (void)sp_decomposition(g);
  (void)sp_decomposition(g, detail::unit_weight{});
  (void)keeps_dependencies(g, sp_tree::parse("0"));
  (void)relax(g);
  (void)relax_by_strata(g);
  (void)relax_escribano(g);
  (void)relax_flexible(g);
  (void)relax_exactly(g);
  (void)relax_by_duplication(g);
}
