// tests/ir/training_hash.test.cpp - what is trained, whatever the batch
#include <tensorpar/ir/training_hash.hpp>

#include <doctest/doctest.h>

#include "support/small_graphs.hpp"
#include <tensorpar/ir/rebatch.hpp>

using namespace tests;

TEST_CASE("batches do not enter, operators, shapes and names of weights do") {
  computation_graph const g = residual_mlp();
  u64 const h = tensorpar::ir::training_hash(differentiate(g));
  CHECK(tensorpar::ir::training_hash(differentiate(tensorpar::ir::rebatch(g, 3))) == h);
  training_options o;
  o.optimizer.kind = optimizer_kind::adamw;
  CHECK(tensorpar::ir::training_hash(differentiate(g, o)) == h);
  CHECK(tensorpar::ir::training_hash(differentiate(small_transformer())) != h);
  computation_graph renamed = g;
  for (graph_value& v : renamed.values) if (v.role == value_role::parameter) { v.name += "x"; break; }
  CHECK(tensorpar::ir::training_hash(differentiate(renamed)) != h);
  training_graph expanded = differentiate(small_transformer());
  expanded.expanded_from = h;
  CHECK(tensorpar::ir::training_hash(expanded) == h);
}
