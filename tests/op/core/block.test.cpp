// tests/op/core/block.test.cpp - a device's part of a tensor
#include <doctest/doctest.h>

#include <tensorpar/op/core/block.hpp>

using namespace tensorpar;

TEST_CASE("a part knows its own extents and the whole's") {
  constexpr op::tensor_block b{.rank = 3, .type = dtype::i32, .local = {2, 3, 4}, .offset = {2, 0, 4}, .global = {4, 3, 8}};
  static_assert(b.elements() == 24 && b.logical_elements() == 96);
  static_assert(b.local_shape() == shape({2, 3, 4}, dtype::i32));
  static_assert(b.local_shape().is_static() && b.local_shape().bytes() == 96);
}

TEST_CASE("rank 0 is one element; an empty part has none") {
  constexpr op::tensor_block scalar_block{};
  CHECK(scalar_block.elements() == 1);
  CHECK(scalar_block.logical_elements() == 1);
  CHECK(scalar_block.local_shape() == scalar);
  op::tensor_block const none{.rank = 2, .local = {0, 5}, .global = {3, 5}};
  CHECK(none.elements() == 0);
  CHECK(none.logical_elements() == 15);
}

TEST_CASE("parts that tile a tensor count every element once") {
  for (i64 rows = 1; rows <= 4; ++rows)
    for (i64 columns = 1; columns <= 3; ++columns) {
      i64 sum = 0;
      for (i64 r = 0; r < rows; ++r)
        for (i64 c = 0; c < columns; ++c) {
          op::tensor_block const b{.rank = 2, .local = {12 / rows, 6 / columns}, .offset = {r * 12 / rows, c * 6 / columns},
                                   .global = {12, 6}};
          sum += b.elements();
          CHECK(b.logical_elements() == 72);
        }
      CHECK(sum == 72);
    }
}
