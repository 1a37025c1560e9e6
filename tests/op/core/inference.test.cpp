// tests/op/core/inference.test.cpp - a shape rule's answer: results, or a complaint that keeps both shapes
#include <tensorpar/op/core/inference.hpp>
#include <doctest/doctest.h>

#include <string_view>

using namespace tensorpar;

TEST_CASE("an answer holds results; a complaint its rule and both shapes") {
  constexpr op::inference one = shape{2, 3};
  static_assert(one.ok() && one.n == 1 && one.out[0] == shape{2, 3});
  constexpr op::inference three(3, shape{4});
  static_assert(three.ok() && three.n == 3 && three.out[2] == shape{4});
  constexpr op::inference listed{shape{1}, shape{2}};
  static_assert(listed.ok() && listed.n == 2 && listed.out[1] == shape{2});
  constexpr op::inference none = op::mismatch("widths differ", {2, 3}, {2, 4});
  static_assert(!none.ok() && none.n == 0);
  CHECK(std::string_view(none.rule) == "widths differ");
  CHECK(none.out[0] == shape{2, 3});
  CHECK(none.out[1] == shape{2, 4});
}

TEST_CASE("weights are listed in order, none by default") {
  static_assert(op::weight_list{}.n == 0);
  constexpr op::weight_list w{{{3, 4}, op::init::fan_in}, {{3}, op::init::zeros}};
  static_assert(w.n == 2 && w.w[0].start == op::init::fan_in && w.w[1].type == shape{3});
  CHECK(w.w[0].type.elements() == 12);
}
