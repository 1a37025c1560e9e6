// tensorpar/graph/sp/ordered.hpp - the series-parallel reduction of nodes in topological order, without a
// standard container
#pragma once
#include <cstddef>
#include <tensorpar/core/slice.hpp>
#include <tensorpar/graph/concepts.hpp>
#include <tensorpar/graph/edge.hpp>

namespace tensorpar::graph {

namespace detail {

/// What a graph reduces to: pairs of parts, numbered after the nodes (node v is part v, pair i is part leaves
/// + i).
struct sp_reduction {
  bool ok = false;
  int leaves, pairs = 0, root = -1;
  core::detail::zeros left, right, series;
  constexpr explicit sp_reduction(int n) : leaves(n), left(n), right(n), series(n) {}
  constexpr int join(int a, int b, bool in_series) {
    left.p[pairs] = a;
    right.p[pairs] = b;
    series.p[pairs] = in_series;
    return leaves + pairs++;
  }
};

/// Does the order of the reduced tree contain every edge that step 1 below left out? Two walks number the
/// nodes; u is before v in both exactly if u precedes v (see sp_order).
constexpr bool implied(sp_reduction const& r, core::slice<edge> dropped) {
  if (dropped.empty()) return true;
  int const n = r.leaves;
  core::detail::zeros place_(2 * n), stack_(n + 1);
  int* const stack = stack_.p;
  for (int turned = 0; turned < 2; ++turned) {
    int* const place = place_.p + turned * n;
    int next = 0, top = 1;
    stack[0] = r.root;
    while (top > 0) {
      int const i = stack[--top];
      if (i < n) {
        place[i] = next++;
        continue;
      }
      int const a = r.left.p[i - n], b = r.right.p[i - n];
      bool const forward = turned == 0 || r.series.p[i - n] != 0;
      stack[top++] = forward ? b : a;
      stack[top++] = forward ? a : b;
    }
  }
  for (edge const& e : dropped)
    if (place_.p[e.from] > place_.p[e.to] || place_.p[n + e.from] > place_.p[n + e.to]) return false;
  return true;
}

/// By node: the longest way to it, and the depth of its direct successors (0: it has none).
template <topology G>
constexpr void direct_depths(G const& g, int n, int const* order, int* depth, int* direct) {
  for (int i = 0; i < n; ++i) {
    int const v = order ? order[i] : i;
    int d = 0;
    auto&& before = graph::predecessors(g, v);
    for (auto const& x : before) {
      int const u = static_cast<int>(x);
      if (depth[u] >= d) d = depth[u] + 1;
    }
    depth[v] = d;
    for (auto const& x : before) {
      int const u = static_cast<int>(x);
      if (direct[u] == 0 || d < direct[u]) direct[u] = d;
    }
  }
}
/// What number_joins reads (depth, direct) and writes; zeros at first.
struct join_arrays {
  int *depth, *direct, *in, *out, *seen, *width;
};
/// Gives joins their numbers. Returns how many vertices there are but one, or -1: a join is not complete.
template <topology G>
constexpr int number_joins(G const& g, int n, int const* order, join_arrays const& a,
                           core::pool<edge>& dropped) {
  int sink = 1;
  for (int i = 0; i < n; ++i) {
    int const v = order ? order[i] : i;
    if (a.depth[v] == 0) continue;
    int join = -1, tails = 0;
    auto&& before = graph::predecessors(g, v);
    for (auto const& x : before) {
      int const u = static_cast<int>(x);
      if (a.seen[u] == v + 1) continue;  // named twice
      a.seen[u] = v + 1;
      if (a.direct[u] != a.depth[v]) {
        dropped.push({u, v});
        continue;
      }
      ++tails;
      if (join < 0) join = a.out[u];
      if (a.out[u] != join) return -1;
    }
    if (join < 0) return -1;  // a node all of whose edges look implied
    if (join == 0) {
      join = sink++;
      a.width[join] = tails;
      for (auto const& x : before) {
        int const u = static_cast<int>(x);
        if (a.direct[u] == a.depth[v]) a.out[u] = join;
      }
    } else if (a.width[join] != tails) {
      return -1;
    }
    a.in[v] = join;
  }
  return sink;
}

/// Three steps, each linear.
/// 1. Transitive reduction, right for series-parallel orders and checked at the end. Let depth(v) be the
///    number of nodes before v on the longest path to it. In a series of parts C1 C2 ..., the first nodes of
///    a part all have one depth, and everything after them is deeper. Hence of the successors of a node
///    exactly the least deep ones are direct, and every other edge is implied.
/// 2. Inverse line graph: nodes that share a successor must share all of them (a complete join); each join
///    becomes one vertex, each node an edge from the join before it to the join after it.
/// 3. Vertices in topological order: merge parallel edges that arrive from one vertex; a vertex left with one
///    edge in and one edge out is merged away. What remains is one edge from source to sink exactly if the
///    graph is series-parallel.
/// (Valdes, Tarjan, Lawler 1982 find the implied edges otherwise; steps 2 and 3 are theirs.)
/// `order`: a topological order, or null if every edge goes to a larger id. Precondition: n > 0.
template <topology G> constexpr sp_reduction reduce_ordered(G const& g, int n, int const* order) {
  sp_reduction r(n);
  core::detail::zeros depth_(n), direct_(n), in_(n), out_(n), seen_(n), width_(n + 1);
  // direct[u]: the depth of its direct successors, 0 if it has none
  int *const depth = depth_.p, *const direct = direct_.p;
  direct_depths(g, n, order, depth, direct);

  // Join 0 stands before all sources; out[v] == 0: no successor. A join gets its number when its first head
  // is met, after the joins before all its tails got theirs: the numbers are a topological order.
  int *const in = in_.p, *const out = out_.p, *const seen = seen_.p, *const width = width_.p;
  core::pool<edge> dropped;
  int const sink = number_joins(g, n, order, {depth, direct, in, out, seen, width}, dropped);
  if (sink < 0) return r;

  // For each vertex: the list of nodes that arrive (first, next; node + 1), edges left (ins, outs), the edge
  // that arrives if it is the only one (tail, part), and during the visit of vertex `stamp` the part that
  // arrives there from here (slot).
  core::detail::zeros first_(sink + 1), next_(n), ins_(sink + 1), outs_(sink + 1), tail_(sink + 1),
      part_(sink + 1), stamp_(sink + 1), slot_(sink + 1);
  int *const first = first_.p, *const next = next_.p, *const ins = ins_.p, *const outs = outs_.p;
  int *const tail_of = tail_.p, *const part_of = part_.p, *const stamp = stamp_.p, *const slot = slot_.p;
  for (int v = n - 1; v >= 0; --v) {
    if (out[v] == 0) out[v] = sink;
    next[v] = first[out[v]];
    first[out[v]] = v + 1;
    ++outs[in[v]];
  }
  for (int w = 1; w <= sink; ++w) {
    for (int x = first[w]; x > 0; x = next[x - 1]) {
      int part = x - 1, tail = in[part];
      while (true) {
        if (tail != 0 && outs[tail] == 1 && ins[tail] == 1) {
          part = r.join(part_of[tail], part, true);
          tail = tail_of[tail];
        } else if (stamp[tail] == w) {
          part = r.join(slot[tail], part, false);
          stamp[tail] = 0;
          --outs[tail];
          --ins[w];
        } else {
          stamp[tail] = w;
          slot[tail] = part;
          tail_of[w] = tail;
          part_of[w] = part;
          ++ins[w];
          break;
        }
      }
    }
  }
  if (ins[sink] != 1 || tail_of[sink] != 0) return r;
  r.root = part_of[sink];
  r.ok = implied(r, dropped.view());
  return r;
}

}  // namespace detail

}  // namespace tensorpar::graph
