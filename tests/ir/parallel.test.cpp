// tests/ir/parallel.test.cpp - sharding shapes, the six parallel operators, collectives recognised, graphs with parallel operators
#include <tensorpar/ir/parallel_graph.hpp>

#include <doctest/doctest.h>
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/ir/parallel_shape.hpp>
#include <tensorpar/op/kinds/parallel.hpp>
#include <tensorpar/op/operators.hpp>

#include "support/spine.hpp"

using namespace tests;

namespace {
tensorpar::ir::parallel_shape of(shape s, i64 sum, i64 copy, std::initializer_list<i64> degrees) {
  tensorpar::ir::parallel_shape p(s);
  p.sum = sum;
  p.copy = copy;
  int d = 0;
  for (i64 k : degrees) p.degree[d++] = k;
  return p;
}
tensorpar::ir::node_shapes lifted(tensorpar::op::any_op const& o, std::vector<shape> in, tensorpar::ir::parallel_shape const& x) {
  tensorpar::op::inference const r = o.op->infer(o.attr, {in.data(), o.op->arity < 0 ? static_cast<int>(in.size()) : o.op->arity});
  std::vector<shape> const out(r.out, r.out + r.n);
  tensorpar::ir::iteration_space const s = tensorpar::ir::space_of(o, in, out);
  auto const d = tensorpar::ir::degrees_from(s, x);
  REQUIRE(d.has_value());
  return tensorpar::ir::lift(s, o, in, out, *d);
}
}  // namespace

TEST_CASE("linear: sums, copies and shards of output, weight and bias") {
  // input degrees sum s, copy c, shards (b, e, i): output sum s*i, shards (b, e, c); weight copy s*b*e, shards (c, i); bias sum s*i, copy
  // b*e, shard c
  std::vector<shape> const in{{64, 64, 64}, {64, 64}, {64}};
  for (i64 s : {1, 2})
    for (i64 b : {1, 4})
      for (i64 e : {1, 8})
        for (i64 i : {1, 4})
          for (i64 c : {1, 4}) {
            CAPTURE(s); CAPTURE(b); CAPTURE(e); CAPTURE(i); CAPTURE(c);
            tensorpar::ir::node_shapes const r = lifted(linear{64}, in, of(in[0], s, c, {b, e, i}));
            REQUIRE(r.problem.empty());
            CHECK(r.out[0] == of({64, 64, 64}, s * i, 1, {b, e, c}));
            CHECK(r.in[1] == of(in[1], 1, s * b * e, {c, i}));
            CHECK(r.in[2] == of(in[2], s * i, b * e, {c}));
          }
}
TEST_CASE("other operators: what may be sharded and what becomes partial") {
  std::vector<shape> conv{{8, 16, 8, 8}, {16, 16, 3, 3}};
  tensorpar::ir::node_shapes r = lifted(conv2d{.out = 16}, conv, of(conv[0], 2, 4, {2, 4, 1, 1}));
  CHECK(r.out[0] == of({8, 16, 8, 8}, 2 * 4, 1, {2, 4, 1, 1}));
  CHECK(r.in[1] == of(conv[1], 1, 2 * 2, {4, 4, 1, 1}));
  std::vector<shape> bag{shape({8, 6}, dtype::i32), {100, 32}};
  r = lifted(embedding_bag{100, 32}, bag, of(bag[0], 1, 1, {2, 3}));
  CHECK(r.out[0] == of({8, 32}, 3, 1, {2, 1}));
  CHECK(r.in[1] == of(bag[1], 1, 6, {1, 1}));
  std::vector<shape> soft{{8, 16}};
  CHECK_FALSE(lifted(softmax{}, soft, of(soft[0], 1, 1, {1, 2})).problem.empty());
  CHECK_FALSE(lifted(softmax{}, soft, of(soft[0], 2, 1, {2, 1})).problem.empty());
  std::vector<shape> image{{8, 16, 8, 8}};
  CHECK_FALSE(lifted(max_pool(), image, of(image[0], 2, 1, {1, 1, 1, 1})).problem.empty());
  CHECK(lifted(avg_pool(), image, of(image[0], 2, 1, {1, 1, 1, 1})).problem.empty());
  std::vector<shape> two{{8, 16}, {8, 16}};
  CHECK(lifted(tensorpar::add{}, two, of(two[0], 2, 1, {4, 1})).out[0] == of(two[0], 2, 1, {4, 1}));
}
TEST_CASE("the six parallel operators and their inverses") {
  tensorpar::ir::parallel_shape const x = of({8, 12}, 2, 3, {2, 1});
  auto after = [&](tensorpar::op::any_op const& o, tensorpar::ir::parallel_shape const& s) {
    tensorpar::ir::parallel_result const r = tensorpar::ir::parallel_rule(o, s);
    REQUIRE(r.ok());
    return r.out[0];
  };
  CHECK(after(parallel::combine{1, 4}, after(parallel::partition{1, 4}, x)) == x);
  CHECK(after(parallel::batch{0, 2}, after(parallel::pipeline{0, 2}, x)) == x);
  CHECK(after(parallel::replicate{2}, x).copy == 6);
  CHECK(after(parallel::reduce{2}, x).sum == 1);
  // replicate and reduce are not inverses: they act on different counts
  CHECK_FALSE(after(parallel::reduce{2}, after(parallel::replicate{2}, x)) == x);
  CHECK_FALSE(tensorpar::ir::parallel_rule(parallel::partition{1, 5}, x).ok());
  CHECK_FALSE(tensorpar::ir::parallel_rule(parallel::combine{0, 4}, x).ok());
  CHECK_FALSE(tensorpar::ir::parallel_rule(parallel::reduce{3}, x).ok());
  CHECK_FALSE(tensorpar::ir::parallel_rule(parallel::partition{2, 2}, x).ok());
}
TEST_CASE("adjacent parallel operators are collectives") {
  CHECK(tensorpar::ir::recognise(parallel::reduce{4}, parallel::replicate{4}) == tensorpar::ir::reshard_kind::all_reduce);
  CHECK(tensorpar::ir::recognise(parallel::reduce{4}, parallel::partition{1, 4}) == tensorpar::ir::reshard_kind::reduce_scatter);
  CHECK(tensorpar::ir::recognise(parallel::combine{0, 4}, parallel::replicate{4}) == tensorpar::ir::reshard_kind::all_gather);
  CHECK(tensorpar::ir::recognise(parallel::combine{0, 4}, parallel::partition{1, 4}) == tensorpar::ir::reshard_kind::all_to_all);
  CHECK_FALSE(tensorpar::ir::recognise(parallel::combine{0, 4}, parallel::partition{0, 4}).has_value());
  CHECK_FALSE(tensorpar::ir::recognise(parallel::reduce{4}, parallel::replicate{2}).has_value());
  // what a reshard calls a collective is what its operators are recognised as
  for (tensorpar::ir::reshard_kind k : {tensorpar::ir::reshard_kind::all_reduce, tensorpar::ir::reshard_kind::reduce_scatter,
                                        tensorpar::ir::reshard_kind::all_gather, tensorpar::ir::reshard_kind::all_to_all}) {
    auto const ops = tensorpar::ir::operators_of({k, 0, 1, {{4, 1}}, {}, {}}, 2);
    CHECK(tensorpar::ir::recognise(ops[0], ops[1]) == k);
  }
}
TEST_CASE("parallelised graphs are valid, and differentiating them gives the same numbers") {
  std::mt19937 draw(5);
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (int trial = 0; trial < 25; ++trial) {
      plan const p = random_plan(g, 8, draw);
      std::vector<tensorpar::ir::sharding> s;
      for (op_strategy const& c : p.nodes) s.push_back(c.sharding);
      bool replicas = false;
      for (tensorpar::ir::sharding const& x : s) for (tensorpar::ir::mesh_axis const& a : x.axes) replicas = replicas || !a.letter;
      tensorpar::ir::parallel_graph q = tensorpar::ir::parallelize(g, s);
      CAPTURE(trial);
      for (std::string const& e : tensorpar::ir::problems(q)) FAIL_CHECK(e);
      if (trial >= 3) continue;
      // parallel operators are the identity on the logical tensor, and so are their derivatives
      executor_of<prime_field> a(differentiate(q.graph), serial_plan(q.graph)), b(differentiate(g), serial_plan(g));
      bool const equal = train(a, 2) == train(b, 2);
      CHECK(equal);
    }
}
TEST_CASE("a spoilt parallel graph is found") {
  computation_graph const g = residual_mlp();
  std::vector<tensorpar::ir::sharding> s(g.nodes.size());
  for (tensorpar::ir::sharding& x : s) x = {0, {{'0', 4, 1}}};
  tensorpar::ir::parallel_graph p = tensorpar::ir::parallelize(g, s);
  CHECK(tensorpar::ir::problems(p).empty());
  tensorpar::ir::parallel_graph q = p;
  for (tensorpar::ir::parallel_shape& x : q.shapes) if (x.copy > 1) { x.copy = 1; break; }
  CHECK_FALSE(tensorpar::ir::problems(q).empty());
  q = p;
  q.meshes.back().axes[0].degree = 3;
  CHECK_FALSE(tensorpar::ir::problems(q).empty());
}
