// tests/ir/parallel_inference.test.cpp - the sharding of results follows from the sharding of operands, as `lift` makes both from loops
#include <tensorpar/ir/parallel_inference.hpp>
#include <doctest/doctest.h>

#include <support/effort.hpp>
#include <support/operator_samples.hpp>

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
/// What an operator makes of these operands; one result.
tensorpar::ir::parallel_shape after(tensorpar::op::any_op const& o, std::vector<tensorpar::ir::parallel_shape> const& in) {
  tensorpar::ir::parallel_result const r = tensorpar::ir::infer_parallel_shapes(o, in);
  CAPTURE(r.problem);
  REQUIRE(r.ok());
  return r.out[0];
}
bool refused(tensorpar::op::any_op const& o, std::vector<tensorpar::ir::parallel_shape> const& in, std::string_view why) {
  tensorpar::ir::parallel_result const r = tensorpar::ir::infer_parallel_shapes(o, in);
  CAPTURE(r.problem);
  CHECK(r.problem.find(o.op->name) != std::string::npos);
  return !r.ok() && r.problem.find(why) != std::string::npos;
}
}  // namespace

TEST_CASE("it is the inverse of lift, for every operator, with replicas") {
  std::mt19937 draw(1);
  int tried = 0, sharding = 0, summed = 0;
  for (int turn = 0; turn < test_effort::cases(40); ++turn)
    for (operator_sample const& s : operator_samples(static_cast<unsigned>(draw()))) {
      if (is_parallel(s.op)) continue;
      std::vector<shape> in = s.in;
      shapes const acts{s.in.data(), static_cast<int>(s.in.size())};
      tensorpar::op::inference const y = s.op.op->infer(s.op.attr, acts);
      REQUIRE(y.ok());
      tensorpar::op::weight_list const w = s.op.op->weights(s.op.attr, acts);
      for (int k = 0; k < w.n; ++k) in.push_back(w.w[k].type);
      if (in.empty()) continue;
      std::vector<shape> const out(y.out, y.out + y.n);
      tensorpar::ir::iteration_space const space = tensorpar::ir::space_of(s.op, in, out);
      tensorpar::ir::loop_degrees d;
      for (tensorpar::ir::node_loop const& l : space.loops) {
        std::vector<i64> divisors;
        for (i64 k = 1; k <= 4 && k <= l.units; ++k) if (l.units % k == 0) divisors.push_back(k);
        bool seen = false;      // what no operand has cannot be read off the operands
        for (int a : l.in) seen = seen || a >= 0;
        d.split.push_back({l.letter, seen ? divisors[draw() % divisors.size()] : 1});
      }
      if (tensorpar::ir::passes_sums(s.op) && draw() % 2) d.sum = 2;
      tensorpar::ir::node_shapes const lifted = tensorpar::ir::lift(space, s.op, in, out, d);
      CAPTURE(tensorpar::op::spell(s.op)); CAPTURE(lifted.problem);
      REQUIRE(lifted.problem.empty());
      i64 const replicas = 1 + draw() % 3;
      std::vector<tensorpar::ir::parallel_shape> operands = lifted.in, results = lifted.out;
      for (tensorpar::ir::parallel_shape& x : operands) x.copy *= replicas;
      for (tensorpar::ir::parallel_shape& x : results) x.copy *= replicas;
      tensorpar::ir::parallel_result const r = tensorpar::ir::infer_parallel_shapes(s.op, operands);
      CAPTURE(r.problem);
      REQUIRE(r.ok());
      REQUIRE(r.out.size() == results.size());
      for (std::size_t k = 0; k < results.size(); ++k) REQUIRE(tensorpar::ir::spell(r.out[k]) == tensorpar::ir::spell(results[k]));
      ++tried;
      for (auto const& [c, k] : d.split) if (k > 1) { ++sharding; break; }
      summed += d.sum > 1;
    }
  CHECK(tried > 100);
  CHECK(sharding > tried / 2);
  CHECK(summed > 20);
}

TEST_CASE("partial sums pass through one operand of a product, through all operands of a sum, and through nothing that is not linear") {
  shape const x{8, 12}, w{16, 12};
  CHECK(after(linear{16, false}, {of(x, 3, 1, {2, 1}), of(w, 1, 6, {1, 1})}) == of({8, 16}, 3, 1, {2, 1}));
  CHECK(after(linear{16, false}, {of(x, 1, 3, {2, 1}), of(w, 3, 2, {1, 1})}) == of({8, 16}, 3, 1, {2, 1}));
  CHECK(after(linear{16, false}, {of(x, 3, 1, {1, 4}), of(w, 1, 3, {1, 4})}) == of({8, 16}, 12, 1, {1, 1}));
  CHECK(refused(linear{16, false}, {of(x, 3, 1, {1, 1}), of(w, 3, 1, {1, 1})}, "two operands of a product"));
  CHECK(after(mul{}, {of(x, 2, 1, {1, 1}), of(x, 1, 2, {1, 1})}) == of(x, 2, 1, {1, 1}));
  CHECK(after(tensorpar::add{}, {of(x, 2, 1, {1, 1}), of(x, 2, 1, {1, 1})}) == of(x, 2, 1, {1, 1}));
  CHECK(refused(tensorpar::add{}, {of(x, 2, 1, {1, 1}), of(x, 1, 2, {1, 1})}, "different numbers of partial sums"));
  CHECK(refused(relu{}, {of(x, 2, 1, {1, 1})}, "partial sums cannot pass"));
  CHECK(refused(softmax{}, {of(x, 2, 1, {1, 1})}, "partial sums cannot pass"));
  shape const table{10, 4}, words = shape{8, 6}.of(dtype::i64);
  CHECK(after(embedding_bag{10, 4}, {of(words, 1, 2, {1, 3}), of(table, 2, 3, {1, 1})}) == of({8, 4}, 6, 1, {1, 1}));
}

TEST_CASE("what does not fit is refused with a reason") {
  shape const x{8, 12}, w{16, 12}, b{16};
  CHECK(refused(linear{16, false}, {of(x, 1, 1, {1, 2}), of(w, 1, 1, {1, 4})}, "split differently"));
  CHECK(refused(linear{16, false}, {of(x, 1, 1, {2, 1}), of(w, 1, 1, {1, 1})}, "lacks copies"));
  CHECK(refused(linear{16, false}, {of(x, 1, 4, {1, 1}), of(w, 1, 2, {1, 1})}, "different numbers of copies"));
  CHECK(refused(linear{16, true}, {of(x, 1, 1, {1, 2}), of(w, 1, 1, {1, 2}), of(b, 1, 2, {1})}, "bias"));
  CHECK(after(linear{16, true}, {of(x, 1, 1, {1, 2}), of(w, 1, 1, {1, 2}), of(b, 2, 1, {1})}) == of({8, 16}, 2, 1, {1, 1}));
  CHECK(refused(linear{16, false}, {of(x, 1, 1, {1, 1})}, "weight"));
  CHECK(refused(linear{16, false}, {of(x, 1, 1, {1, 1}), of({16, 13}, 1, 1, {1, 1})}, "weight 0"));
  CHECK(refused(concat{1}, {of(x, 1, 1, {1, 2}), of(x, 1, 1, {1, 2})}, "loop 'E'"));
  tensorpar::ir::parallel_shape const half = of({4, 6, 12}, 1, 1, {1, 1, 2});
  CHECK(refused(attention{3}, {half, half, half}, "loop 'e'"));
  CHECK(refused(matmul{}, {of(x, 1, 1, {1, 1}), of(x, 1, 1, {1, 1})}, "inner dimensions"));
  CHECK(refused(parallel::partition{0, 3}, {of(x, 1, 1, {1, 1})}, "does not divide"));
}
