// tests/op/kinds/update.test.cpp - update rules as operators: results for what they replace, elementwise, one optional factor
#include <tensorpar/op/kinds/update.hpp>
#include <doctest/doctest.h>

#include <string>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <vector>

using namespace tensorpar;

TEST_CASE("an update gives what it replaces: the parameter and its states; the clip factor adds nothing") {
  struct rule { op::any_op op; int states; double flops; };
  for (rule const& u : {rule{sgd_update{}, 0, 3}, rule{momentum_update{}, 1, 5}, rule{adamw_update{}, 2, 14}}) {
    CHECK(is_update(u.op));
    for (shape const& s : {shape{8}, shape{4, 6}, shape{2, 3, 4, 5}})
      for (bool clipped : {false, true}) {
        INFO(std::string(u.op.op->name), ", rank ", s.rank, clipped ? ", clipped" : "");
        std::vector<shape> in(static_cast<std::size_t>(2 + u.states), s);
        if (clipped) in.push_back(scalar);
        op::inference const r = u.op.op->infer(u.op.attr, {in.data(), static_cast<int>(in.size())});
        REQUIRE(r.ok());
        REQUIRE(r.n == 1 + u.states);
        std::vector<shape> const out(r.out, r.out + r.n);
        for (shape const& x : out) CHECK(x == s);
        CHECK(u.op.op->flops(u.op.attr, {in.data(), static_cast<int>(in.size())}, {out.data(), r.n}) ==
              u.flops * static_cast<double>(s.elements()));
        ir::iteration_space const space = ir::space_of(u.op, in,
                                                       out);  // pointwise: every axis is a loop of all tensors, but not of the factor
        REQUIRE(static_cast<int>(space.loops.size()) == s.rank);
        for (std::size_t i = 0; i < space.loops.size(); ++i) {
          ir::node_loop const& l = space.loops[i];
          CHECK(l.units == s[static_cast<int>(i)].n);
          CHECK(!l.reduced);
          for (std::size_t k = 0; k < in.size(); ++k) CHECK(l.in[k] == (in[k].rank ? static_cast<int>(i) : -1));
          for (int x : l.out) CHECK(x == static_cast<int>(i));
        }
      }
  }
  CHECK(!is_update(relu{}));
  CHECK(!is_update(op::any_op{}));
}

TEST_CASE("an update leaves its states in their own number format") {
  for (op::any_op const& u : {op::any_op(momentum_update{}), op::any_op(adamw_update{}), op::any_op(with_master<momentum_update>{}),
                              op::any_op(with_master<adamw_update>{})}) {
    bool const master = has_master(u);
    int const states = u.is<momentum_update>() || u.is<with_master<momentum_update>>() ? 1 : 2;
    shape const w = shape{4, 6}.of(master ? dtype::bf16 : dtype::f32), wide = shape{4, 6}.of(dtype::f32);
    for (dtype t : {dtype::f32, dtype::bf16}) {
      std::vector<shape> in{w, wide};
      for (int k = 0; k < states; ++k) in.push_back(w.of(t));
      if (master) in.push_back(wide);
      op::inference const r = u.op->infer(u.attr, {in.data(), static_cast<int>(in.size())});
      REQUIRE(r.n == 1 + states + master);
      CHECK(r.out[0] == w);
      for (int k = 1; k <= states; ++k) CHECK(r.out[k] == w.of(t));
      if (master) CHECK(r.out[states + 1] == wide);
    }
  }
}

TEST_CASE("a gradient norm is a sum over all elements, whose parts are partial sums, and a factor of scalars") {
  shape const x{4, 6};
  op::any_op const square(square_sum{}), clip(clip_factor{2.0});
  op::inference const r = square.op->infer(square.attr, {&x, 1});
  REQUIRE(r.ok());
  CHECK(r.out[0] == scalar);
  ir::iteration_space const space = ir::space_of(square, {x}, {scalar});
  REQUIRE(space.loops.size() == 2);
  for (ir::node_loop const& l : space.loops) CHECK(l.reduced);
  std::vector<shape> const shares(5, scalar);
  op::inference const both = clip.op->infer(clip.attr, {shares.data(), 5});
  CHECK(both.n == 2);
  for (int k : {0, 1}) CHECK(both.out[k] == scalar);
  CHECK(ir::space_of(clip, shares, {scalar, scalar}).loops.empty());
  CHECK(clip.as<clip_factor>().max_norm == 2.0);
}

TEST_CASE("choices of an optimizer compare by all that they hold") {
  optimizer_choice const a;
  CHECK(a == optimizer_choice{});
  CHECK(a.kind == optimizer_kind::sgd);
  optimizer_choice b = a;
  b.clip_norm = 1;
  CHECK(!(a == b));
}
