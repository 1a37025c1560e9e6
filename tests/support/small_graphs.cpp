#include "support/small_graphs.hpp"

#include <algorithm>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/op/operators.hpp>

namespace tests {

computation_graph residual_mlp() {
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

computation_graph small_cnn() {
  computation_graph g;
  int const x = g.add_input("x", {12, 1, 8, 8}), labels = g.add_input("labels", shape({12}, dtype::i32));
  int v = g.add_with_weights(conv2d{.out = 8, .bias = true}, {x}, "conv1");
  int const m = g.add_with_weights(tensorpar::op::channel_moments{}, {out(g, v)}, "moments");
  v = g.add_with_weights(tensorpar::op::normalize{}, {out(g, v), out(g, m)}, "norm");
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

computation_graph small_transformer() {
  computation_graph g;
  int const tokens = g.add_input("tokens", shape({4, 6}, dtype::i32)), labels = g.add_input("labels", shape({4, 6}, dtype::i32));
  int const table = g.add_parameter("table", {12, 24}, tensorpar::op::init::normal_02);
  int v = g.add(embedding{12, 24}, {tokens, table}, "embed");
  int const x = out(g, v);
  v = g.add_with_weights(layernorm{}, {x}, "norm1");
  int const h = out(g, v);
  int const q = out(g, g.add_with_weights(linear{24}, {h}, "q")), k = out(g, g.add_with_weights(linear{24}, {h}, "k")),
            w = out(g, g.add_with_weights(linear{24}, {h}, "v"));
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

computation_graph towers(int branches) {
  computation_graph g;
  int const x = g.add_input("x", {24, 12}), shared = g.add_parameter("shared", {12, 12}, tensorpar::op::init::normal_02);
  int sum = -1;
  for (int b = 0; b < branches; ++b) {
    std::string const name = std::to_string(b);
    int const h = b % 2 ? g.add(contraction("bi,oi->bo"), {x, shared}, "in" + name) : g.add_with_weights(linear{12}, {x}, "in" + name);
    int const y = out(g, g.add_with_weights(linear{12}, {out(g, g.add(relu{}, {out(g, h)}, "act" + name))}, "out" + name));
    sum = sum < 0 ? y : out(g, g.add(add{}, {sum, y}, "sum" + name));
  }
  g.add_output("loss", out(g, g.add(mean_squared_error{}, {sum, x}, "loss")));
  return g;
}

plan random_plan(computation_graph const& g, int n, std::mt19937& draw) {
  auto pick = [&](std::size_t k) { return static_cast<std::size_t>(draw() % k); };
  plan p;
  p.graph = g.hash();
  p.precision = precision_in(g);
  p.cluster = devices(n);
  for (int v = 0; v < g.node_count(); ++v) {
    tensorpar::ir::iteration_space const s = tensorpar::ir::space_of(g, v);
    std::vector<tensorpar::ir::mesh_axis> axes;
    i64 size = 1;
    for (int tries = 0; tries < 6 && !s.loops.empty(); ++tries) {
      tensorpar::ir::node_loop const& l = s.loops[pick(s.loops.size())];
      i64 const k = 2 + static_cast<i64>(pick(3));
      i64 have = 1;
      for (tensorpar::ir::mesh_axis const& a : axes) if (a.letter == l.letter) have *= a.degree;
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
  p.prefetch = (n + g.node_count()) % 3;
  return p;
}
std::vector<int> random_order(computation_graph const& g, std::mt19937& draw) {
  std::vector<int> order;
  std::vector<bool> there(g.nodes.size(), false);
  while (order.size() < g.nodes.size()) {
    std::vector<int> ready;
    for (int v = 0; v < g.node_count(); ++v) {
      bool all = !there[static_cast<std::size_t>(v)];
      for (int x : g.node(v).in) all = all && (g.value(x).producer < 0 || there[static_cast<std::size_t>(g.value(x).producer)]);
      if (all) ready.push_back(v);
    }
    order.push_back(ready[draw() % ready.size()]);
    there[static_cast<std::size_t>(order.back())] = true;
  }
  return order;
}
plan serial_plan(computation_graph const& g) {
  plan p;
  p.graph = g.hash();
  p.precision = precision_in(g);
  p.cluster = devices(1);
  p.nodes.resize(g.nodes.size());
  return p;
}

}  // namespace tests
