// tests/op/attention/lse.test.cpp - shapes and loops of attention that leaves its log-sum-exps behind, and of the gradient from them
#include <tensorpar/op/attention/lse.hpp>
#include <doctest/doctest.h>

#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/op/core/spelling.hpp>

using namespace tensorpar;

namespace {

op::inference inferred(op::any_op const& o, std::vector<shape> const& in) {
  return o.op->infer(o.attr, {in.data(), static_cast<int>(in.size())});
}

}  // namespace

TEST_CASE("log-sum-exps are one per query and head, in f32 whatever attention is computed in") {
  for (dtype type : {dtype::f32, dtype::bf16}) {
    shape const q = shape{4, 6, 8}.of(type), k = shape{4, 5, 8}.of(type);
    op::inference const r = inferred(op::attention_with_lse{2, true}, {q, k, k});
    REQUIRE(r.n == 2);
    CHECK(op::spell(r.out[0]) == op::spell(q));
    CHECK(op::spell(r.out[1]) == op::spell(shape{4, 2, 6}));
    CHECK(r.out[1].type == dtype::f32);
    op::inference const back = inferred(op::attention_grad_from_lse{2, true}, {q, q, k, k, q, r.out[1]});
    REQUIRE(back.n == 3);
    for (int i = 0; i < 3; ++i) CHECK(op::spell(back.out[i]) == op::spell(i ? k : q));
  }
}

TEST_CASE("what attention refuses is refused, and what is computed is counted as attention's") {
  shape const q{4, 6, 8}, k{4, 5, 8};
  CHECK(!inferred(op::attention_with_lse{3}, {q, k, k}).ok());
  CHECK(!inferred(op::attention_with_lse{2}, {q, shape{3, 5, 8}, k}).ok());
  std::vector<shape> const three{q, k, k}, four{q, q, k, k};
  for (bool causal : {false, true}) {
    CHECK(op::attention_with_lse{2, causal}.flops({three.data(), 3}, {&q, 1}) == attention{2, causal}.flops({three.data(), 3}, {&q, 1}));
    double const back = attention_grad{2, causal}.flops({four.data(), 4}, {&q, 1});
    CHECK(op::attention_grad_from_lse{2, causal}.flops({four.data(), 4}, {&q, 1}) == back);
  }
}

TEST_CASE("samples, queries and heads split, heads as wholes, and log-sum-exps with them; keys do not") {
  shape const q{4, 6, 8}, k{4, 5, 8}, lse{4, 2, 6};
  auto const loops = [](op::any_op const& o, std::vector<shape> const& in, std::vector<shape> const& out) {
    std::string s;
    for (ir::node_loop const& l : ir::space_of(o, in, out).loops) s += std::string(1, l.letter) + std::to_string(l.units) + " ";
    return s;
  };
  CHECK(loops(op::attention_with_lse{2}, {q, k, k}, {q, lse}) == "b4 q6 e2 K1 ");
  CHECK(loops(op::attention_grad_from_lse{2}, {q, q, k, k, q, lse}, {q, k, k}) == "b4 q6 e2 K1 ");
}
