// tests/op/attention/parts.test.cpp - shapes and loops of attention in parts
#include <tensorpar/op/attention/parts.hpp>
#include <doctest/doctest.h>

#include <tensorpar/ir/iteration_space.hpp>

using namespace tensorpar;

TEST_CASE("parts, queries and heads split; keys do not, nor parts where they are put together") {
  shape const q{2, 6, 8}, k{2, 4, 5, 8}, state{2, 4, 6, 12}, half{2, 2, 6, 12};
  auto units = [](op::any_op const& o, std::vector<shape> const& in, std::vector<shape> const& out) {
    std::string s;
    for (ir::node_loop const& l : ir::space_of(o, in, out).loops)
      s += std::string(1, l.letter) + std::to_string(l.units) + (l.reduced ? "+ " : " ");
    return s;
  };
  CHECK(units(op::attention_parts{2}, {q, k, k}, {state}) == "b2 q6 e2 p4 K1+ ");
  CHECK(units(op::softmax_merge{2, 2}, {state}, {half}) == "b2 p2 q6 e2 ");
  CHECK(units(op::attention_finish{2}, {state}, {q}) == "b2 P1+ q6 e2 ");
}

TEST_CASE("a state has two more columns per head than its values") {
  for (i64 heads : {1, 2, 4})
    for (i64 head : {1, 3, 8}) {
      shape const q{2, 3, dim(heads * head)}, k{2, 4, 5, dim(heads * head)};
      shape const in[] = {q, k, k};
      op::inference const s = op::any_op(op::attention_parts{heads}).op->infer(op::any_op(op::attention_parts{heads}).attr, {in, 3});
      REQUIRE(s.ok());
      CHECK(s.out[0].last().n == heads * (head + 2));
      op::any_op const finish(op::attention_finish{heads});
      op::inference const y = finish.op->infer(finish.attr, {s.out, 1});
      REQUIRE(y.ok());
      CHECK(y.out[0] == q);
    }
}
