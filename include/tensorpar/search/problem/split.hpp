// tensorpar/search/problem/split.hpp - a network cut where one tensor alone goes on, so that its parts can be
// searched one by one
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <vector>

namespace tensorpar::search {

namespace detail {
/// Sets of nodes, one bit each.
class node_sets {
  std::size_t words_;
  std::vector<u64> bits_;

 public:
  node_sets(int sets, int nodes)
      : words_((idx(nodes) + 63) / 64), bits_(idx(sets) * words_) {}
  u64* operator[](int i) { return bits_.data() + idx(i) * words_; }
  u64 const* operator[](int i) const { return bits_.data() + idx(i) * words_; }
  void put(int i, int v) { (*this)[i][v / 64] |= u64{1} << (v % 64); }
  bool has(int i, int v) const { return (*this)[i][v / 64] >> (v % 64) & 1; }
  void join(int i, int j) { for (std::size_t w = 0; w < words_; ++w) (*this)[i][w] |= (*this)[j][w]; }
  bool within(u64 const* a, u64 const* b) const {
    for (std::size_t w = 0; w < words_; ++w) if (a[w] & ~b[w]) return false;
    return true;
  }
  int count(int i) const {
    int n = 0;
    for (std::size_t w = 0; w < words_; ++w) n += __builtin_popcountll((*this)[i][w]);
    return n;
  }
};
/// Values that depend on a parameter: those whose gradient is wanted.
inline std::vector<char> learning_values(computation_graph const& g) {
  std::vector<char> r;
  for (graph_value const& v : g.values) r.push_back(v.role == value_role::parameter);
  for (graph_node const& n : g.nodes) {
    bool some = false;
    for (int x : n.in) some = some || r[idx(x)];
    for (int x : n.out) if (some && n.op.op->derive) r[idx(x)] = 1;
  }
  return r;
}
/// Is the gradient of v's result made by v's derivatives, or read by them alone?
inline bool keeps_gradient(training_graph const& t, int v) {
  int const d = t.gradient[idx(t.graph.node(v).out[0])];
  if (d < 0) return false;
  int const maker = t.graph.value(d).producer;
  if (maker >= 0 && t.graph.node(maker).origin == v) return true;
  for (int w = t.forward_nodes; w < t.graph.node_count(); ++w) {
    graph_node const& n = t.graph.node(w);
    if (n.origin != v && std::find(n.in.begin(), n.in.end(), d) != n.in.end()) return false;
  }
  return true;
}
}  // namespace detail

/// Operators after which a forward graph may be cut, in topological order. Every other operator comes before
/// or after such a one. Of all that is before, nothing but its one result is read afterwards (Unity, 5.2: a
/// post-dominator, and no skip connection passes it). On the way back the same holds: the result's gradient
/// is made or read by no other operator's derivatives. (An addition with one reader hands the gradient on as
/// it is, so it is none.) The last operator is none. O(nodes * (nodes / 64 + edges per node) + candidates *
/// training nodes). Precondition: `t` is a derivative of g.
inline std::vector<int> cut_candidates(computation_graph const& g, training_graph const& t) {
  int const n = g.node_count();
  std::vector<char> const learns = detail::learning_values(g);
  std::vector<std::vector<int>> readers(g.values.size());
  for (int v = 0; v < n; ++v)
    for (int x : g.node(v).in) readers[idx(x)].push_back(v);
  // before: itself too; read: who reads a result of what is strictly before
  detail::node_sets before(n, n), read(n, n), after(n, n);
  for (int v = 0; v < n; ++v) {
    for (int u : g.predecessors(v)) {
      before.join(v, u);
      read.join(v, u);
      for (int x : g.node(u).out) for (int w : readers[idx(x)]) read.put(v, w);
    }
    before.put(v, v);
  }
  for (int v = n - 1; v >= 0; --v) {
    after.put(v, v);
    for (int x : g.node(v).out) for (int w : readers[idx(x)]) after.join(v, w);
  }
  std::vector<int> r;
  for (int v = 0; v < n; ++v) {
    auto const& out = g.node(v).out;
    if (out.size() != 1 || readers[idx(out[0])].empty() ||
        !learns[idx(out[0])])
      continue;
    if (out[0] == t.loss) continue;                        // what is done with a loss is not trained
    if (is_integer(g.type(out[0]).type) || before.count(v) + after.count(v) != n + 1) continue;
    if (before.within(read[v], before[v]) && detail::keeps_gradient(t, v)) r.push_back(v);
  }
  return r;
}

/// Chooses among candidates so that every part has at least `least` operators and the cuts run through few of
/// `groups` (each a set of operators that belong together: the match of a rule). Of `least` candidates in a
/// row that with the fewest, the first of equals: equal blocks are cut alike. O(groups * candidates +
/// candidates).
inline std::vector<int> choose_cuts(computation_graph const& g, training_graph const& t,
                                    std::vector<std::vector<int>> const& groups, int least) {
  std::vector<int> const all = cut_candidates(g, t);
  std::vector<int> disturbed(all.size(), 0), size;
  // how many candidates lie strictly before a node: cuts are in a row
  std::vector<int> place(g.nodes.size(), 0);
  {
    std::vector<char> reached(g.nodes.size(), 0);
    int seen = 0;
    for (std::size_t c = 0; c < all.size(); ++c) {
      std::vector<int> open{all[c]};
      // every node is reached once: what is before a cut is before the next
      while (!open.empty()) {
        int const v = open.back();
        open.pop_back();
        if (reached[idx(v)]) continue;
        reached[idx(v)] = 1;
        place[idx(v)] = static_cast<int>(c);
        ++seen;
        for (int u : g.predecessors(v)) open.push_back(u);
      }
      size.push_back(seen);
    }
    for (std::size_t v = 0; v < reached.size(); ++v) if (!reached[v]) place[v] = static_cast<int>(all.size());
  }
  for (auto const& group : groups) {
    int first = static_cast<int>(all.size()), last = 0;
    for (int v : group) {
      first = std::min(first, place[idx(v)]);
      last = std::max(last, place[idx(v)]);
    }
    for (int c = first; c < last; ++c) ++disturbed[idx(c)];
  }
  std::vector<int> cuts;
  int done = 0;                                                // operators before the last cut
  for (std::size_t c = 0; c < all.size();) {
    if (size[c] - done < least) { ++c; continue; }
    std::size_t best = c;
    for (std::size_t d = c + 1; d < all.size() && size[d] - done < 2 * least; ++d)
      if (disturbed[d] < disturbed[best]) best = d;
    if (g.node_count() - size[best] < least) break;
    cuts.push_back(all[best]);
    done = size[best];
    c = best + 1;
  }
  return cuts;
}

/// Where a part of a graph meets the others.
struct piece_ends {
  // the last operator of the part before, which is here too; its operands are leaves; -1: none
  int anchor = -1;
  int anchor_readers = 0;              // who reads its result: 1, or 2 for any more
  int last = -1;                       // whose result the next part reads, or the last operator of all
  // of that result, in the next part: 1, or 2 for any more; 0: there is no next part
  int readers = 0;
  friend bool operator==(piece_ends const&, piece_ends const&) = default;
};
/// A part of a graph as a graph of its own.
struct graph_piece {
  computation_graph graph;
  piece_ends ends;
  std::vector<int> node, value;        // of the piece -> of the whole graph
};

namespace detail {
/// By node: the first cut that it lies before, or the number of cuts.
inline std::vector<int> parts_between(computation_graph const& g, std::vector<int> const& cuts) {
  std::vector<int> part(g.nodes.size(), static_cast<int>(cuts.size()));
  for (std::size_t c = cuts.size(); c-- > 0;) {
    std::vector<int> open{cuts[c]};
    std::vector<char> reached(g.nodes.size(), 0);
    while (!open.empty()) {
      int const v = open.back();
      open.pop_back();
      if (reached[idx(v)]) continue;
      reached[idx(v)] = 1;
      part[idx(v)] = static_cast<int>(c);
      for (int u : g.predecessors(v)) open.push_back(u);
    }
  }
  return part;
}
}  // namespace detail

/// The parts between cuts (ascending, candidates of this graph), in order. A leaf has the role of the value
/// that it stands for, with two exceptions. The result of another part's operator is a parameter here where
/// its gradient is wanted, else an input. A parameter that lives in an earlier part is an input, unless it
/// lives in the anchor. O(nodes * parts).
inline std::vector<graph_piece> pieces(computation_graph const& g, std::vector<int> const& cuts) {
  std::vector<char> const learns = detail::learning_values(g);
  std::vector<int> const part = detail::parts_between(g, cuts);
  // the part where a value is read first, and by whom
  std::vector<int> home(g.values.size(), -1), first(g.values.size(), -1);
  for (int v = 0; v < g.node_count(); ++v)
    for (int x : g.node(v).in) {
      int& h = home[idx(x)];
      if (first[idx(x)] < 0) first[idx(x)] = v;
      if (h < 0 || part[idx(v)] < h) h = part[idx(v)];
    }
  std::vector<int> readers(g.values.size(), 0);
  for (graph_node const& n : g.nodes) for (int x : n.in) ++readers[idx(x)];
  auto const readers_of = [&](int v) {
    return std::min(2, readers[idx(g.node(v).out[0])]);
  };
  std::vector<graph_piece> r(cuts.size() + 1);
  for (std::size_t k = 0; k < r.size(); ++k) {
    graph_piece& p = r[k];
    std::vector<int> here(g.values.size(), -1);
    auto leaf = [&](int x, bool of_anchor) {
      graph_value const& v = g.value(x);
      bool const made = v.producer >= 0,
                 foreign = !of_anchor && home[idx(x)] < static_cast<int>(k);
      std::string const name = v.name.empty() ? "value " + std::to_string(x) : v.name;
      bool const learns_here = learns[idx(x)] && (made || !foreign);
      value_role const role = v.role == value_role::state ? v.role
                              : learns_here               ? value_role::parameter
                                                          : value_role::input;
      // anchors may read one twice
      value_id const y = p.graph.append_value(role, name, v.type, learns_here ? v.start : op::init::zeros);
      p.value.resize(p.graph.values.size(), -1);
      p.value[idx(y)] = x;
      // what an anchor reads of a parameter that lives elsewhere is no home for its readers here
      if (!of_anchor || made || first[idx(x)] == cuts[k - 1])
        here[idx(x)] = y;
      return y;
    };
    auto put = [&](int v) {
      std::vector<value_id> in;
      for (value_id x : g.node(v).in) {
        value_id const y = here[idx(x)];
        in.push_back(y >= 0 ? y : leaf(x, k > 0 && v == cuts[k - 1]));
      }
      int const w = p.graph.add(g.node(v).op, std::move(in), g.node(v).name);
      p.node.push_back(v);
      for (std::size_t i = 0; i < g.node(v).out.size(); ++i) {
        int const y = p.graph.node(w).out[i];
        here[idx(g.node(v).out[i])] = y;
        p.value.resize(p.graph.values.size(), -1);
        p.value[idx(y)] = g.node(v).out[i];
      }
      return w;
    };
    if (k > 0) {
      p.ends.anchor = put(cuts[k - 1]);
      p.ends.anchor_readers = readers_of(cuts[k - 1]);
    }
    if (k < cuts.size()) p.ends.readers = readers_of(cuts[k]);
    for (int v = 0; v < g.node_count(); ++v)
      if (part[idx(v)] == static_cast<int>(k)) p.ends.last = put(v);
    if (k < cuts.size())
      for (int w = 0; w < p.graph.node_count(); ++w)
        if (p.node[idx(w)] == cuts[k]) p.ends.last = w;
    for (graph_port const& o : g.outputs)
      if (int const y = here[idx(o.value)];
          y >= 0 && p.graph.value(y).producer >= (k > 0 ? 1 : 0))
        p.graph.append_output(o.name, y);
  }
  return r;
}

}  // namespace tensorpar::search
