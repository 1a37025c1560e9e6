// tests/op/kinds/axis_sum.test.cpp - the sum over an axis and the repetition along one are each other's derivatives
#include <tensorpar/op/kinds/axis_sum.hpp>
#include <doctest/doctest.h>

#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/ir/parallel_inference.hpp>
#include <vector>

using namespace tensorpar;

TEST_CASE("a sum over what was repeated has the old shape, whatever the axis") {
  shape const x{2, 6, 4};
  for (i64 a : {0, 1, 2, 3, -1, -2, -4}) {
    op::any_op const again(op::repeat_axis{a, 5});
    op::inference const y = again.op->infer(again.attr, {&x, 1});
    REQUIRE(y.ok());
    CHECK(y.out[0].rank == 4);
    CHECK(y.out[0][static_cast<int>(a < 0 ? a + 4 : a)].n == 5);
    op::any_op const sum(op::sum_axis{a});
    op::inference const z = sum.op->infer(sum.attr, {y.out, 1});
    REQUIRE(z.ok());
    CHECK(z.out[0] == x);
  }
}

TEST_CASE("the summed axis may be split and leaves partial sums, and partial sums pass") {
  shape const x{4, 6, 2}, y{4, 2};
  op::any_op const sum(op::sum_axis{1});
  ir::iteration_space const s = ir::space_of(sum, {x}, {y});
  REQUIRE(s.loops.size() == 3);
  ir::node_loop const* l = s.find('s');
  REQUIRE(l != nullptr);
  CHECK(l->units == 6);
  CHECK(l->reduced);
  ir::parallel_shape in(x);
  in.degree[1] = 3;
  in.degree[0] = 2;
  in.sum = 5;
  ir::parallel_result const r = ir::infer_parallel_shapes(sum, {in});
  REQUIRE(r.ok());
  CHECK(r.out[0].sum == 15);
  CHECK(r.out[0].degree[0] == 2);
  CHECK(r.out[0].degree[1] == 1);
}

TEST_CASE("a scalar repeated has no axis to split, and a vector summed is a scalar") {
  shape const x{}, y{5};
  ir::iteration_space const s = ir::space_of(op::repeat_axis{0, 5}, {x}, {y});
  REQUIRE(s.loops.size() == 1);
  CHECK(s.loops[0].in == std::vector<int>{-1});
  CHECK(s.loops[0].out == std::vector<int>{0});
  CHECK(s.loops[0].units == 5);
  CHECK(!s.loops[0].reduced);
  ir::parallel_shape in(x);
  in.sum = 3;
  ir::parallel_result const r = ir::infer_parallel_shapes(op::repeat_axis{0, 5}, {in});
  REQUIRE(r.ok());
  CHECK(r.out[0].sum == 3);
  CHECK(r.out[0].degree[0] == 1);
  ir::iteration_space const t = ir::space_of(op::sum_axis{0}, {y}, {x});
  REQUIRE(t.loops.size() == 1);
  CHECK(t.loops[0].in == std::vector<int>{0});
  CHECK(t.loops[0].out == std::vector<int>{-1});
  CHECK(t.loops[0].reduced);
}
