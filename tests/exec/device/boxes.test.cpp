// tests/exec/device/boxes.test.cpp - boxes copied between blocks, against a walk over every coordinate
#include <doctest/doctest.h>
#include <random>
#include <tensorpar/exec/device/boxes.hpp>
#include <vector>

using namespace tensorpar;

namespace {
i64 volume(op::tensor_block const& b) {
  i64 n = 1;
  for (int d = 0; d < b.rank; ++d) n *= b.local[d];
  return n;
}
i64 position(op::tensor_block const& b, i64 const* at) {
  i64 p = 0;
  for (int d = 0; d < b.rank; ++d) p = p * b.local[d] + at[d] - b.offset[d];
  return p;
}
}  // namespace

TEST_CASE("a box is copied and added where it lies, and nothing else is touched") {
  std::mt19937 draw(5);
  for (int turn = 0; turn < 300; ++turn) {
    op::tensor_block box{}, a{}, b{};
    box.rank = a.rank = b.rank = turn % 5;
    for (int d = 0; d < box.rank; ++d) {
      box.offset[d] = 2 + draw() % 3;
      box.local[d] = 1 + draw() % 4;
      for (op::tensor_block* x : {&a, &b}) {       // sometimes exactly the box, so that rows grow together
        i64 const before = draw() % 2 ? draw() % 3 : 0, after = draw() % 2 ? draw() % 3 : 0;
        x->offset[d] = box.offset[d] - before;
        x->local[d] = box.local[d] + before + after;
      }
    }
    std::vector<int> src(static_cast<std::size_t>(volume(a))), dst(static_cast<std::size_t>(volume(b)));
    for (int& x : src) x = static_cast<int>(draw() % 1000);
    for (int& x : dst) x = static_cast<int>(draw() % 1000);
    auto copied = dst, added = dst, want_copied = dst, want_added = dst;
    for (i64 i = 0; i < volume(box); ++i) {
      i64 at[shape::max_rank]{}, rest = i;
      for (int d = box.rank - 1; d >= 0; --d) { at[d] = box.offset[d] + rest % box.local[d]; rest /= box.local[d]; }
      int const x = src[static_cast<std::size_t>(position(a, at))];
      want_copied[static_cast<std::size_t>(position(b, at))] = x;
      want_added[static_cast<std::size_t>(position(b, at))] += x;
    }
    exec::copy_box(box, a, src.data(), b, copied.data());
    exec::add_box(box, a, src.data(), b, added.data());
    CHECK(copied == want_copied);
    CHECK(added == want_added);
  }
}
