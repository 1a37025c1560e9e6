// tests/zoo/candle.test.cpp - CANDLE-Uno: operators and parameters, by hand
#include <doctest/doctest.h>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/zoo/candle.hpp>

#include "counts.hpp"

using namespace tests;

TEST_CASE("CANDLE-Uno is 46 operators with 820,948,704 parameters") {
  computation_graph const g = made<zoo::candle_uno<>>(zoo::candle_uno_sizes{});
  CHECK(fused_operators(g) == 46);
  auto n = operators(g);
  CHECK(n["linear"] == 45);
  CHECK(n["relu"] == 44);
  CHECK(n["concat"] == 1);
  i64 const h = 4192;
  CHECK(parameters(g) == (942 + 2 * 5270 + 2 * 2048) * h + 5 * 7 * h * h + (5 * h + 2) * h + 3 * h * h + h);
  CHECK(parameters(g) == 820'948'704);
  std::string inputs;
  for (graph_value const& v : g.values) if (v.role == value_role::input) inputs += v.name + " ";
  CHECK(inputs == "cell.rnaseq dose1 dose2 drug1.descriptors drug1.fingerprints drug2.descriptors drug2.fingerprints growth ");
  for (graph_node const& v : g.nodes)
    if (v.op.is<concat>()) {
      CHECK(g.type(v.out[0]).last().n == 20962);
      CHECK(g.value(v.in[1]).name == "dose1");
      CHECK(g.value(v.in[2]).name == "dose2");
    }
  CHECK(tensorpar::graph::sp_decomposition(g));
}

TEST_CASE("reduced CANDLE-Uno: a typed model, a tree, a derivative") {
  static constexpr auto net = typed<zoo::candle_uno<zoo::candle_uno_reduced>>;
  CHECK(parameters(net) < 3000);
  computation_graph const g = lower(net, {zoo::batch = 24});
  CHECK(fused_operators(g) == 5 * 2 + 1 + 2 + 1);
  CHECK(tensorpar::graph::sp_decomposition(g));
  CHECK(differentiate(g).loss >= 0);
}
