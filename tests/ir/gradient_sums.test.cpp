// tests/ir/gradient_sums.test.cpp - which gradients are added up over micro-batches, and in which parts
#include <doctest/doctest.h>
#include <tensorpar/ir/gradient_sums.hpp>
#include <tensorpar/program/passes/memory_pass.hpp>

#include "support/small_graphs.hpp"

using namespace tests;

namespace {

/// Of a plan all of whose weights are treated so.
training_graph treated(training_graph const& t, ir::zero_stage s) {
  plan p;
  p.cluster = devices(4);
  p.nodes.resize(static_cast<std::size_t>(t.forward_nodes), {{0, {{'0', 4, 1}}}, s, false});
  return tensorpar::passes::memory_pass(t, p).graph;
}

}  // namespace

TEST_CASE("a gradient is added up where it is made, or as the update of a weight in parts reads it") {
  for (double clip : {0.0, 1.0})
    for (ir::zero_stage s : {ir::zero_stage::none, ir::zero_stage::updates, ir::zero_stage::gradients, ir::zero_stage::weights}) {
      bool const in_parts = s == ir::zero_stage::weights || s == ir::zero_stage::gradients;
      training_options o;
      o.optimizer = {.kind = optimizer_kind::adamw, .clip_norm = clip};
      training_graph const t = treated(differentiate(residual_mlp(), o), s);
      std::vector<ir::gradient_sum> const all = ir::gradient_sums(t);
      REQUIRE(all.size() == t.graph.values.size());
      int weights = 0, sums = 0;
      for (int v = 0; v < t.graph.node_count(); ++v) {
        graph_node const& n = t.graph.node(v);
        CHECK(ir::updates_in_parts(t, v) == (is_update(n.op) && s == ir::zero_stage::weights));
        CHECK(ir::sums_in_parts(t, v) == (is_update(n.op) && in_parts));
        if (!is_update(n.op)) continue;
        ++weights;
        ir::gradient_sum const of = all[static_cast<std::size_t>(int(n.in[1]))];
        CHECK(of.added);
        CHECK(of.update == (in_parts ? v : -1));
        CHECK(of.operand == (in_parts ? 1 : -1));
      }
      for (ir::gradient_sum const& one : all) sums += one.added;
      CHECK(weights > 3);
      CHECK(sums == weights);                  // the loss is added up by whoever reads it; nothing else is
    }
}
