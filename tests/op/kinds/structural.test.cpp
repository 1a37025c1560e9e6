// tests/op/kinds/structural.test.cpp - operators that move indices undo each other, shape by shape
#include <tensorpar/op/kinds/structural.hpp>
#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

using namespace tensorpar;

namespace {
constexpr axis batch{"batch"}, width{"width"}, heads{"heads"};

std::vector<shape> results(op::any_op const& o, std::vector<shape> const& in) {
  op::inference const r = o.op->infer(o.attr, {in.data(), static_cast<int>(in.size())});
  REQUIRE(r.ok());
  return {r.out, r.out + r.n};
}
shape result(op::any_op const& o, shape const& in) { return results(o, {in})[0]; }
std::string refusal(op::any_op const& o, shape const& in) {
  op::inference const r = o.op->infer(o.attr, {&in, 1});
  return r.ok() ? "" : r.rule;
}
}  // namespace

TEST_CASE("what is split and joined again has its old shape") {
  shape const x{batch(12), 6, width(8)};
  for (i64 a : {0, 1, 2, -1, -2, -3}) {
    for (i64 parts : {1, 2}) CHECK(results(concat{a}, results(split_axes{parts, a}, {x})) == std::vector<shape>{x});
    i64 const n = x[static_cast<int>(a)].n;
    for (i64 length = 1; length < n; ++length) {
      shape const head = result(slice_axis{a, 0, length}, x), tail = result(slice_axis{a, length, n - length}, x);
      CHECK(results(concat{a}, {head, tail}) == std::vector<shape>{x});
      CHECK(result(unslice_axis{a, 0, n}, head) == x);
      CHECK(result(unslice_axis{a, length, n}, tail) == x);
    }
    for (i64 b : {0, 1, 2, -1}) CHECK(result(transpose{a, b}, result(transpose{a, b}, x)) == x);
    for (i64 inner : {1, 2})
      CHECK(result(merge_axes{a < 0 ? a + 3 : a, x[static_cast<int>(a)].name}, result(split_axis{a < 0 ? a + 3 : a, inner}, x)) == x);
  }
  CHECK(result(reshape{1, 2, {6, 8}}, result(flatten{}, x)) == shape{batch(12), 6, 8});
  CHECK(result(flatten{.keep = 0}, x).elements() == x.elements());
}

TEST_CASE("symbols pass where the axis is not touched, and are refused where it is") {
  shape const x{batch, 6, width(8)};
  CHECK(results(split_axes{2, -1}, {x})[1] == shape{batch, 6, width(4)});
  CHECK(refusal(split_axes{2, 0}, x) == "dimension not divisible by the number of parts");
  CHECK(result(flatten{}, x)[0] == dim(batch));
  CHECK(refusal(flatten{.keep = 0}, x) == "flatten: a joined axis must be static");
  CHECK(refusal(reshape{0, 1, {48}}, x) == "reshape: a changed axis must be static");
  CHECK(result(merge_axes{0, batch}, x)[0] == dim(batch, 6, batch));
  CHECK(refusal(merge_axes{0}, {batch, heads, 4}) == "two symbolic extents cannot be merged");
  CHECK(result(split_axis{0, 6, batch, heads}, result(merge_axes{0, batch}, x)) == shape{batch, heads(6), width(8)});
}

TEST_CASE("axes, windows and extents out of range are refused") {
  shape const x{4, 6};
  for (i64 a : {2, -3, 100}) {
    CHECK(refusal(slice_axis{a, 0, 1}, x) == "slice: window outside the axis");
    CHECK(refusal(concat{a}, x) == "concat: no such axis");
    CHECK(refusal(split_axes{2, a}, x) == "split: no such axis");
    CHECK(refusal(transpose{0, a}, x) == "transpose: no such axis");
    CHECK(refusal(split_axis{a, 2}, x) == "no such axis");
    CHECK(refusal(unslice_axis{a, 0, 9}, x) == "unslice: window outside the axis");
  }
  CHECK(refusal(slice_axis{0, -1, 2}, x) == "slice: window outside the axis");
  CHECK(refusal(slice_axis{0, 3, 2}, x) == "slice: window outside the axis");
  CHECK(refusal(slice_axis{0, 2, INT64_MAX}, x) == "slice: window outside the axis");
  CHECK(refusal(slice_axis{0, 0, 0}, x) == "slice: window outside the axis");
  CHECK(refusal(unslice_axis{0, -1, 9}, x) == "unslice: window outside the axis");
  CHECK(refusal(unslice_axis{0, 2, 5}, x) == "unslice: window outside the axis");
  CHECK(refusal(split_axes{0, 0}, x) == "split: between 1 and 8 parts");
  CHECK(refusal(merge_axes{1}, x) == "no such pair of axes");
  CHECK(refusal(split_axis{0, 0}, x) == "extent not divisible by the inner extent");
  CHECK(refusal(reshape{1, 2, {-2, -3}}, x) == "reshape: an extent below 1");
  CHECK(refusal(reshape{3, 1, {1}}, x) == "reshape: axes kept or made are out of range");
  CHECK(refusal(reshape{1, 6, {6, 1, 1, 1, 1, 1}}, x) == "reshape: axes kept or made are out of range");
}
