// tests/zoo/bert.test.cpp - BERT-Large and the artifact's stack: operators and parameters, by hand
#include <doctest/doctest.h>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/zoo/bert.hpp>

#include "counts.hpp"

using namespace tests;

TEST_CASE("BERT-Large has 24 layers and 335,174,458 parameters") {
  computation_graph const g = made<zoo::bert<>>(zoo::bert_sizes{});
  i64 const h = 1024, norm = 2 * h, square = h * h + h;
  i64 const layer = 4 * square + norm + (h * 4096 + 4096) + (4096 * h + h) + norm;
  CHECK(parameters(g) == (30522 + 512 + 2) * h + norm + 24 * layer + square + norm + 30522);
  CHECK(parameters(g) == 335'174'458);
  auto n = operators(g);
  CHECK(n["attention"] == 24);
  CHECK(n["linear"] == 24 * 6 + 2);
  CHECK(n["layernorm"] == 24 * 2 + 2);
  CHECK(n["gelu"] == 24 + 1);
  CHECK(n["add"] == 24 * 2 + 2);
  CHECK(n["embedding"] == 3);
  CHECK(g.node_count() == 24 * 12 + 3 + 2 + 1 + 4 + 1);
  CHECK(tensorpar::graph::sp_decomposition(g));
}

TEST_CASE("the artifact's BERT is 37 operators, or 73 with 24 layers") {
  computation_graph const g = made<zoo::bert_artifact<>>(zoo::bert_artifact_sizes{});
  CHECK(fused_operators(g) == 37);
  auto n = operators(g);
  CHECK(n["attention"] == 12);
  CHECK(n["linear"] == 12 * (4 + 2) + 1);
  CHECK(n["relu"] == 12);
  CHECK(parameters(g) == 12 * 6 * 1024 * 1024 + 1024);
  CHECK(parameters(g) == 75'498'496);
  CHECK(fused_operators(made<zoo::bert_artifact<>>(zoo::bert_artifact_sizes{.layers = 24})) == 73);
  CHECK(tensorpar::graph::sp_decomposition(g));
}

TEST_CASE("reduced BERT: typed models, trees, derivatives") {
  static constexpr auto net = typed<zoo::bert<zoo::bert_reduced>>;
  static constexpr auto stack = typed<zoo::bert_artifact<zoo::bert_artifact_reduced>>;
  CHECK(parameters(net) < 5000);
  CHECK(parameters(stack) < 2000);
  for (computation_graph const& g : {lower(net, {zoo::batch = 24}), lower(stack, {zoo::batch = 24})}) {
    CHECK(operators(g)["attention"] == 2);
    CHECK(tensorpar::graph::sp_decomposition(g));
    CHECK(differentiate(g).loss >= 0);
  }
}
