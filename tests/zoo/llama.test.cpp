// tests/zoo/llama.test.cpp - LLaMA-3: operators and parameters of three sizes, by hand; grouped queries
#include <doctest/doctest.h>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/zoo/llama.hpp>

#include "counts.hpp"

using namespace tests;

TEST_CASE("LLaMA-3 has 8.03e9, 70.55e9 and 405.85e9 parameters") {
  struct expected { zoo::llama_sizes s; i64 total; };
  for (auto const& [s, total] : {expected{zoo::llama_sizes{}, 8'030'261'248}, expected{zoo::llama3_70b, 70'553'706'496},
                                 expected{zoo::llama3_405b, 405'853'388'800}}) {
    computation_graph const g = made<zoo::llama<>>(s);
    // queries and output are squares, keys and values have 8 heads of 128; three matrices of the gated layer; two norms
    i64 const h = s.hidden, layer = 2 * h * h + 2 * h * (8 * 128) + 3 * h * s.wide + 2 * h;
    CHECK(h / s.heads == 128);
    CHECK(parameters(g) == s.layers * layer + 2 * 128256 * h + h);
    CHECK(parameters(g) == total);
    int const layers = static_cast<int>(s.layers);
    auto n = operators(g);
    CHECK(n["attention"] == layers);
    CHECK(n["linear"] == 7 * layers + 1);
    CHECK(n["rmsnorm"] == 2 * layers + 1);
    CHECK(n["repeat_heads"] == 2 * layers);
    CHECK(n["swiglu"] == layers);
    CHECK(g.node_count() == 15 * layers + 4);
    CHECK(tensorpar::graph::sp_decomposition(g));
  }
}

TEST_CASE("every head of keys is read by the query heads of its group, in order") {
  zoo::llama_sizes s = zoo::llama_reduced;     // six heads of four, two of them of keys
  model_builder b;
  b.output("y", b.input("x", {zoo::batch, zoo::tokens(3), 8}) | zoo::to_every_head(s));
  computation_graph const g = lower(b, {zoo::batch = 2});
  CHECK(g.type(g.output("y")) == shape{zoo::batch(2), zoo::tokens(3), 24});
  CHECK(operators(g) == std::map<std::string, int>{{"repeat_heads", 1}});
  s.kv_heads = 6;
  CHECK(operators(made<zoo::llama<>>(s))["repeat_heads"] == 0);
}

TEST_CASE("reduced LLaMA: a typed model, a tree, a derivative") {
  static constexpr auto net = typed<zoo::llama<zoo::llama_reduced>>;
  CHECK(parameters(net) == 2 * (2 * 24 * 24 + 2 * 24 * 8 + 3 * 24 * 36 + 2 * 24) + 2 * 24 * 24 + 24);
  computation_graph const g = lower(net, {zoo::batch = 24});
  CHECK(tensorpar::graph::sp_decomposition(g));
  CHECK(differentiate(g).loss >= 0);
}
