// tests/zoo/gpt.test.cpp - GPT-3: operators and parameters, by hand
#include <doctest/doctest.h>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/zoo/gpt.hpp>

#include "counts.hpp"

using namespace tests;

namespace {
/// Twelve squares of matrices, their biases, two layer norms; embeddings, a layer norm.
i64 by_hand(zoo::gpt_sizes const& s) {
  i64 const h = s.hidden;
  return s.layers * (12 * h * h + 9 * h + 4 * h) + (s.vocab + s.seq) * h + 2 * h;
}
}  // namespace

TEST_CASE("GPT-3 of PredTOP has 1.3e9 parameters, that of Brown et al. 175e9; GPT-2s have what they are named after") {
  for (auto const& [s, total] : {std::pair{zoo::gpt_sizes{}, 1'315'557'376LL}, {zoo::gpt3_175b, 174'604'259'328LL},
                                 {zoo::gpt2_124m, 124'439'808LL}, {zoo::gpt2_774m, 774'030'080LL}, {zoo::gpt2_1b5, 1'557'611'200LL}}) {
    computation_graph const g = made<zoo::gpt<>>(s);
    int const layers = static_cast<int>(s.layers);
    CHECK(parameters(g) == by_hand(s));
    CHECK(parameters(g) == total);
    auto n = operators(g);
    CHECK(n[s.packed ? "packed_attention" : "attention"] == layers);
    CHECK(n["linear"] == (s.packed ? 4 : 6) * layers + 1);
    CHECK(n["layernorm"] == 2 * layers + 1);
    CHECK(n["gelu"] == layers);
    CHECK(n["add"] == 2 * layers + 1);
    CHECK(g.node_count() == (s.packed ? 10 : 12) * layers + 2 + 1 + 1 + 1 + 1);
    CHECK(tensorpar::graph::sp_decomposition(g));
  }
}

TEST_CASE("the work of a GPT is six parameters' worth of products per token and step, and attention's") {
  model_builder b;
  zoo::gpt<>::define(b);
  double const tokens = 1024, h = 2048, layers = 24;
  double const products = 2 * tokens * (layers * 12 * h * h + 51200 * h), scores = layers * 2 * tokens * h * tokens;   // half are masked
  CHECK(flops(b.view(), zoo::batch = 1) == doctest::Approx(products + scores).epsilon(0.01));
}

TEST_CASE("reduced GPT: a typed model, a tree, a derivative") {
  static constexpr auto net = typed<zoo::gpt<zoo::gpt_reduced>>;
  CHECK(parameters(net) == by_hand(zoo::gpt_reduced));
  CHECK(parameters(net) < 5000);
  computation_graph const g = lower(net, {zoo::batch = 24});
  CHECK(tensorpar::graph::sp_decomposition(g));
  CHECK(differentiate(g).loss >= 0);
}
