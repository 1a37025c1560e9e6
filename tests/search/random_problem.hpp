// tests/search/random_problem.hpp - random series-parallel training problems in a form that can be shrunk
#pragma once
#include <random>
#include <tensorpar/cost/concepts.hpp>
#include <tensorpar/graph/sp/measure.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/op/kinds/contraction.hpp>
#include <tensorpar/op/kinds/loss.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>

namespace tensorpar::search_test {

/// x0 + x1 + ... (+ a weight along the last axis): any number of operands.
struct blend {
  i64 n = 1;
  bool weighted = false;
  static constexpr auto name = "test_blend";
  static constexpr int arity = -1;
  static constexpr void describe(auto& s, auto&& visit) { visit("n", s.n); visit("weighted", s.weighted); }
  constexpr op::notation_text notation_for(shapes) const {
    op::notation_text t;
    t.put("...e");
    for (i64 i = 1; i < n; ++i) t.put(",...e");
    if (weighted) t.put(",e");
    return t.put("->...e");
  }
  constexpr op::inference infer(shapes in) const { return in[0]; }
  void derive(op::gradient_builder& g) const {
    for (int i = 0; i < n; ++i) if (g.wanted(i)) g.give(i, g.emit(scale{2.0 + i}, {g.gradient(0)}));
    if (!weighted || !g.wanted(static_cast<int>(n))) return;
    if (g.type(g.operand(0)).rank == 1) g.give(static_cast<int>(n), g.emit(scale{1.0}, {g.gradient(0)}));
    else g.give(static_cast<int>(n), g.emit(contraction("0e->e"), {g.gradient(0)}));
  }
};
struct judge_grad {
  static constexpr auto name = "test_judge_grad";
  static constexpr auto notation = ", ... -> ...";
  static constexpr int arity = 2;
  constexpr op::inference infer(shapes in) const { return in[1]; }
};
/// The sum of all elements of all operands: a loss.
struct judge {
  static constexpr auto name = "test_judge";
  static constexpr auto notation = "... -> ";
  static constexpr int arity = -1;
  constexpr op::inference infer(shapes) const { return scalar; }
  void derive(op::gradient_builder& g) const {
    for (int i = 0; i < g.operands(); ++i) if (g.wanted(i)) g.give(i, g.emit(judge_grad{}, {g.gradient(0), g.operand(i)}));
  }
};

/// Small whole numbers from a hash of the question: sums are exact in double, so equal optima are equal numbers.
struct arbitrary_model {
  u64 seed = 0;
  static void put(core::hasher& h, ir::layout const& l) {
    h.add(l.start);
    for (ir::layout_axis const& a : l.axes) h.add(static_cast<int>(a.kind)).add(a.dim).add(a.degree).add(a.stride);
  }
  double seconds(cost::compute_query const& q) const {
    core::hasher h;
    h.add(seed).add(q.op.hash()).add(q.device.flops);
    for (shape const& s : q.in) for (int d = 0; d < s.rank; ++d) h.add(s.d[d].n);
    for (shape const& s : q.out) for (int d = 0; d < s.rank; ++d) h.add(s.d[d].n);
    return static_cast<double>(h.value() % 16);
  }
  double seconds(cost::reshard_query const& q) const {
    core::hasher h;
    h.add(seed).add(static_cast<int>(q.step.kind)).add(q.step.from_dim).add(q.step.to_dim).add(q.logical.rank);
    put(h, q.step.before);
    put(h, q.step.after);
    return static_cast<double>(h.value() % 6);
  }
};

/// A problem as plain numbers: what a failing case is shrunk in and printed as.
struct recipe {
  struct node {
    std::vector<int> from;               // earlier nodes; empty: reads the graph's input
    int weight = -1;                     // number of a parameter, shared by all nodes that name it
    bool matrix = false;                 // a linear operator (its own weight) instead of a blend
  };
  std::vector<node> nodes;               // a loss that reads all nodes without a reader is added
  int devices = 2, kinds = 1, grain = 1;
  std::vector<i64> extent{4};
  optimizer_kind optimizer = optimizer_kind::sgd;
  bool clip = false;
  int micro_batches = 1, max_axes = 2;
  bool replicas = true;
  u64 seed = 0;

  training_graph build() const {
    computation_graph g;
    shape s{};
    for (i64 e : extent) s.d[s.rank++] = dim(e);
    int const x = g.add_input("x", s);
    std::vector<int> value, weight(nodes.size(), -1);
    std::vector<char> read(nodes.size(), 0);
    for (std::size_t v = 0; v < nodes.size(); ++v) {
      node const& n = nodes[v];
      std::vector<value_id> in;
      for (int u : n.from) { in.push_back(value[static_cast<std::size_t>(u)]); read[static_cast<std::size_t>(u)] = 1; }
      if (in.empty()) in.push_back(x);
      if (n.matrix && in.size() == 1) {
        value.push_back(g.node(g.add_with_weights(linear{extent.back(), false}, in, "n" + std::to_string(v))).out[0]);
        continue;
      }
      i64 const operands = static_cast<i64>(in.size());
      if (n.weight >= 0) {
        int& w = weight[static_cast<std::size_t>(n.weight)];
        if (w < 0) w = g.add_parameter("w" + std::to_string(n.weight), shape{dim(extent.back())}, op::init::ones);
        in.push_back(w);
      }
      value.push_back(g.node(g.add(blend{operands, n.weight >= 0}, in, "n" + std::to_string(v))).out[0]);
    }
    std::vector<value_id> ends;
    for (std::size_t v = 0; v < nodes.size(); ++v) if (!read[v]) ends.push_back(value[v]);
    g.add_output("loss", g.node(g.add(judge{}, ends, "loss")).out[0]);
    training_options o;
    o.optimizer.kind = optimizer;
    o.optimizer.clip_norm = clip && devices % 2 == 0 ? 1 : 0;
    if (clip && devices % 2) o.optimizer.on_non_finite = non_finite::skip;
    o.micro_batches = micro_batches;
    return differentiate(g, o);
  }
  machine cluster() const {
    machine m{"test", {}, {}, {{"link", devices, 1e-6, 1e9}}};
    for (int k = 0; k < kinds; ++k) m.kinds.push_back({"k" + std::to_string(k), 1e9 * (k + 1), 1e9, 1'000'000'000, 0});
    for (int d = 0; d < devices; ++d) m.device.push_back(d * kinds / devices);
    return m;
  }
  std::string text() const {
    std::string r = std::to_string(devices) + " devices, " + std::to_string(kinds) + " kinds, grain " + std::to_string(grain) + ", seed " +
                    std::to_string(seed) + ", extents";
    for (i64 e : extent) r += " " + std::to_string(e);
    r += ", optimizer " + std::to_string(static_cast<int>(optimizer)) + (clip ? " clipped" : "") + ", micro " +
         std::to_string(micro_batches) + ", axes " + std::to_string(max_axes) + ":";
    for (std::size_t v = 0; v < nodes.size(); ++v) {
      r += " " + std::to_string(v) +
           (nodes[v].matrix        ? "L"
            : nodes[v].weight >= 0 ? "w" + std::to_string(nodes[v].weight)
                                   : std::string()) +
           "<-(";
      for (int u : nodes[v].from) r += std::to_string(u) + " ";
      r += ")";
    }
    return r;
  }
};

inline int pick(std::mt19937_64& g, int n) { return static_cast<int>(g() % static_cast<u64>(n)); }

/// A random series-parallel order on operators, as an expression; then edges that keep exactly that order, and some skip edges.
inline recipe random_recipe(u64 seed, int max_nodes, int max_devices) {
  std::mt19937_64 g(seed);
  recipe r;
  r.seed = seed;
  r.devices = 1 + pick(g, max_devices);
  r.kinds = r.devices > 1 && pick(g, 4) == 0 ? 2 : 1;
  r.grain = pick(g, 5) == 0 ? 2 : 1;
  r.extent = pick(g, 5) == 0 ? std::vector<i64>{2, 2} : std::vector<i64>{pick(g, 3) == 0 ? 6 : pick(g, 2) ? 4 : 2};
  r.optimizer = static_cast<optimizer_kind>(pick(g, 3));
  r.clip = pick(g, 6) == 0;
  r.micro_batches = pick(g, 5) == 0 ? 2 : 1;
  r.replicas = pick(g, 4) != 0;
  int const n = 1 + pick(g, max_nodes - 1);
  graph::sp_expr e;
  std::vector<int> parts;
  for (int v = 0; v < n; ++v) parts.push_back(e.leaf(v));
  while (parts.size() > 1) {                       // join neighbours, so that ids ascend along the order
    auto const i = static_cast<std::size_t>(pick(g, static_cast<int>(parts.size()) - 1));
    parts[i] = e.compose(pick(g, 2) ? graph::sp_kind::series : graph::sp_kind::parallel, {parts[i], parts[i + 1]});
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
  graph::sp_tree const t = normalise(e, parts.front());
  r.nodes.resize(static_cast<std::size_t>(n));
  for (auto const& [u, v] : cover_edges(t)) r.nodes[static_cast<std::size_t>(v)].from.push_back(u);
  graph::sp_order const order(t, n);
  for (int v = 0; v < n; ++v) {
    recipe::node& x = r.nodes[static_cast<std::size_t>(v)];
    for (int u = 0; u < v; ++u)
      if (order.precedes(u, v) && x.from.size() < 4 && std::find(x.from.begin(), x.from.end(), u) == x.from.end() && pick(g, 3) == 0)
        x.from.push_back(u);
    std::sort(x.from.begin(), x.from.end());
    if (x.from.size() <= 1 && r.extent.size() == 1 && r.extent[0] == 2 && pick(g, 2)) x.matrix = true;
    else if (pick(g, 2)) x.weight = pick(g, std::min(n, 3));
  }
  return r;
}

/// Every recipe that is one step simpler.
inline std::vector<recipe> simpler(recipe const& r) {
  std::vector<recipe> all;
  auto const with = [&](auto change) { recipe x = r; change(x); all.push_back(std::move(x)); };
  for (std::size_t v = 0; v < r.nodes.size() && r.nodes.size() > 1; ++v)
    with([&](recipe& x) {                          // v disappears, its readers read nothing instead
      x.nodes.erase(x.nodes.begin() + static_cast<std::ptrdiff_t>(v));
      for (auto& n : x.nodes) {
        std::erase(n.from, static_cast<int>(v));
        for (int& u : n.from) if (u > static_cast<int>(v)) --u;
        if (n.weight >= static_cast<int>(x.nodes.size())) n.weight = 0;
      }
    });
  for (std::size_t v = 0; v < r.nodes.size(); ++v) {
    if (r.nodes[v].weight >= 0) with([&](recipe& x) { x.nodes[v].weight = -1; });
    if (r.nodes[v].matrix) with([&](recipe& x) { x.nodes[v].matrix = false; });
    for (std::size_t k = 0; k < r.nodes[v].from.size(); ++k)
      with([&](recipe& x) { x.nodes[v].from.erase(x.nodes[v].from.begin() + static_cast<std::ptrdiff_t>(k)); });
  }
  if (r.devices > 1) with([](recipe& x) { --x.devices; x.kinds = 1; });
  if (r.kinds > 1) with([](recipe& x) { x.kinds = 1; });
  if (r.clip) with([](recipe& x) { x.clip = false; });
  if (r.micro_batches > 1) with([](recipe& x) { x.micro_batches = 1; });
  if (r.optimizer != optimizer_kind::sgd) with([](recipe& x) { x.optimizer = optimizer_kind::sgd; });
  if (r.max_axes > 1) with([](recipe& x) { --x.max_axes; });
  if (r.replicas) with([](recipe& x) { x.replicas = false; });
  return all;
}

/// The simplest recipe reachable step by step that still fails.
template <class Fails> recipe shrink(recipe r, Fails const& fails) {
  for (bool smaller = true; smaller;) {
    smaller = false;
    for (recipe const& x : simpler(r)) if (fails(x)) { r = x; smaller = true; break; }
  }
  return r;
}

}  // namespace tensorpar::search_test
