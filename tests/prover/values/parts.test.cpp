// tests/prover/values/parts.test.cpp - devices that compute their own blocks make what one device makes
#include <tensorpar/prover/values/parts.hpp>
#include <doctest/doctest.h>

#include <support/effort.hpp>
#include <support/operator_samples.hpp>
#include <tensorpar/prover/values/field_numbers.hpp>

using namespace tests;
using namespace tensorpar::prover;

namespace {
elements<prime_field> random_elements(shape const& s, i64 end, std::mt19937& draw) {
  elements<prime_field> e;
  e.type = s;
  for (i64 i = 0; i < s.elements(); ++i) {
    u64 const x = static_cast<u64>(draw()) << 32 | draw();
    if (is_integer(s.type)) e.index.push_back(static_cast<i64>(x % static_cast<u64>(end)));
    else e.data.push_back(prime_field::raw(x % prime_field::modulus));
  }
  return e;
}
}  // namespace

TEST_CASE("blocks and partial sums give the whole result, for every operator and split") {
  std::mt19937 draw(1);
  field_numbers a{7};
  int tried = 0, sharding = 0, summed = 0;
  for (int turn = 0; turn < test_effort::cases(12); ++turn)
    for (operator_sample const& s : operator_samples(static_cast<unsigned>(draw()))) {
      std::vector<shape> in = s.in;
      shapes const acts{s.in.data(), static_cast<int>(s.in.size())};
      op::weight_list const w = s.op.op->weights(s.op.attr, acts);
      for (int k = 0; k < w.n; ++k) in.push_back(w.w[k].type);
      if (in.empty() || is_parallel(s.op)) continue;
      op::inference const y = s.op.op->infer(s.op.attr, acts);
      std::vector<shape> const out(y.out, y.out + y.n);
      ir::iteration_space const space = tensorpar::ir::space_of(s.op, in, out);
      ir::loop_degrees d;
      for (ir::node_loop const& l : space.loops) {
        std::vector<i64> divisors;
        for (i64 k = 1; k <= 4 && k <= l.units; ++k) if (l.units % k == 0) divisors.push_back(k);
        bool seen = false;
        for (int x : l.in) seen = seen || x >= 0;
        d.split.push_back({l.letter, seen ? divisors[draw() % divisors.size()] : 1});
      }
      if (ir::passes_sums(s.op) && draw() % 2) d.sum = 3;
      ir::node_shapes const lifted = lift(space, s.op, in, out, d);
      REQUIRE(lifted.problem.empty());
      // every operand in random partial sums, their total is what one device has
      std::vector<sharding_elements<prime_field>> parts;
      std::vector<elements<prime_field>> serial;
      i64 const rows = s.op.op->name.starts_with("embedding") ? in.back().d[0].n : 1;
      for (ir::parallel_shape const& p : lifted.in) {
        sharding_elements<prime_field> x{p, {}};
        for (i64 i = 0; i < p.sum; ++i) x.part.push_back(random_elements(p.type, rows, draw));
        serial.push_back(whole(a, x));
        parts.push_back(std::move(x));
      }
      CAPTURE(spell(s.op));
      auto const expected = evaluate(a, s.op, serial, out);
      auto const made = run_on_parts(a, s.op, parts, lifted.out);
      REQUIRE(expected.empty() == made.empty());
      if (made.empty()) continue;
      for (std::size_t k = 0; k < made.size(); ++k) {
        auto const total = whole(a, made[k]);
        bool const equal = total.data == expected[k].data && total.index == expected[k].index;
        CAPTURE(spell(lifted.out[k]));
        REQUIRE(equal);
        CHECK(static_cast<i64>(made[k].part.size()) == lifted.out[k].sum);
        summed += lifted.out[k].sum > 1;
      }
      ++tried;
      for (auto const& [c, k] : d.split) if (k > 1) { ++sharding; break; }
    }
  CHECK(tried > 90);
  CHECK(sharding > tried / 2);
  CHECK(summed > 10);
}

TEST_CASE("reduce adds neighbours, replicate and partition keep what is there") {
  std::mt19937 draw(2);
  field_numbers a;
  ir::parallel_shape s(shape{4, 6});
  s.sum = 6;
  sharding_elements<prime_field> x{s, {}};
  for (int i = 0; i < 6; ++i) x.part.push_back(random_elements(s.type, 1, draw));
  ir::parallel_result const r = tensorpar::ir::infer_parallel_shapes(parallel::reduce{3}, {s});
  auto const y = run_on_parts(a, op::any_op(parallel::reduce{3}), std::vector{x}, r.out);
  REQUIRE(y[0].part.size() == 2);
  CHECK(y[0].part[1].data[5] == x.part[3].data[5] + x.part[4].data[5] + x.part[5].data[5]);
  CHECK(whole(a, y[0]).data == whole(a, x).data);
  op::any_op const split = parallel::partition{0, 2};
  auto const z = run_on_parts(a, split, std::vector{x}, tensorpar::ir::infer_parallel_shapes(split, {s}).out);
  CHECK(z[0].part.size() == 6);
  CHECK(z[0].where.degree[0] == 2);
}
