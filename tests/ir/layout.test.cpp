// tests/ir/layout.test.cpp - shardings, layouts and iteration spaces
#include <tensorpar/ir/layout.hpp>

#include <doctest/doctest.h>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/op/core/block.hpp>
#include <tensorpar/op/operators.hpp>

#include <algorithm>
#include <random>
#include <set>

using namespace tensorpar;

namespace {
ir::iteration_space space(op::any_op const& o, std::vector<shape> in) {
  op::inference const r = o.op->infer(o.attr, {in.data(), o.op->arity < 0 ? static_cast<int>(in.size()) : o.op->arity});
  REQUIRE(r.ok());
  return ir::space_of(o, in, std::vector<shape>(r.out, r.out + r.n));
}
std::string loops_of(ir::iteration_space const& s) {
  std::string r;
  for (ir::node_loop const& l : s.loops) r += std::string(1, l.letter) + std::to_string(l.units) + (l.reduced ? "! " : " ");
  return r;
}
}  // namespace

TEST_CASE("iteration spaces: letters, units and what is reduced") {
  CHECK(loops_of(space(linear{32}, {{8, 16, 64}, {32, 64}, {32}})) == "08 116 i64! o32 ");
  CHECK(loops_of(space(conv2d{.out = 8}, {{4, 3, 8, 8}, {8, 3, 3, 3}})) == "n4 c3! H1! W1! o8 R1! S1! Y1 X1 ");
  CHECK(loops_of(space(conv2d{.out = 8, .groups = 4}, {{4, 16, 8, 8}, {8, 4, 3, 3}})) == "n4 g4 H1! W1! C1! R1! S1! Y1 X1 ");
  CHECK(loops_of(space(attention{.heads = 4}, {{2, 6, 32}, {2, 10, 32}, {2, 10, 32}})) == "b2 q6 e4 K1! ");
  CHECK(loops_of(space(reshape{1, 2, {4, 6}}, {{8, 24}})) == "08 a4 Q1 ");
  CHECK(loops_of(space(embedding{100, 16}, {shape({8, 4}, dtype::i32), {100, 16}})) == "08 14 v100! e16 ");
  CHECK(loops_of(space(transpose{}, {{2, 3, 5}})) == "02 13 25 ");
  CHECK(loops_of(space(softmax{}, {{4, 6}})) == "04 E1 ");
}

TEST_CASE("layouts follow from notation and sharding") {
  ir::iteration_space const s = space(linear{32}, {{8, 64}, {32, 64}, {32}});
  ir::sharding const p{0, {{'0', 2, 4}, {'o', 2, 2}, {'i', 2, 1}}};
  CHECK(ir::misfit(s, p) == -1);
  CHECK(ir::operand_layout(s, "", p, 0) ==
        ir::canonical({0, {{ir::part_kind::shard, 0, 2, 4}, {ir::part_kind::replicate, -1, 2, 2}, {ir::part_kind::shard, 1, 2, 1}}}));
  CHECK(ir::operand_layout(s, "", p, 1) ==
        ir::canonical({0, {{ir::part_kind::replicate, -1, 2, 4}, {ir::part_kind::shard, 0, 2, 2}, {ir::part_kind::shard, 1, 2, 1}}}));
  CHECK(ir::operand_layout(s, "", p, 2) ==
        ir::canonical({0, {{ir::part_kind::replicate, -1, 2, 4}, {ir::part_kind::shard, 0, 2, 2}, {ir::part_kind::replicate, -1, 2, 1}}}));
  CHECK(ir::result_layout(s, "", p, 0) ==
        ir::canonical({0, {{ir::part_kind::shard, 0, 2, 4}, {ir::part_kind::shard, 1, 2, 2}, {ir::part_kind::partial, -1, 2, 1}}}));
  CHECK(ir::misfit(s, {0, {{'o', 5, 1}}}) == 0);
  CHECK(ir::misfit(s, {0, {{'0', 2, 1}, {'z', 2, 2}}}) == 1);
  CHECK(ir::misfit(s, {0, {{'0', 4, 1}, {'0', 4, 4}}}) == 0);          // 16 parts of 8
}

TEST_CASE("a device is held where it has coordinates, whatever the strides") {
  std::mt19937 draw(4);
  int held = 0;
  for (int i = 0; i < 2000; ++i) {
    ir::layout l{static_cast<int>(draw() % 5), {}};
    for (int k = static_cast<int>(draw() % 4); k > 0; --k)
      l.axes.push_back({ir::part_kind::replicate, -1, 1 + static_cast<i64>(draw() % 4), static_cast<i64>(draw() % 9) - 1});
    for (int d = -2; d < 40; ++d) {
      CHECK(l.holds(d) == !l.coordinates(d).empty());
      held += l.holds(d);
    }
  }
  CHECK(held > 2000);
}

TEST_CASE("coordinates undo devices, blocks tile the tensor") {
  std::mt19937 draw(3);
  shape const s{24, 12};
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<ir::layout_axis> a;
    i64 used[2] = {1, 1}, size = 1;
    for (int k = 0; k < 3; ++k) {
      i64 const d = 2 + static_cast<i64>(draw() % 2);
      int const what = static_cast<int>(draw() % 4);
      if (what < 2 && s.d[what].n % (used[what] * d) == 0) { used[what] *= d; a.push_back({ir::part_kind::shard, what, d, 1}); }
      else a.push_back({what == 2 ? ir::part_kind::partial : ir::part_kind::replicate, -1, d, 1});
      size *= d;
    }
    std::vector<std::size_t> order(a.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), draw);
    i64 stride = 1 + static_cast<i64>(draw() % 2);                   // also with gaps
    for (std::size_t i : order) { a[i].stride = stride; stride *= a[i].degree; }
    ir::layout const raw{static_cast<int>(draw() % 5), a}, l = ir::canonical(raw);
    CAPTURE(trial);
    CHECK(l.size() == size);
    std::vector<int> const devices = l.devices();
    CHECK(std::set<int>(devices.begin(), devices.end()).size() == static_cast<std::size_t>(size));
    i64 covered = 0;
    for (int d = 0; d < 200; ++d) {
      bool const member = std::find(devices.begin(), devices.end(), d) != devices.end();
      CHECK(l.holds(d) == member);
      CHECK(raw.holds(d) == member);
      if (!member) continue;
      auto const c = l.coordinates(d);
      i64 back = l.start;
      for (std::size_t k = 0; k < l.axes.size(); ++k) back += c[k] * l.axes[k].stride;
      CHECK(back == d);
      op::tensor_block const x = ir::block_of(l, s, d), y = ir::block_of(raw, s, d);
      CHECK(std::equal(x.offset, x.offset + 2, y.offset));           // canonical describes the same blocks
      CHECK(x.elements() == ir::part_of(l, s).elements());
      covered += x.elements();
    }
    CHECK(covered == s.elements() * l.degree(ir::part_kind::replicate) * l.degree(ir::part_kind::partial));
  }
}
