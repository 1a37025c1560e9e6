// tests/support/spine.hpp - small computation graphs, random spreads, and training runs that the tests of plans and executors share
#pragma once
#include <random>
#include <tensorpar/exec/eigen.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/exec/threads.hpp>
#include <tensorpar/op/operators.hpp>

namespace tests {

using namespace tensorpar;

inline int out(computation_graph const& g, int node, int k = 0) { return g.node(node).out[static_cast<std::size_t>(k)]; }

/// Residual MLP with layer norm and a softmax loss; 24 rows.
inline computation_graph residual_mlp() {
  computation_graph g;
  int const x = g.add_input("x", {24, 48}), labels = g.add_input("labels", shape({24}, dtype::i32));
  int v = g.add_with_weights(linear{24}, {x}, "fc1");
  v = g.add_with_weights(relu{}, {out(g, v)}, "act");
  int const u = g.add_with_weights(linear{24}, {out(g, v)}, "fc2");
  v = g.add_with_weights(add{}, {out(g, v), out(g, u)}, "sum");
  v = g.add_with_weights(layernorm{}, {out(g, v)}, "norm");
  v = g.add_with_weights(linear{12}, {out(g, v)}, "head");
  v = g.add_with_weights(cross_entropy{}, {out(g, v), labels}, "loss");
  g.add_output("loss", out(g, v));
  return g;
}

/// Convolutions, batch norm, pooling, dropout, flatten; 12 images.
inline computation_graph small_cnn() {
  computation_graph g;
  int const x = g.add_input("x", {12, 1, 8, 8}), labels = g.add_input("labels", shape({12}, dtype::i32));
  int v = g.add_with_weights(conv2d{.out = 8, .bias = true}, {x}, "conv1");
  int const m = g.add_with_weights(channel_moments{}, {out(g, v)}, "moments");
  v = g.add_with_weights(normalize{}, {out(g, v), out(g, m)}, "norm");
  v = g.add_with_weights(relu{}, {out(g, v)}, "act");
  v = g.add_with_weights(pool2d{}, {out(g, v)}, "pool");
  v = g.add_with_weights(conv2d{.out = 8, .groups = 4}, {out(g, v)}, "conv2");
  v = g.add_with_weights(dropout{0.25, 5}, {out(g, v)}, "drop");
  v = g.add_with_weights(flatten{}, {out(g, v)}, "flat");
  v = g.add_with_weights(linear{12}, {out(g, v)}, "head");
  v = g.add_with_weights(cross_entropy{}, {out(g, v), labels}, "loss");
  g.add_output("loss", out(g, v));
  return g;
}

/// One transformer block over tokens, embedding shared with the output projection; 4 sequences of 6 tokens.
inline computation_graph small_transformer() {
  computation_graph g;
  int const tokens = g.add_input("tokens", shape({4, 6}, dtype::i32)), labels = g.add_input("labels", shape({4, 6}, dtype::i32));
  int const table = g.add_parameter("table", {12, 24}, init::normal_02);
  int v = g.add(embedding{12, 24}, {tokens, table}, "embed");
  int const x = out(g, v);
  v = g.add_with_weights(layernorm{}, {x}, "norm1");
  int const h = out(g, v);
  int const q = out(g, g.add_with_weights(linear{24}, {h}, "q")), k = out(g, g.add_with_weights(linear{24}, {h}, "k")), w = out(g, g.add_with_weights(linear{24}, {h}, "v"));
  v = g.add_with_weights(attention{.heads = 4, .causal = true}, {q, k, w}, "attention");
  v = g.add_with_weights(linear{24}, {out(g, v)}, "o");
  v = g.add_with_weights(add{}, {x, out(g, v)}, "sum1");
  int const y = out(g, v);
  v = g.add_with_weights(linear{48}, {y}, "up");
  v = g.add_with_weights(gelu{}, {out(g, v)}, "gelu");
  v = g.add_with_weights(linear{24}, {out(g, v)}, "down");
  v = g.add_with_weights(add{}, {y, out(g, v)}, "sum2");
  v = g.add(contraction("012,v2->01v"), {out(g, v), table}, "project");
  v = g.add_with_weights(cross_entropy{}, {out(g, v), labels}, "loss");
  g.add_output("loss", out(g, v));
  return g;
}

inline machine devices(int n) { return make_cluster("test", {"device", 1e9, 1e9, i64{1} << 30, 0}, n, n, {"link", n, 1e-6, 1e9}, {}); }

/// Legal spreads drawn at random: several axes, one loop split twice, replicas, any start, axes in any order of strides.
inline plan random_plan(computation_graph const& g, int n, std::mt19937& draw) {
  auto pick = [&](std::size_t k) { return static_cast<std::size_t>(draw() % k); };
  plan p;
  p.graph = g.hash();
  p.cluster = devices(n);
  for (int v = 0; v < g.node_count(); ++v) {
    iteration_space const s = space_of(g, v);
    std::vector<grid_axis> axes;
    i64 size = 1;
    for (int tries = 0; tries < 6 && !s.loops.empty(); ++tries) {
      node_loop const& l = s.loops[pick(s.loops.size())];
      i64 const k = 2 + static_cast<i64>(pick(3));
      i64 have = 1;
      for (grid_axis const& a : axes) if (a.letter == l.letter) have *= a.degree;
      if (l.units % (have * k) == 0 && size * k <= n) { axes.push_back({l.letter, k, 1}); size *= k; }
    }
    if (pick(4) == 0 && size * 2 <= n) { axes.push_back({'\0', 2, 1}); size *= 2; }
    std::vector<std::size_t> order(axes.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), draw);
    i64 stride = 1;
    for (std::size_t i : order) { axes[i].stride = stride; stride *= axes[i].degree; }
    p.nodes.push_back({{static_cast<int>(pick(static_cast<std::size_t>(n - size + 1))), axes}});
  }
  return p;
}
inline plan serial_plan(computation_graph const& g) {
  plan p;
  p.graph = g.hash();
  p.cluster = devices(1);
  p.nodes.resize(g.nodes.size());
  return p;
}

/// A batch for every input of g: real numbers in [0, 1] that are exact in any scalar, integers in [0, 12).
inline host_batch random_batch(computation_graph const& g, int micro_batches, u64 seed) {
  host_batch b;
  std::mt19937_64 draw(seed);
  for (graph_value const& v : g.values) {
    if (v.role != value_role::input) continue;
    host_tensor t;
    t.shape = v.type;
    t.shape.d[0].n *= micro_batches;
    for (i64 i = 0; i < t.shape.elements(); ++i) {
      if (is_integer(v.type.type)) t.index.push_back(static_cast<std::int32_t>(draw() % 12));
      else t.real.push_back(static_cast<float>(draw() % 17) / 16);
    }
    b[v.name] = std::move(t);
  }
  return b;
}

template <class S, class Comm = comm::threads> using executor_of = executor<compute::eigen<S>, Comm>;

template <class E> std::vector<std::vector<typename E::scalar>> parameters_of(E const& e) {
  std::vector<std::vector<typename E::scalar>> r;
  for (std::size_t x = 0; x < e.graph().gradient.size(); ++x)
    if (e.graph().graph.values[x].role == value_role::parameter) r.push_back(e.fetch(static_cast<int>(x)));
  return r;
}
template <class E> std::vector<std::vector<typename E::scalar>> train(E& e, int steps, double rate = 0.125) {
  e.initialise(7);
  for (int k = 0; k < steps; ++k) e.step(random_batch(e.graph().graph, e.plan_value().micro_batches, static_cast<u64>(k)), rate);
  return parameters_of(e);
}
/// Largest difference of any element relative to the largest parameter. (Not tensor by tensor: a bias before a batch norm, or of the keys of an
/// attention, has a gradient of zero, so all that it ever holds is rounding noise.)
inline double distance(std::vector<std::vector<double>> const& a, std::vector<std::vector<double>> const& b) {
  if (a.size() != b.size()) return 1;
  double most = 0, diff = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < a[i].size(); ++j) { most = std::max(most, std::abs(b[i][j])); diff = std::max(diff, std::abs(a[i][j] - b[i][j])); }
  return diff <= 1e300 ? diff / most : diff;
}

}  // namespace tests
