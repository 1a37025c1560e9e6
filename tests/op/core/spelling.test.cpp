// tests/op/core/spelling.test.cpp - axes, extents, shapes and operators as text
#include <doctest/doctest.h>

#include <tensorpar/op/core/spelling.hpp>
#include <tensorpar/op/operators.hpp>

using namespace tensorpar;

TEST_CASE("axes hold up to 12 characters and give them back") {
  for (char const* s : {"a", "batch", "head_dim", "abcdefghijkl", "x2", "_", "9z_0"}) CHECK(op::spell(axis(s)) == s);
  CHECK(op::spell(axis(u64{0})) == "");
  CHECK_THROWS_AS(axis("thirteen_char"), error);
  CHECK_THROWS_AS(axis("Upper"), error);
  CHECK(axis("ab") != axis("ba"));
}

TEST_CASE("extents and shapes") {
  constexpr axis batch{"batch"}, f{"features"};
  CHECK(op::spell(dim(batch)) == "batch");
  CHECK(op::spell(f(784)) == "features=784");
  CHECK(op::spell(dim(7)) == "7");
  CHECK(op::spell(dim(axis{}, 4, batch)) == "4*batch");
  CHECK(op::spell(dim(f, 4, batch)) == "features=4*batch");
  CHECK(op::spell(shape{batch, f(784)}) == "[batch,features=784]");
  CHECK(op::spell(shape{batch}.of(dtype::i32)) == "[batch]i32");
  CHECK(op::spell(scalar) == "[]");
}

TEST_CASE("operators with their attributes") {
  CHECK(op::spell(linear{.out = 512, .bias = false, .to = axis("hidden")}) == "linear{out=512,bias=0,to=hidden}");
  CHECK(op::spell(relu{}) == "relu");
  CHECK(op::spell(scale{.factor = 0.5}).substr(0, 17) == "scale{factor=0.50");
  CHECK(op::spell(op::any_op{}) == "none");
}
