// tests/zoo/mixture.test.cpp - the mixture of experts: GShard's shapes, operators and parameters by hand
#include <doctest/doctest.h>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/zoo/mixture.hpp>

#include "counts.hpp"

using namespace tests;

TEST_CASE("PredTOP's mixture of experts has sixteen layers of sixteen experts and 2.69e9 parameters") {
  computation_graph const g = made<zoo::mixture<>>(zoo::mixture_sizes{});
  i64 const h = 768, wide = 8 * h;
  i64 const attention = 4 * (h * h + h) + 2 * h, dense = 2 * h * wide + wide + h + 2 * h;
  i64 const experts = 16 * 2 * h * wide + h * 16 * 128 + 2 * h;
  CHECK(parameters(g) == 32 * attention + 16 * (dense + experts) + (32000 + 1024) * h + 2 * h);
  CHECK(parameters(g) == 2'693'248'512);
  auto n = operators(g);
  CHECK(n["attention"] == 32);
  CHECK(n["contraction"] == 16 * 4);
  CHECK(n["softmax"] == 16);
  CHECK(n["gelu"] == 16);
  CHECK(n["relu"] == 16);
  CHECK(g.node_count() == 32 * 7 + 16 * 5 + 16 * 10 + 6);
  CHECK(tensorpar::graph::sp_decomposition(g));
}

TEST_CASE("tokens are dispatched to slots of experts and combined in GShard's shapes, in groups of a sequence or of a part of it") {
  for (i64 group : {24, 12}) {
    zoo::mixture_sizes s = zoo::mixture_reduced;
    s.group = group;
    computation_graph const g = made<zoo::mixture<>>(s, 5);
    i64 const groups = 5 * 24 / group;
    std::vector<std::string> shapes;
    for (graph_node const& v : g.nodes) if (v.op.is<contraction>() && shapes.size() < 4) {
      shape x = g.type(v.out[0]);
      for (dim& d : x.d) d.name = axis(u64{0});
      shapes.push_back(tensorpar::op::spell(x));
    }
    auto text = [](std::initializer_list<i64> d) {
      std::string t;
      for (i64 k : d) t += (t.empty() ? "[" : ",") + std::to_string(k);
      return t + "]";
    };
    CHECK(shapes == std::vector<std::string>{text({4, groups, 6, 12}), text({4, groups, 6, 24}), text({4, groups, 6, 12}),
                                             text({groups, group, 12})});
  }
  zoo::mixture_sizes odd = zoo::mixture_reduced;
  odd.layers = 3;
  CHECK(operators(made<zoo::mixture<>>(odd))["attention"] == 3);
  CHECK(operators(made<zoo::mixture<>>(odd))["softmax"] == 1);
}

TEST_CASE("reduced mixture: a typed model, a tree, a derivative") {
  static constexpr auto net = typed<zoo::mixture<zoo::mixture_reduced>>;
  CHECK(parameters(net) < 12000);
  computation_graph const g = lower(net, {zoo::batch = 24});
  CHECK(operators(g)["softmax"] == 2);
  CHECK(tensorpar::graph::sp_decomposition(g));
  CHECK(differentiate(g).loss >= 0);
}
