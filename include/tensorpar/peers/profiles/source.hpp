// tensorpar/peers/profiles/source.hpp - where in a profile something stands: JSON values and graphs that can
// complain
#pragma once
#include <algorithm>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/json.hpp>
#include <tensorpar/core/numbers.hpp>
#include <tensorpar/graph/order.hpp>
#include <utility>
#include <vector>

namespace tensorpar::peers {

/// The structure of a profiled graph: a user-type graph that models `topology` (nodes are 0 .. n-1 in the
/// file's order, each edge once). Every profile below derives from it and adds its numbers.
struct profile_graph {
  std::vector<std::vector<int>> inputs;  ///< by node, ascending

  int node_count() const { return static_cast<int>(inputs.size()); }
  std::vector<int> const& predecessors(int v) const { return inputs[idx(v)]; }
  friend bool operator==(profile_graph const&, profile_graph const&) = default;
};

namespace detail {

/// A JSON value and the way to it; the way is spelled only when something is wrong. Lives on the stack of the
/// reader above it.
struct profile_value {
  core::json const* at;
  std::string const* file;
  profile_value const* above = nullptr;
  std::string_view key{};
  int entry = -1;

  std::string path() const {
    std::string const before = above ? above->path() : std::string();
    if (entry >= 0) return before + "[" + std::to_string(entry) + "]";
    if (key.empty()) return before;
    return before.empty() ? std::string(key) : before + "." + std::string(key);
  }
  [[noreturn]] void fail(std::string const& what, std::string const& valid) const {
    std::string const p = path();
    throw error(what, p.empty() ? *file : *file + ": " + p, valid);
  }
  void object() const {
    if (!at->is_object()) fail("not an object", "an object");
  }
  bool has(std::string_view name) const { return at->find(name) != at->end(); }
  profile_value operator[](std::string_view name) const {
    object();
    auto const it = at->find(name);
    if (it == at->end()) fail("the key \"" + std::string(name) + "\" is missing", "an object that has it");
    return {&*it, file, this, name, -1};
  }
  profile_value operator[](int i) const { return {&(*at)[idx(i)], file, this, {}, i}; }
  int array(int least, int most) const {
    if (!at->is_array()) fail("not a list", "a list");
    if (at->size() < idx(least) || at->size() > idx(most))
      fail("a list of " + std::to_string(at->size()),
           "from " + std::to_string(least) + " to " + std::to_string(most) + " entries");
    return static_cast<int>(at->size());
  }
  std::string text() const {
    if (!at->is_string()) fail("not a text", "a text");
    return at->get<std::string>();
  }
  /// Whole, also where it is written as 3.0.
  i64 integer(i64 least, i64 most) const {
    auto const valid = [&] {
      return "a whole number from " + std::to_string(least) + " to " + std::to_string(most);
    };
    if (!at->is_number()) fail("not a number", valid());
    double const x = at->get<double>();
    if (!(x >= static_cast<double>(least) && x <= static_cast<double>(most)) ||
        x != static_cast<double>(static_cast<i64>(x)))
      fail(at->dump() + " is no such number", valid());
    return static_cast<i64>(x);
  }
  double number(double least = 0, double most = core::profile_max_number) const {
    auto const valid = [&] { return "a number from " + core::json(least).dump() + " to "
                            + core::json(most).dump(); };
    if (!at->is_number()) fail("not a number", valid());
    double const x = at->get<double>();
    if (!(x >= least && x <= most)) fail(at->dump() + " is out of range", valid());
    return x;
  }
  /// true, false, 1 or 0.
  bool flag() const {
    if (at->is_boolean()) return at->get<bool>();
    return integer(0, 1) == 1;
  }
};

/// From the ids of a file, which need be neither dense nor ordered, to nodes. O(log n) a look-up.
struct profile_ids {
  std::vector<std::pair<i64, int>> sorted;

  int find(i64 id) const {
    auto const it = std::lower_bound(sorted.begin(), sorted.end(), std::pair<i64, int>{id, -1});
    return it != sorted.end() && it->first == id ? it->second : -1;
  }
};

/// The nodes' ids by the key "id"; complains about one that stands twice.
inline profile_ids profile_node_ids(profile_value const& nodes, int n) {
  profile_ids r;
  for (int v = 0; v < n; ++v) {
    profile_value const node = nodes[v];
    r.sorted.push_back({node["id"].integer(0, i64{1} << 53), v});
  }
  std::sort(r.sorted.begin(), r.sorted.end());
  auto const twice = std::ranges::adjacent_find(r.sorted, {}, &std::pair<i64, int>::first);
  if (twice != r.sorted.end()) {
    profile_value const node = nodes[std::next(twice)->second];
    node["id"].fail("the id " + std::to_string(twice->first) + " stands twice", "one node per id");
  }
  return r;
}

/// One end of an edge, by the key `end`.
inline int profile_edge_end(profile_value const& e, std::string_view end, profile_ids const& ids) {
  profile_value const x = e[end];
  i64 const id = x.integer(0, i64{1} << 53);
  int const v = ids.find(id);
  if (v < 0) x.fail("no node has the id " + std::to_string(id), "the id of a node");
  return v;
}

/// Sorts the lists of predecessors and refuses a cycle, named by `label(v)`.
template <class Label>
void finish_profile_graph(profile_graph& g, std::string const& where, Label const& label) {
  for (auto& list : g.inputs) std::sort(list.begin(), list.end());
  std::vector<int> const cycle = graph::find_cycle(g);
  if (cycle.empty()) return;
  std::string path;
  for (int v : cycle) path += label(v) + " -> ";
  throw error("the graph has a cycle: " + path + label(cycle.front()), where, "a directed acyclic graph");
}

}  // namespace detail

}  // namespace tensorpar::peers
