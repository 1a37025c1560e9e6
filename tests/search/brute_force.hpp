// tests/search/brute_force.hpp - every sharding of every operator in every structure, priced from the training graph by code of its own
#pragma once
#include <functional>
#include <limits>
#include <tensorpar/cost/concepts.hpp>
#include <tensorpar/graph/sp/binary.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/search/problem/shardings.hpp>

namespace tensorpar::search_test {
using namespace search;

/// Shares the search's definition of the objective, none of its code: no classes, no tables over layouts, no dynamic programs.
/// Structures are enumerated by recursion; for each, all choices of all operators.
template <class M> class brute_force {
  training_graph const& t_;
  computation_graph const& g_;
  machine const& on_;
  M const& model_;
  graph::sp_binary const& tree_;
  int grain_, micro_;
  sharding_limits limits_;
  i64 scalar_bytes_ = 4;
  std::vector<std::vector<ir::sharding>> shardings_;           // by operator, of every start
  std::vector<std::vector<int>> length_;
  std::vector<std::vector<double>> node_;
  std::vector<std::vector<i64>> bytes_;
  std::vector<std::vector<std::vector<std::vector<double>>>> pair_;   // [a][b][choice][choice], a < b

  struct box { int start, size; };
  struct shape_of_run {                                // a node of a structure
    int entry;
    bool side;
    int left = -1, right = -1;
    box range;
  };

  ir::sharding mesh(int v, ir::sharding const& s) const { return g_.node(v).origin < 0 ? ir::sharding{0, {{'\0', on_.size(), 1}}} : s; }
  ir::layout reads(int v, int k, ir::sharding const& s) const {
    return operand_layout(ir::space_of(g_, v), g_.node(v).letters, mesh(v, s), k);
  }
  ir::layout writes(int v, int k, ir::sharding const& s) const {
    return result_layout(ir::space_of(g_, v), g_.node(v).letters, mesh(v, s), k);
  }
  double move(ir::layout const& a, ir::layout const& b, shape const& s) const {
    double t = 0;
    for (ir::reshard_step const& m : reshard(a, b, s)) t += model_.seconds(cost::reshard_query{m, s, scalar_bytes_, on_});
    return t;
  }
  /// (node, operand or result, is result) where a value lies; node -1: comes from the host.
  struct origin { int node, port; bool result; };
  origin lies(int x) const {
    graph_value const& v = g_.value(x);
    if (v.role == value_role::activation) return {v.producer, v.slot, true};
    for (int n = 0; n < g_.node_count() && v.role != value_role::input; ++n)
      for (std::size_t k = 0; k < g_.node(n).in.size(); ++k)
        if (g_.node(n).in[k] == x) return {n, static_cast<int>(k), false};
    return {-1, -1, false};
  }
  /// All reshards from operator a (sharding s) to operator b (sharding q); b == -2: to nodes without origin.
  double flow(int a, ir::sharding const& s, int b, ir::sharding const& q) const {
    double total = 0;
    for (int x = 0; x < static_cast<int>(g_.values.size()); ++x) {
      origin const o = lies(x);
      if (o.node < 0 || g_.node(o.node).origin != a) continue;
      ir::layout const from = o.result ? writes(o.node, o.port, s) : reads(o.node, o.port, s);
      std::vector<std::pair<ir::layout, int>> seen;
      for (int v = 0; v < g_.node_count(); ++v)
        for (std::size_t k = 0; k < g_.node(v).in.size(); ++k) {
          if (g_.node(v).in[k] != x) continue;
          int const group = g_.node(v).origin < 0 ? node_id(-2) : g_.node(v).origin;
          if (group != b) continue;
          int const times = o.result && g_.node(v).phase != step_phase::update && b != -2 ? micro_ : 1;
          ir::layout const to = reads(v, static_cast<int>(k), q);
          bool known = false;
          for (auto const& [l, n] : seen) known = known || (l == to && n == times);
          if (known && b != -2) continue;
          seen.push_back({to, times});
          total += times * move(from, to, g_.type(x));
        }
    }
    return total;
  }
  /// Adding a gradient that updates read, of whichever operator's parameters, to the one of another micro-batch.
  double adding(int v, std::size_t k, ir::sharding const& s) const {
    int const x = g_.node(v).out[k];
    bool read = false;
    for (graph_node const& u : g_.nodes)
      read = read || (u.phase == step_phase::update && std::find(u.in.begin(), u.in.end(), x) != u.in.end());
    if (!read) return 0;
    shape const part[2] = {part_of(writes(v, static_cast<int>(k), s), g_.type(x)), part_of(writes(v, static_cast<int>(k), s), g_.type(x))};
    double worst = 0;
    for (int d = s.start; d < s.start + static_cast<int>(s.size()); ++d)
      worst = std::max(worst, model_.seconds(cost::compute_query{add{}, {part, 2}, {part, 1}, scalar_bytes_, on_.kind_of(d)}));
    return worst;
  }
  double work(int f, ir::sharding const& s) const {
    double total = 0;
    for (int v = 0; v < g_.node_count(); ++v) {
      graph_node const& n = g_.node(v);
      if (n.origin != f) continue;
      std::vector<shape> in, out;
      for (std::size_t k = 0; k < n.in.size(); ++k) in.push_back(part_of(reads(v, static_cast<int>(k), s), g_.type(n.in[k])));
      for (std::size_t k = 0; k < n.out.size(); ++k) out.push_back(part_of(writes(v, static_cast<int>(k), s), g_.type(n.out[k])));
      double worst = 0;
      for (int d = s.start; d < s.start + static_cast<int>(s.size()); ++d)
        worst = std::max(worst, model_.seconds(cost::compute_query{n.op,
                                                             {in.data(), static_cast<int>(in.size())},
                                                             {out.data(), static_cast<int>(out.size())},
                                                             scalar_bytes_,
                                                             on_.kind_of(d)}));
      total += (n.phase == step_phase::update ? 1 : micro_) * worst;
      for (std::size_t k = 0; k < n.out.size() && n.phase == step_phase::backward; ++k) total += (micro_ - 1) * adding(v, k, s);
    }
    return total + flow(f, s, f, s) + flow(f, s, -2, s);
  }
  i64 memory(int f, ir::sharding const& s) const {
    i64 sum = 0;
    std::vector<int> seen;
    auto const count = [&](int x, ir::layout const& l, i64 times) {
      for (int y : seen) if (y == x) return;
      seen.push_back(x);
      sum += times * part_of(l, g_.type(x)).elements() * scalar_bytes_;
    };
    for (int v = 0; v < g_.node_count(); ++v) {
      if (g_.node(v).origin != f) continue;
      for (std::size_t k = 0; k < g_.node(v).in.size(); ++k) {
        int const x = g_.node(v).in[k];
        value_role const r = g_.value(x).role;
        if (v == f || r == value_role::state) count(x, reads(v, static_cast<int>(k), s), r == value_role::parameter ? 2 : 1);
      }
      if (v == f) for (std::size_t k = 0; k < g_.node(v).out.size(); ++k) count(g_.node(v).out[k], writes(v, static_cast<int>(k), s), 1);
    }
    return sum;
  }

  std::vector<int> below(int entry) const {
    auto const& e = tree_[entry];
    if (e.kind == graph::sp_kind::leaf) return {e.left};
    auto a = below(e.left);
    for (int v : below(e.right)) a.push_back(v);
    return a;
  }

  // --- enumeration
  std::vector<shape_of_run> run_;
  std::vector<int> choice_;
  std::vector<i64> capacity_;
  std::vector<std::vector<std::pair<int, int>>> meets_; // by tree entry: pairs of operators that first lie together there
  std::function<void()> each_;

  /// Fixes how `entry` runs in a range, then calls `next` with the number of its node.
  void structures(int entry, box r, std::function<void(int)> const& next) {
    auto const& e = tree_[entry];
    auto const put = [&](bool side, int a, int b) {
      run_.push_back({entry, side, a, b, r});
      next(static_cast<int>(run_.size()) - 1);
      run_.pop_back();
    };
    if (e.kind == graph::sp_kind::leaf) { put(false, -1, -1); return; }
    auto const both = [&](bool side, box x, box y) {
      structures(e.left, x, [&](int a) { structures(e.right, y, [&](int b) { put(side, a, b); }); });
    };
    both(false, r, r);
    if (e.kind == graph::sp_kind::parallel)
      for (int k = grain_; k < r.size; k += grain_) {
        both(true, {r.start, k}, {r.start + k, r.size - k});
        both(true, {r.start + k, r.size - k}, {r.start, k});
      }
  }
  double price(int i) const {
    shape_of_run const& n = run_[static_cast<std::size_t>(i)];
    auto const& e = tree_[n.entry];
    if (e.kind == graph::sp_kind::leaf)
      return node_[static_cast<std::size_t>(e.left)][static_cast<std::size_t>(choice_[static_cast<std::size_t>(e.left)])];
    double const a = price(n.left), b = price(n.right);
    double t = n.side ? (a < b ? b : a) : a + b;
    for (auto const& [u, v] : meets_[static_cast<std::size_t>(n.entry)])
      t += pair_[static_cast<std::size_t>(u)][static_cast<std::size_t>(v)][static_cast<std::size_t>(choice_[static_cast<std::size_t>(u)])]
                [static_cast<std::size_t>(choice_[static_cast<std::size_t>(v)])];
    return t;
  }
  void choose(std::size_t k, std::vector<int> const& leaves, std::vector<i64>& used) {
    if (k == leaves.size()) { each_(); return; }
    shape_of_run const& n = run_[static_cast<std::size_t>(leaves[k])];
    auto const v = static_cast<std::size_t>(tree_[n.entry].left);
    for (std::size_t i = 0; i < shardings_[v].size(); ++i) {
      if (shardings_[v][i].start != n.range.start || length_[v][i] > n.range.size) continue;
      bool fits = true;
      for (int d = 0; d < length_[v][i]; ++d) {
        i64& b = used[static_cast<std::size_t>(n.range.start + d)];
        b += bytes_[v][i];
        fits = fits && b <= capacity_[static_cast<std::size_t>(n.range.start + d)];
      }
      choice_[v] = static_cast<int>(i);
      if (fits) choose(k + 1, leaves, used);
      for (int d = 0; d < length_[v][i]; ++d) used[static_cast<std::size_t>(n.range.start + d)] -= bytes_[v][i];
    }
  }
  void every(std::function<void(int)> const& visit) {
    choice_.assign(static_cast<std::size_t>(t_.forward_nodes), 0);
    structures(tree_.root(), {0, on_.size()}, [&](int root) {
      std::vector<int> leaves;
      for (std::size_t i = 0; i < run_.size(); ++i)
        if (tree_[run_[i].entry].kind == graph::sp_kind::leaf) leaves.push_back(static_cast<int>(i));
      std::vector<i64> used(static_cast<std::size_t>(on_.size()), 0);
      each_ = [&] { visit(root); };
      choose(0, leaves, used);
    });
  }

 public:
  brute_force(training_graph const& t, machine const& on, M const& model, graph::sp_binary const& tree, int grain, int micro,
              sharding_limits const& l)
      : t_(t), g_(t.graph), on_(on), model_(model), tree_(tree), grain_(grain), micro_(micro), limits_(l) {
    int const n = t.forward_nodes;
    for (int v = 0; v < n; ++v) {
      std::vector<ir::sharding> all;
      for (int start = 0; start < on.size(); ++start)
        for (ir::sharding const& s : legal_shardings(ir::space_of(g_, v), start, on.size() - start, on.size(), l)) all.push_back(s);
      std::vector<int> length;
      std::vector<double> cost;
      std::vector<i64> bytes;
      for (ir::sharding const& s : all) {
        length.push_back(static_cast<int>(s.size()));
        cost.push_back(work(v, s));
        bytes.push_back(memory(v, s));
      }
      shardings_.push_back(all);
      length_.push_back(length);
      node_.push_back(cost);
      bytes_.push_back(bytes);
    }
    pair_.resize(static_cast<std::size_t>(n));
    for (int a = 0; a < n; ++a) {
      pair_[static_cast<std::size_t>(a)].resize(static_cast<std::size_t>(n));
      for (int b = a + 1; b < n; ++b) {
        bool linked = false;
        for (int x = 0; x < static_cast<int>(g_.values.size()); ++x) {
          origin const o = lies(x);
          int const at = o.node < 0 ? node_id() : g_.node(o.node).origin;
          if (at != a && at != b) continue;
          for (graph_node const& m : g_.nodes) for (int y : m.in) linked = linked || (y == x && m.origin == (at == a ? b : a));
        }
        if (!linked) continue;
        auto& table = pair_[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)];
        for (ir::sharding const& s : shardings_[static_cast<std::size_t>(a)]) {
          table.emplace_back();
          for (ir::sharding const& q : shardings_[static_cast<std::size_t>(b)]) table.back().push_back(flow(a, s, b, q) + flow(b, q, a, s));
        }
      }
    }
    meets_.resize(static_cast<std::size_t>(tree.size()));
    for (int i = 0; i < tree.size(); ++i) {
      if (tree[i].kind == graph::sp_kind::leaf) continue;
      for (int a : below(tree[i].left))
        for (int b : below(tree[i].right)) {
          int const u = std::min(a, b), v = std::max(a, b);
          if (!pair_[static_cast<std::size_t>(u)][static_cast<std::size_t>(v)].empty())
            meets_[static_cast<std::size_t>(i)].push_back({u, v});
        }
    }
  }

  /// How many (structure, choices) there are.
  double count() {
    double n = 0;
    structures(tree_.root(), {0, on_.size()}, [&](int) {
      double m = 1;
      for (shape_of_run const& x : run_) {
        if (tree_[x.entry].kind != graph::sp_kind::leaf) continue;
        auto const v = static_cast<std::size_t>(tree_[x.entry].left);
        double here = 0;
        for (std::size_t i = 0; i < shardings_[v].size(); ++i)
          here += shardings_[v][i].start == x.range.start && length_[v][i] <= x.range.size;
        m *= here;
      }
      n += m;
    });
    return n;
  }
  /// The least seconds of all that fits; infinity if nothing does.
  double least(std::vector<i64> const& capacity) {
    capacity_ = capacity;
    double best = std::numeric_limits<double>::infinity();
    every([&](int root) { best = std::min(best, price(root)); });
    return best;
  }
  /// The least, over everything, of the most that one device lacks.
  i64 min_shortage(std::vector<i64> const& capacity) {
    capacity_.assign(capacity.size(), std::numeric_limits<i64>::max());
    i64 best = std::numeric_limits<i64>::max();
    every([&](int) {
      std::vector<i64> used(capacity.size(), 0);
      for (std::size_t v = 0; v < shardings_.size(); ++v) {
        auto const i = static_cast<std::size_t>(choice_[v]);
        for (int d = 0; d < length_[v][i]; ++d) used[static_cast<std::size_t>(shardings_[v][i].start + d)] += bytes_[v][i];
      }
      i64 worst = std::numeric_limits<i64>::min();
      for (std::size_t d = 0; d < used.size(); ++d) worst = std::max(worst, used[d] - capacity[d]);
      best = std::min(best, worst);
    });
    return best;
  }
  /// Seconds of given shardings under the best structure that allows them.
  double cost_of(std::vector<ir::sharding> const& wanted) {
    choice_.assign(shardings_.size(), -1);
    for (std::size_t v = 0; v < wanted.size(); ++v)
      for (std::size_t i = 0; i < shardings_[v].size(); ++i) if (shardings_[v][i] == wanted[v]) choice_[v] = static_cast<int>(i);
    double best = std::numeric_limits<double>::infinity();
    structures(tree_.root(), {0, on_.size()}, [&](int root) {
      for (shape_of_run const& x : run_) {
        if (tree_[x.entry].kind != graph::sp_kind::leaf) continue;
        auto const v = static_cast<std::size_t>(tree_[x.entry].left);
        auto const i = static_cast<std::size_t>(choice_[v]);
        if (shardings_[v][i].start != x.range.start || length_[v][i] > x.range.size) return;
      }
      best = std::min(best, price(root));
    });
    return best;
  }
};

}  // namespace tensorpar::search_test
