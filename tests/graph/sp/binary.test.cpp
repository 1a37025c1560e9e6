// tests/graph/sp/binary.test.cpp
#include <doctest/doctest.h>
#include "support/random_graph.hpp"
#include <tensorpar/graph/sp/binary.hpp>

using namespace tensorpar;

namespace {
std::string two(char const* s, graph::sp_shape shape) { return graph::to_string(graph::binary(graph::sp_tree::parse(s), shape)); }
}  // namespace

TEST_CASE("left, right, balanced") {
  CHECK(two("S(1,2,3,4)", graph::sp_shape::balanced) == "((1;2);(3;4))");
  CHECK(two("S(1,2,3,4)", graph::sp_shape::left) == "(((1;2);3);4)");
  CHECK(two("S(1,2,3,4)", graph::sp_shape::right) == "(1;(2;(3;4)))");
  CHECK(two("P(S(1,2,3,4),5)", graph::sp_shape::balanced) == "(((1;2);(3;4))|5)");
  CHECK(two("S(1,2,3)", graph::sp_shape::balanced) == "((1;2);3)");
  CHECK(two("4", graph::sp_shape::left) == "4");
  graph::sp_binary const p = graph::binary(graph::sp_tree::parse("P(1,2,3,4)"), graph::sp_shape::balanced);
  CHECK(p.height() == 2);
  CHECK(graph::nary(p) == graph::sp_tree::parse("P(1,2,3,4)"));
}

TEST_CASE("every binary form has the same normal form; a balanced one is as low as can be") {
  tests::random_source r{71};
  for (int i = 0; i < 200; ++i) {
    graph::sp_tree const t = tests::random_sp_tree(r, 1 + r.below(24));
    for (graph::sp_shape s : {graph::sp_shape::left, graph::sp_shape::right, graph::sp_shape::balanced}) {
      graph::sp_binary const b = graph::binary(t, s);
      CHECK(graph::nary(b) == t);
      int leaf_count = 0;
      for (int k = 0; k < b.size(); ++k) leaf_count += b[k].kind == graph::sp_kind::leaf;
      CHECK(b.size() == 2 * leaf_count - 1);
    }
    CHECK(graph::binary(t, graph::sp_shape::balanced).height() <= graph::binary(t, graph::sp_shape::left).height());
  }
  for (int n = 1; n < 40; ++n) {
    graph::sp_expr e;
    std::vector<int> parts;
    for (int v = 0; v < n; ++v) parts.push_back(e.leaf(v));
    int levels = 0;
    while ((1 << levels) < n) ++levels;
    CHECK(graph::binary(graph::normalise(e, e.series(parts)), graph::sp_shape::balanced).height() == levels);
  }
}
