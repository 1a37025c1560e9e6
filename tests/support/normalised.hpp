// tests/support/normalised.hpp - small networks with batch norms, drawn at random and the same at every batch size
#pragma once
#include "small_graphs.hpp"
#include <string>
#include <tensorpar/op/operators.hpp>

namespace tests {

/// Up to three turns of convolution, batch norm, function and sum, each there or not, at least one batch norm "norm0" among them; outputs
/// "y" (what stands before the last layer) and "loss". `first_only`: one batch norm, of what does not depend on others' samples.
inline computation_graph normalised_net(i64 batch, unsigned seed, bool first_only = false) {
  std::mt19937 draw(seed);
  computation_graph g;
  i64 const channels = 1 + static_cast<i64>(draw() % 4), height = 2 + static_cast<i64>(draw() % 3),
      width = 2 + static_cast<i64>(draw() % 3);
  int x = g.add_input("x", {batch, channels, height, width});
  int const labels = g.add_input("labels", shape({batch}, dtype::i32));
  int norms = 0;
  auto const name = [&](char const* kind) { return kind + std::to_string(g.node_count()); };
  for (int turn = 0, turns = 1 + static_cast<int>(draw() % 3); turn < turns; ++turn) {
    int const before = x;
    if (draw() % 2) x = out(g, g.add_with_weights(conv2d{.out = g.type(x).d[1].n, .bias = draw() % 2 == 0}, {x}, name("conv")));
    if ((draw() % 3 || (norms == 0 && turn + 1 == turns)) && !(first_only && norms)) {
      int const m = out(g, g.add(tensorpar::op::channel_moments{}, {x}, name("moments")));
      x = out(g, g.add_with_weights(tensorpar::op::normalize{draw() % 2 ? 1e-5 : 1e-3}, {x, m}, "norm" + std::to_string(norms++)));
    }
    x = out(g, draw() % 2 ? g.add(relu{}, {x}, name("relu")) : g.add(tanh_{}, {x}, name("tanh")));
    if (draw() % 2 && g.type(before) == g.type(x)) x = out(g, g.add(add{}, {x, before}, name("sum")));
  }
  int const flat = out(g, g.add(flatten{}, {x}, "flat"));
  int const logits = out(g, g.add_with_weights(linear{12}, {flat}, "head"));
  g.add_output("y", x);
  g.add_output("loss", out(g, g.add(cross_entropy{}, {logits, labels}, "loss")));
  return g;
}

}  // namespace tests
