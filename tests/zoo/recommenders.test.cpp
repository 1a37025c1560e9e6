// tests/zoo/recommenders.test.cpp - DLRM and XDL: operators and parameters, by hand
#include <doctest/doctest.h>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/zoo/recommenders.hpp>

#include "counts.hpp"

using namespace tests;

namespace {
/// How wide all features side by side are.
i64 joined(computation_graph const& g) {
  for (graph_node const& v : g.nodes) if (v.op.is<concat>()) return g.type(v.out[0]).last().n;
  return 0;
}
}  // namespace

TEST_CASE("DLRM is 9 operators with 256,024,960 parameters") {
  computation_graph const g = made<zoo::dlrm<>>(zoo::dlrm_sizes{});
  CHECK(fused_operators(g) == 9);
  auto n = operators(g);
  CHECK(n["embedding_bag"] == 4);
  CHECK(n["linear"] == 4);
  CHECK(n["relu"] == 3);
  CHECK(n["sigmoid"] == 1);
  CHECK(joined(g) == 320);
  CHECK(parameters(g) == 4 * 64'000'000 + 4 * 64 + 64 * 64 + 320 * 64 + 64 * 2);
  CHECK(parameters(g) == 256'024'960);
  CHECK(tensorpar::graph::sp_decomposition(g));
}

TEST_CASE("DLRM on Summit is 21 operators, on Criteo 34") {
  computation_graph const s = made<zoo::dlrm<>>(zoo::dlrm_summit);
  CHECK(fused_operators(s) == 21);
  CHECK(operators(s)["linear"] == 8 + 4);
  CHECK(joined(s) == 3072);
  CHECK(parameters(s) == 8 * 256'000'000LL + (8 + 3) * 1024 * 1024 + 3072 * 1024);
  CHECK(tensorpar::graph::sp_decomposition(s));

  computation_graph const c = made<zoo::dlrm<>>(zoo::dlrm_criteo);
  CHECK(fused_operators(c) == 34);
  CHECK(operators(c)["embedding_bag"] == 26);
  CHECK(joined(c) == 432);
  i64 rows = 0;
  for (i64 r : zoo::dlrm_criteo.own_rows) rows += r;
  CHECK(parameters(c) == 16 * rows + 13 * 512 + 512 * 256 + 256 * 64 + 64 * 16 + 432 * 512 + 512 * 256 + 256);
  CHECK(tensorpar::graph::sp_decomposition(c));
}

TEST_CASE("XDL is 8 operators with 256,131,584 parameters") {
  computation_graph const g = made<zoo::xdl<>>(zoo::xdl_sizes{});
  CHECK(fused_operators(g) == 8);
  CHECK(operators(g)["relu"] == 2);
  CHECK(joined(g) == 256);
  CHECK(parameters(g) == 4 * 64'000'000 + 2 * 256 * 256 + 256 * 2);
  CHECK(parameters(g) == 256'131'584);
  CHECK(tensorpar::graph::sp_decomposition(g));
}

TEST_CASE("tables beyond what a concatenation takes are refused") {
  zoo::dlrm_sizes s;
  s.tables = 31;
  CHECK(operators(made<zoo::dlrm<>>(s))["embedding_bag"] == 31);
  s.tables = 32;
  CHECK_THROWS_AS(made<zoo::dlrm<>>(s), error);
}

TEST_CASE("reduced recommenders: typed models, trees, derivatives") {
  static constexpr auto a = typed<zoo::dlrm<zoo::dlrm_reduced>>;
  static constexpr auto b = typed<zoo::xdl<zoo::xdl_reduced>>;
  std::vector<computation_graph> const all{lower(a, {zoo::batch = 24}), lower(b, {zoo::batch = 24}),
                                           made<zoo::dlrm<>>(zoo::dlrm_summit_reduced, 24),
                                           made<zoo::dlrm<>>(zoo::dlrm_criteo_reduced, 24)};
  for (computation_graph const& g : all) {
    CHECK(parameters(g) < 6000);
    CHECK(tensorpar::graph::sp_decomposition(g));
    CHECK(differentiate(g).loss >= 0);
  }
}
