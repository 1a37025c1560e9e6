// tests/zoo/mlp.test.cpp - two towers of linear layers and the smallest graph with branches: operators and parameters, by hand
#include <doctest/doctest.h>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/zoo/mlp.hpp>

#include "counts.hpp"

using namespace tests;

TEST_CASE("the two towers are 18 operators with 956,301,312 parameters") {
  computation_graph const g = made<zoo::mlp_unify<>>(zoo::mlp_unify_sizes{});
  CHECK(fused_operators(g) == 18);
  auto n = operators(g);
  CHECK(n["linear"] == 16);
  CHECK(n["relu"] == 14);
  CHECK(n["add"] == 1);
  CHECK(parameters(g) == 2 * (1024 * 8192LL + 7 * 8192LL * 8192));
  CHECK(parameters(g) == 956'301'312);
  CHECK(tensorpar::graph::sp_decomposition(g));
}

TEST_CASE("the split test is 11 operators") {
  computation_graph const g = made<zoo::split_test<>>(zoo::split_test_sizes{});
  auto n = operators(g);
  CHECK(n["linear"] == 5);
  CHECK(n["relu"] == 3);                     // the facts count the one behind the first layer by itself too
  CHECK(n["add"] == 2);
  CHECK(g.node_count() == 11);
  CHECK(parameters(g) == 256 * 128 + 128 + 2 * (128 * 64 + 64) + 2 * (64 * 32 + 32));
  CHECK(tensorpar::graph::sp_decomposition(g));
}

TEST_CASE("reduced towers: typed models, trees, derivatives") {
  static constexpr auto towers = typed<zoo::mlp_unify<zoo::mlp_unify_reduced>>;
  static constexpr auto forks = typed<zoo::split_test<zoo::split_test_reduced>>;
  static_assert(is_series_parallel(towers) && is_series_parallel(forks));
  CHECK(parameters(towers) < 3000);
  CHECK(parameters(forks) < 9000);
  for (computation_graph const& g : {lower(towers, {zoo::batch = 24}), lower(forks, {zoo::batch = 24})}) {
    CHECK(tensorpar::graph::sp_decomposition(g));
    CHECK(differentiate(g).loss >= 0);
  }
}
