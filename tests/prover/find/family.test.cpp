// tests/prover/find/family.test.cpp - families of terms from text
#include <tensorpar/prover/find/family.hpp>
#include <doctest/doctest.h>

using namespace tensorpar;
using namespace tensorpar::prover;

TEST_CASE("tensors, parameters and steps") {
  family const f = make_family("all", "x:ab y:ab+ i:a# z:b*", "d=0,1 k s# stride#=1,2 ?f",
                               "?f(_); partition{d,k}(_); add(_,_);\n scale{s}(_); embedding_bag(_,_)", 2);
  REQUIRE(f.tensors.size() == 4);
  CHECK(f.tensors[3].beside_sums);
  CHECK(f.tensors[0].axes == std::vector<std::string>{"a", "b"});
  CHECK(!f.tensors[0].summed);
  CHECK(f.tensors[1].summed);
  CHECK(f.tensors[2].integer);
  REQUIRE(f.parameters.size() == 5);
  CHECK(f.parameters[0].what == rewrite::rule_parameter{"d", tensorpar::rewrite::parameter_kind::axis});
  CHECK(f.parameters[0].values == std::vector<i64>{0, 1});
  CHECK(f.parameters[1].what.kind == rewrite::parameter_kind::degree);
  CHECK(f.parameters[2].what.kind == rewrite::parameter_kind::number);
  CHECK(f.parameters[3].what == rewrite::rule_parameter{"stride", tensorpar::rewrite::parameter_kind::number});
  CHECK(f.parameters[3].values == std::vector<i64>{1, 2});
  CHECK(f.parameters[4].what == rewrite::rule_parameter{"f", tensorpar::rewrite::parameter_kind::function});
  REQUIRE(f.steps.size() == 5);
  CHECK(f.steps[0].node.function == 4);
  CHECK(f.steps[1].shardings);
  CHECK(f.steps[1].node.attr[0] == rewrite::parameter_term(0));
  CHECK(f.steps[1].node.attr[1] == rewrite::parameter_term(1));
  CHECK(f.steps[2].commutative);
  CHECK(f.steps[2].operands == 2);
  CHECK(f.steps[4].node.op == &op::info<embedding_bag>);
  CHECK(f.max_operators == 2);
}

TEST_CASE("joined axes, extents of tensors, operators that occur once") {
  family const f = make_family("apart", "x:AI y:A(IJ) z:b(cc)", "n#=2", "!slice{-1,0,extent(x,-1)}(_); slice{0,n,extent(y,1)}(_)", 4, 2);
  CHECK(f.tensors[1].axes == std::vector<std::string>{"A", "IJ"});
  CHECK(f.tensors[2].axes == std::vector<std::string>{"b", "cc"});
  CHECK(f.max_operators == 4);
  CHECK(f.min_side == 2);
  REQUIRE(f.steps.size() == 2);
  CHECK(f.steps[0].once);
  CHECK(!f.steps[1].once);
  CHECK(f.steps[0].node.attr[2] == rewrite::rule_term{1, {{tensorpar::rewrite::term_kind::extent, 0, -1, -1}}, false});
  CHECK(f.steps[1].node.attr[1] == rewrite::parameter_term(0));
  CHECK(f.steps[1].node.attr[2] == rewrite::rule_term{1, {{tensorpar::rewrite::term_kind::extent, 1, 1, -1}}, false});
  CHECK(f.steps[0].operands == 1);
  family const g = make_family("halves", "x:(AA)", "", "split{2,0}(_); split{2,0}(_).1", 1);
  CHECK(g.steps[0].slot == 0);
  CHECK(g.steps[1].slot == 1);
}

TEST_CASE("what cannot be read is named") {
  CHECK_THROWS_WITH_AS(make_family("f", "x", "", "relu(_)"), doctest::Contains("without axes: x"), error);
  CHECK_THROWS_WITH_AS(make_family("f", "x:a", "", "rellu(_)"), doctest::Contains("no operator rellu"), error);
  CHECK_THROWS_WITH_AS(make_family("f", "x:a", "", "partition{d,k}(_)"), doctest::Contains("no parameter d"), error);
  CHECK_THROWS_WITH_AS(make_family("f", "x:a", "", "slice{0,0,extent(o0,0)}(_)"), doctest::Contains("an extent that the family lacks"),
                       error);
  CHECK_THROWS_WITH_AS(make_family("f", "x:a", "", "relu(relu(_))"), doctest::Contains("more than one operator"), error);
}
