// tests/graph/sp/binary.test.cpp
#include <doctest/doctest.h>
#include "support/random_graph.hpp"
#include <tensorpar/graph/sp/binary.hpp>

using namespace tensorpar;

namespace {
std::string two(char const* s, sp_shape shape) { return to_string(binary(sp_tree::parse(s), shape)); }
}  // namespace

TEST_CASE("left, right, balanced") {
  CHECK(two("S(1,2,3,4)", sp_shape::balanced) == "((1;2);(3;4))");
  CHECK(two("S(1,2,3,4)", sp_shape::left) == "(((1;2);3);4)");
  CHECK(two("S(1,2,3,4)", sp_shape::right) == "(1;(2;(3;4)))");
  CHECK(two("P(S(1,2,3,4),5)", sp_shape::balanced) == "(((1;2);(3;4))|5)");
  CHECK(two("S(1,2,3)", sp_shape::balanced) == "((1;2);3)");
  CHECK(two("4", sp_shape::left) == "4");
  sp_binary const p = binary(sp_tree::parse("P(1,2,3,4)"), sp_shape::balanced);
  CHECK(p.height() == 2);
  CHECK(nary(p) == sp_tree::parse("P(1,2,3,4)"));
}

TEST_CASE("every binary form has the same normal form; a balanced one is as low as can be") {
  tests::random_source r{71};
  for (int i = 0; i < 200; ++i) {
    sp_tree const t = tests::random_sp_tree(r, 1 + r.below(24));
    for (sp_shape s : {sp_shape::left, sp_shape::right, sp_shape::balanced}) {
      sp_binary const b = binary(t, s);
      CHECK(nary(b) == t);
      int leaf_count = 0;
      for (int k = 0; k < b.size(); ++k) leaf_count += b[k].kind == sp_kind::leaf;
      CHECK(b.size() == 2 * leaf_count - 1);
    }
    CHECK(binary(t, sp_shape::balanced).height() <= binary(t, sp_shape::left).height());
  }
  for (int n = 1; n < 40; ++n) {
    sp_expr e;
    std::vector<int> parts;
    for (int v = 0; v < n; ++v) parts.push_back(e.leaf(v));
    int levels = 0;
    while ((1 << levels) < n) ++levels;
    CHECK(binary(normalise(e, e.series(parts)), sp_shape::balanced).height() == levels);
  }
}
