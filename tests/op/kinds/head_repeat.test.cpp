// tests/op/kinds/head_repeat.test.cpp - heads repeated for grouped queries, and their sums, are each other's derivatives
#include <tensorpar/op/kinds/head_repeat.hpp>
#include <doctest/doctest.h>

#include <tensorpar/ir/iteration_space.hpp>
#include <vector>

using namespace tensorpar;

TEST_CASE("a sum over what was repeated has the old shape; both split by heads") {
  shape const x{2, 6, 24};
  op::any_op const again(op::repeat_heads{4, 3});
  op::inference const y = again.op->infer(again.attr, {&x, 1});
  REQUIRE(y.ok());
  CHECK(y.out[0] == shape{2, 6, 72});
  op::any_op const sum(op::sum_heads{4, 3});
  op::inference const z = sum.op->infer(sum.attr, {y.out, 1});
  REQUIRE(z.ok());
  CHECK(z.out[0] == x);
  for (bool back : {false, true}) {
    ir::iteration_space const s = back ? ir::space_of(sum, {y.out[0]}, {x}) : ir::space_of(again, {x}, {y.out[0]});
    ir::node_loop const* l = s.find('e');
    REQUIRE(l != nullptr);
    CHECK(l->units == 4);
    CHECK(!l->reduced);
  }
}

TEST_CASE("heads that the last axis does not have are refused") {
  auto const refused = [](op::any_op const& o, shape const& x) { return !o.op->infer(o.attr, {&x, 1}).ok(); };
  CHECK(refused(op::repeat_heads{5, 2}, {2, 24}));
  CHECK(refused(op::repeat_heads{0, 2}, {2, 24}));
  CHECK(refused(op::repeat_heads{4, 0}, {2, 24}));
  CHECK(refused(op::sum_heads{4, 5}, {2, 24}));
  CHECK(refused(op::sum_heads{4, 2}, shape({2, 24}, dtype::i32)));
  CHECK(!refused(op::sum_heads{4, 2}, {2, 24}));
}
