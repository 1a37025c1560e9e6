// tests/graph/sp/expr.test.cpp - expressions are kept as they are written
#include <doctest/doctest.h>
#include <tensorpar/graph/sp/expr.hpp>

using namespace tensorpar;

TEST_CASE("an expression keeps what normalisation would drop") {
  graph::sp_text const t = graph::parse_sp_expr("S(P(4),S())");
  auto const root = t.expr[t.root];
  CHECK(root.kind == graph::sp_kind::series);
  CHECK(t.expr.parts(t.root).size() == 2);
  int const p = t.expr.parts(t.root)[0], empty = t.expr.parts(t.root)[1];
  CHECK(t.expr[p].kind == graph::sp_kind::parallel);
  CHECK(t.expr[t.expr.parts(p)[0]].first == 4);
  CHECK(t.expr[empty].count == 0);
  CHECK(t.expr.size() == 4);
}

TEST_CASE("a sub-expression may be used twice") {
  graph::sp_expr e;
  int const a = e.leaf(1), s = e.series({a, a});
  CHECK(e.parts(s).size() == 2);
  CHECK(e.parts(s)[0] == e.parts(s)[1]);
}
