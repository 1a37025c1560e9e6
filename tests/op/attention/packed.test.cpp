// tests/op/attention/packed.test.cpp - shapes, work and loops of attention whose queries, keys and values are one tensor
#include <tensorpar/op/attention/packed.hpp>
#include <doctest/doctest.h>

#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/op/core/spelling.hpp>

using namespace tensorpar;

namespace {

op::inference inferred(op::any_op const& o, std::vector<shape> const& in) {
  return o.op->infer(o.attr, {in.data(), static_cast<int>(in.size())});
}
std::string refusal(op::any_op const& o, shape const& x) {
  op::inference const r = inferred(o, {x});
  return r.ok() ? "accepted" : r.rule;
}

}  // namespace

TEST_CASE("a third of the columns comes out; log-sum-exps are one per query and head, in f32") {
  for (dtype type : {dtype::f32, dtype::bf16}) {
    shape const x = shape{4, 6, 24}.of(type), y = shape{4, 6, 8}.of(type);
    CHECK(op::spell(inferred(packed_attention{2}, {x}).out[0]) == op::spell(y));
    CHECK(op::spell(inferred(packed_attention_grad{2}, {y, x}).out[0]) == op::spell(x));
    op::inference const r = inferred(packed_attention_with_lse{2, true}, {x});
    REQUIRE(r.n == 2);
    CHECK(op::spell(r.out[0]) == op::spell(y));
    CHECK(op::spell(r.out[1]) == op::spell(shape{4, 2, 6}));
    CHECK(r.out[1].type == dtype::f32);
    CHECK(op::spell(inferred(packed_attention_grad_from_lse{2, true}, {y, x, y, r.out[1]}).out[0]) == op::spell(x));
  }
}

TEST_CASE("widths that are no three tensors of that many heads are refused, and tensors that are no sequences") {
  for (op::any_op const& o : {op::any_op(packed_attention{2}), op::any_op(packed_attention_with_lse{2})}) {
    CHECK(refusal(o, {4, 6, 24}) == "accepted");
    CHECK(refusal(o, {4, 6, 16}) == "width not divisible by three times the heads");
    CHECK(refusal(o, {4, 6, 9}) == "width not divisible by three times the heads");
    CHECK(refusal(o, {6, 24}) == "packed_attention takes [batch,seq,3 hidden]");
  }
  CHECK(refusal(packed_attention{0}, {4, 6, 24}) == "width not divisible by three times the heads");
}

TEST_CASE("which operators are attention, its gradient, and which have log-sum-exps") {
  struct {
    op::any_op op;
    bool attends, back, lse;
  } const all[] = {{attention{2}, true, false, false},
                   {packed_attention{2}, true, false, false},
                   {attention_grad{2}, false, true, false},
                   {packed_attention_grad{2}, false, true, false},
                   {op::attention_with_lse{2}, false, false, true}, {packed_attention_with_lse{2}, false, false, true},
                   {op::attention_grad_from_lse{{2}}, false, false, true}, {packed_attention_grad_from_lse{{2}}, false, false, true}};
  for (auto const& x : all) {
    CAPTURE(x.op.op->name);
    CHECK(is_attention(x.op) == x.attends);
    CHECK(is_attention_grad(x.op) == x.back);
    CHECK(has_lse(x.op) == x.lse);
  }
}

TEST_CASE("its work is attention's") {
  shape const x{4, 6, 24}, y{4, 6, 8}, lse{4, 2, 6};
  auto const flops = [](op::any_op const& o, std::vector<shape> const& in) {
    op::inference const r = inferred(o, in);
    return o.op->flops(o.attr, {in.data(), static_cast<int>(in.size())}, {r.out, r.n});
  };
  for (bool causal : {false, true}) {
    double const forward = flops(attention{2, causal}, {y, y, y}), back = flops(attention_grad{2, causal}, {y, y, y, y});
    CHECK(flops(packed_attention{2, causal}, {x}) == forward);
    CHECK(flops(packed_attention_with_lse{2, causal}, {x}) == forward);
    CHECK(flops(packed_attention_grad{2, causal}, {y, x}) == back);
    CHECK(flops(packed_attention_grad_from_lse{2, causal}, {y, x, y, lse}) == back);
  }
}

TEST_CASE("samples and whole heads split; queries, which are keys too, do not") {
  shape const x{4, 6, 24}, y{4, 6, 8}, lse{4, 2, 6};
  auto const loops = [](op::any_op const& o, std::vector<shape> const& in, std::vector<shape> const& out) {
    std::string s;
    for (ir::node_loop const& l : ir::space_of(o, in, out).loops) s += std::string(1, l.letter) + std::to_string(l.units) + " ";
    return s;
  };
  CHECK(loops(packed_attention{2}, {x}, {y}) == "b4 S1 e2 ");
  CHECK(loops(packed_attention_grad{2}, {y, x}, {x}) == "b4 S1 e2 ");
  CHECK(loops(packed_attention_with_lse{2}, {x}, {y, lse}) == "b4 S1 e2 ");
  CHECK(loops(packed_attention_grad_from_lse{2}, {y, x, y, lse}, {x}) == "b4 S1 e2 ");
}
