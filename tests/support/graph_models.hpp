// tests/support/graph_models.hpp - graph types of users: an archetype with nothing but the minimum, and a trainer's own graph
#pragma once
#include <string>
#include <vector>

namespace archetypes {

/// A node id and a range that can do only what the concept asks for.
struct node_id {
  int i;
  constexpr operator int() const { return i; }
};
struct id_end {};
struct id_iterator {
  int const* p;
  int const* e;
  constexpr node_id operator*() const { return {*p}; }
  constexpr id_iterator& operator++() { ++p; return *this; }
  constexpr bool operator!=(id_end) const { return p != e; }
};
struct id_range {
  int const *b, *e;
  constexpr id_iterator begin() const { return {b, e}; }
  constexpr id_end end() const { return {}; }
};

/// The minimal definition, by members: 0 -> 1, 0 -> 2, 1 -> 3, 2 -> 3. No copy, no default construction, no successors.
struct graph {
  constexpr explicit graph(int) {}
  graph(graph const&) = delete;
  graph& operator=(graph const&) = delete;
  constexpr int node_count() const { return 4; }
  constexpr id_range predecessors(int v) const { return {from + start[v], from + start[v + 1]}; }
  static constexpr int from[] = {0, 0, 1, 2}, start[] = {0, 0, 1, 2, 4};
};

/// Each lacks exactly one requirement.
struct no_node_count {
  std::vector<int> predecessors(int) const;
};
struct no_predecessors {
  int node_count() const;
};
struct predecessors_no_range {
  int node_count() const;
  int predecessors(int) const;
};
struct predecessors_no_ids {
  int node_count() const;
  std::vector<std::string> predecessors(int) const;
};
struct node_count_no_number {
  std::string node_count() const;
  std::vector<int> predecessors(int) const;
};
struct not_const {
  int node_count();
  std::vector<int> predecessors(int);
};

}  // namespace archetypes

/// A fictitious trainer: layers know their inputs by pointer to the layer's record; two free functions make it a topology.
namespace trainer {

struct layer {
  int index;
  std::string name;
  std::vector<layer const*> inputs;
};
struct network {
  std::vector<layer const*> layers;
};

/// Walks the inputs of a layer as node ids, without copying.
struct input_ids {
  std::vector<layer const*> const* of;
  struct iterator {
    layer const* const* p;
    int operator*() const { return (*p)->index; }
    iterator& operator++() { ++p; return *this; }
    bool operator!=(iterator o) const { return p != o.p; }
  };
  iterator begin() const { return {of->data()}; }
  iterator end() const { return {of->data() + of->size()}; }
};

inline int node_count(network const& g) { return static_cast<int>(g.layers.size()); }
inline input_ids predecessors(network const& g, int v) { return {&g.layers[static_cast<std::size_t>(v)]->inputs}; }

}  // namespace trainer
