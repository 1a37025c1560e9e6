// tensorpar/graph/concepts.hpp - what a graph is: two customisation points, one concept
#pragma once
#include <concepts>
#include <type_traits>
#include <utility>

namespace tensorpar::graph {

/// `int node_count(g)`, `predecessors(g, v)` and the optional `successors(g, v)` are customisation points.
/// Ordered lookup:
///   1. the member `g.node_count()`, `g.predecessors(v)`, `g.successors(v)`;
///   2. a free function of that name found by argument-dependent lookup;
///   3. default: a container of containers of node ids (`std::vector<std::vector<int>>`) is read as its
///      predecessor lists. `successors` has no default: algorithms that need both directions build an
///      `adjacency` from the predecessors.
namespace cpo {

template <class R>
concept node_range = requires(R&& r) {
  { *r.begin() } -> std::convertible_to<int>;
  { r.begin() != r.end() } -> std::convertible_to<bool>;
};

// so that a vector of strings is no graph
template <class T> concept plain_id = std::integral<T> && sizeof(T) > 1;

template <class G>
concept predecessor_lists = requires(G const& g) {
  { g.size() } -> std::convertible_to<int>;
  { g[g.size()] } -> node_range;
  requires plain_id<std::remove_cvref_t<decltype(*g[g.size()].begin())>>;
};

// These make the names known, so that the calls below look functions up by argument only; they are never
// called.
void node_count() = delete;
void predecessors() = delete;
void successors() = delete;

template <class G>
concept has_node_count = requires(G const& g) {
  { g.node_count() } -> std::convertible_to<int>;
};
template <class G>
concept adl_node_count = requires(G const& g) {
  { node_count(g) } -> std::convertible_to<int>;
};
template <class G>
concept has_predecessors = requires(G const& g, int v) {
  { g.predecessors(v) } -> node_range;
};
template <class G>
concept adl_predecessors = requires(G const& g, int v) {
  { predecessors(g, v) } -> node_range;
};
template <class G>
concept has_successors = requires(G const& g, int v) {
  { g.successors(v) } -> node_range;
};
template <class G>
concept adl_successors = requires(G const& g, int v) {
  { successors(g, v) } -> node_range;
};

struct node_count_fn {
  template <class G>
    requires(has_node_count<G> || adl_node_count<G> || predecessor_lists<G>)
  constexpr int operator()(G const& g) const {
    if constexpr (has_node_count<G>) return static_cast<int>(g.node_count());
    else if constexpr (adl_node_count<G>) return static_cast<int>(node_count(g));
    else return static_cast<int>(g.size());
  }
};

struct predecessors_fn {
  template <class G>
    requires(has_predecessors<G> || adl_predecessors<G> || predecessor_lists<G>)
  constexpr decltype(auto) operator()(G const& g, int v) const {
    if constexpr (has_predecessors<G>) return g.predecessors(v);
    else if constexpr (adl_predecessors<G>) return predecessors(g, v);
    else return g[static_cast<decltype(g.size())>(v)];
  }
};

struct successors_fn {
  template <class G>
    requires(has_successors<G> || adl_successors<G>)
  constexpr decltype(auto) operator()(G const& g, int v) const {
    if constexpr (has_successors<G>) return g.successors(v);
    else return successors(g, v);
  }
};

}  // namespace cpo

// The objects sit in an inline namespace: a type of this library may still have a hidden friend of the same
// name.
inline namespace cpos {
inline constexpr cpo::node_count_fn node_count{};
inline constexpr cpo::predecessors_fn predecessors{};
inline constexpr cpo::successors_fn successors{};
}  // namespace cpos

/// A finite directed graph seen as structure only.
/// Valid expressions: `node_count(g)` -> int; `predecessors(g, v)` -> a range (member begin/end) of node ids.
/// Semantics: nodes are 0 .. node_count(g)-1, in no particular order unless an algorithm says so; a repeated
///   predecessor means the same as one. Every id in a range lies in [0, node_count(g)).
/// Laws: `node_count(g) >= 0`; two calls with equal arguments give equal answers (regular).
/// Complexity expected: node_count O(1); walking all predecessor ranges O(V + E).
/// Minimal definition: these two. Models: `std::vector<std::vector<int>>`, `digraph`, `adjacency`,
/// `subgraph`, any user type.
template <class G>
concept topology = requires(G const& g, int v) {
  { graph::node_count(g) } -> std::convertible_to<int>;
  { graph::predecessors(g, v) } -> cpo::node_range;
};

/// A topology that also walks forward. Law: v in successors(g, u) exactly if u in predecessors(g, v).
/// Models: `digraph`, `adjacency`, `reversed_view`, `subgraph`.
template <class G>
concept bidirectional_topology = topology<G> && requires(G const& g, int v) {
  { graph::successors(g, v) } -> cpo::node_range;
};

/// What a node costs: a callable `w(v)` or an indexable `w[v]`, giving a number. Precondition of every user:
/// not negative.
template <class W>
concept node_weights = requires(W const& w) { { w(0) } -> std::convertible_to<double>; } ||
                       requires(W const& w) { { w[0] } -> std::convertible_to<double>; };

namespace detail {
template <node_weights W> constexpr auto weight_at(W const& w, int v) {
  if constexpr (requires { w(v); }) return w(v);
  else if constexpr (requires { w.size(); }) return w[static_cast<decltype(w.size())>(v)];
  else return w[v];
}
template <class W> using weight_type = decltype(weight_at(std::declval<W const&>(), 0));

/// Every node costs one.
struct unit_weight {
  constexpr int operator()(int) const { return 1; }
};
}  // namespace detail

}  // namespace tensorpar::graph
