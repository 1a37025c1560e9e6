// tests/op/kinds/rms_norm.test.cpp - shapes, weights and loops of RMS norm
#include <tensorpar/op/kinds/rms_norm.hpp>
#include <doctest/doctest.h>

#include <tensorpar/ir/iteration_space.hpp>

using namespace tensorpar;

TEST_CASE("RMS norm keeps the shape, has one weight per last index, and splits along all axes but the last") {
  shape const x{4, 6, 8};
  op::any_op const norm(rmsnorm{});
  op::inference const y = norm.op->infer(norm.attr, {&x, 1});
  REQUIRE(y.ok());
  CHECK(y.out[0] == x);
  op::weight_list const w = norm.op->weights(norm.attr, {&x, 1});
  REQUIRE(w.n == 1);
  CHECK(w.w[0].type == shape{8});
  CHECK(w.w[0].start == op::init::ones);
  ir::iteration_space const s = ir::space_of(norm, {x, {8}}, {x});
  REQUIRE(s.loops.size() == 3);
  for (ir::node_loop const& l : s.loops) {
    CHECK(l.units == (l.letter == 'E' ? 1 : l.letter == '0' ? 4 : 6));
    CHECK(!l.reduced);
  }
  shape const none{};
  CHECK(!norm.op->infer(norm.attr, {&none, 1}).ok());
  shape const whole = shape{4}.of(dtype::i32);
  CHECK(!norm.op->infer(norm.attr, {&whole, 1}).ok());
}
