// tensorpar/peers/optima/max_load_space.hpp - what dnn-partitioning's exact search may split: groups of nodes
// that stay together
#pragma once
#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/peers/profiles/dnn_partitioning.hpp>
#include <tuple>
#include <utility>
#include <vector>

namespace tensorpar::peers {

namespace detail {

/// Sets that merge; the smallest member names a set. Near O(1) amortised.
struct merged_sets {
  std::vector<int> up;
  explicit merged_sets(int n) : up(idx(n)) { std::iota(up.begin(), up.end(), 0); }
  int find(int x) {
    while (up[idx(x)] != x) x = up[idx(x)] = up[idx(up[idx(x)])];
    return x;
  }
  void join(int x, int y) {
    x = find(x), y = find(y);
    up[idx(std::max(x, y))] = std::min(x, y);
  }
};

/// Strongly connected components by two passes over depth-first orders (Kosaraju), without recursion. By
/// node, its component.
inline std::vector<int> strong_components(std::vector<std::vector<int>> const& next) {
  int const n = static_cast<int>(next.size());
  std::vector<std::vector<int>> back(next.size());
  for (int v = 0; v < n; ++v)
    for (int w : next[idx(v)]) back[idx(w)].push_back(v);
  std::vector<int> order, part(next.size(), -1);
  std::vector<char> seen(next.size(), 0);
  std::vector<std::pair<int, std::size_t>> stack;
  for (int start = 0; start < n; ++start) {
    if (seen[idx(start)]) continue;
    seen[idx(start)] = 1;
    stack.push_back({start, 0});
    while (!stack.empty()) {
      auto& [v, i] = stack.back();
      if (i == next[idx(v)].size()) {
        order.push_back(v);
        stack.pop_back();
        continue;
      }
      int const w = next[idx(v)][i++];
      if (!std::exchange(seen[idx(w)], 1)) stack.push_back({w, 0});
    }
  }
  int parts = 0;
  std::vector<int> work;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (part[idx(*it)] >= 0) continue;
    part[idx(*it)] = parts;
    for (work.push_back(*it); !work.empty();) {
      int const v = work.back();
      work.pop_back();
      for (int w : back[idx(v)])
        if (part[idx(w)] < 0) {
          part[idx(w)] = parts;
          work.push_back(w);
        }
    }
    ++parts;
  }
  return part;
}

}  // namespace detail

/// The graph whose downsets dnn-partitioning splits at. Models `topology`: its nodes are groups of the
/// profile's nodes, its edges those of the forward pass. A group is the nodes of a colour. A colour without
/// forward nodes is ordered as the mirror image of its backward edges. Colours on a cycle of that order are
/// one group. Some groups join a neighbour, again and again: those whose forward nodes take no time, with no
/// neighbour in the backward pass, one in the forward pass and no backward time.
struct max_load_space : profile_graph {
  std::vector<std::vector<int>> nodes;  ///< by group, ascending
  std::vector<int> group;               ///< by node of the profile
};

/// O((V + E) log V) per round of joining.
inline max_load_space space_of(dnn_partitioning_profile const& g) {
    int const n = g.node_count();
  std::vector<char> forward(idx(g.colours), 0);
  for (int v = 0; v < n; ++v)
    if (!g.backward[idx(v)]) forward[idx(g.colour[idx(v)])] = 1;
  std::vector<std::tuple<int, int, bool>> order;  // of colours, in the forward pass; is it a mirror image?
  std::vector<char> reads_backward(idx(g.colours), 0);
  for (int v = 0; v < n; ++v)
    for (int u : g.predecessors(v)) {
      int const a = g.colour[idx(u)], b = g.colour[idx(v)];
      if (!g.backward[idx(u)] && g.backward[idx(v)]) reads_backward[idx(a)] = 1;
      if (!g.backward[idx(u)] && !g.backward[idx(v)]) order.push_back({a, b, false});
      if (g.backward[idx(u)] && g.backward[idx(v)] && (!forward[idx(a)] || !forward[idx(b)]))
        order.push_back({b, a, true});
    }
  detail::merged_sets sets(g.colours);
  std::vector<std::vector<int>> next(idx(g.colours));
  for (auto const& [a, b, mirror] : order) next[idx(a)].push_back(b);
  std::vector<int> const part = detail::strong_components(next);
  std::vector<int> first(idx(g.colours), -1);
  for (int c = 0; c < g.colours; ++c) {
    int& f = first[idx(part[idx(c)])];
    if (f < 0) f = c;
    sets.join(f, c);
  }
  for (bool again = true; again;) {
    again = false;
    std::vector<double> forward_time(idx(g.colours), 0.0), forward_cpu(forward_time),
        backward_time(forward_time);
    std::vector<char> busy(idx(g.colours), 0), exists(idx(g.colours), 0);
    for (int v = 0; v < n; ++v) {
      auto const c = idx(sets.find(g.colour[idx(v)]));
      exists[c] = 1;
      (g.backward[idx(v)] ? backward_time : forward_time)[c] += g.accelerator[idx(v)];
      (g.backward[idx(v)] ? backward_time : forward_cpu)[c] += g.cpu[idx(v)];
    }
    for (int c = 0; c < g.colours; ++c)
      if (reads_backward[idx(c)]) busy[idx(sets.find(c))] = 1;
    std::set<std::tuple<int, int, bool>> distinct;
    for (auto const& [a, b, mirror] : order)
      if (sets.find(a) != sets.find(b)) distinct.insert({sets.find(a), sets.find(b), mirror});
    std::vector<std::vector<int>> neighbours(idx(g.colours));
    for (auto const& [a, b, mirror] : distinct) {
      neighbours[idx(a)].push_back(b);
      neighbours[idx(b)].push_back(a);
    }
    for (int c = 0; c < g.colours; ++c) {
      auto const i = idx(c);
      if (!exists[i] || sets.find(c) != c || busy[i] || neighbours[i].size() != 1) continue;
      if (forward_time[i] >= 1e-6 || forward_cpu[i] >= 1e-6 || backward_time[i] >= 1e-6) continue;
      sets.join(c, neighbours[i][0]);
      again = true;
    }
  }
  max_load_space r;
  std::vector<int> number(idx(g.colours), -1);
  for (int v = 0; v < n; ++v) {
    int& k = number[idx(sets.find(g.colour[idx(v)]))];
    if (k < 0) {
      k = static_cast<int>(r.nodes.size());
      r.nodes.emplace_back();
    }
    r.group.push_back(k);
    r.nodes[idx(k)].push_back(v);
  }
  r.inputs.resize(r.nodes.size());
  for (auto const& [a, b, mirror] : order) {
    int const u = number[idx(sets.find(a))], v = number[idx(sets.find(b))];
    if (u != v) r.inputs[idx(v)].push_back(u);
  }
  for (auto& list : r.inputs) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return r;
}

}  // namespace tensorpar::peers
