// tests/prover/values/evaluate_attention.test.cpp - states of attention: a commutative monoid, proved and computed; in parts as in one
#include <tensorpar/prover/values/evaluate_attention.hpp>
#include <doctest/doctest.h>

#include <random>
#include <tensorpar/prover/values/field_numbers.hpp>
#include <z3++.h>

using namespace tensorpar;
using namespace tensorpar::prover;

namespace {
using T = prime_field;
elements<T> run(field_numbers& a, auto const& o, std::vector<elements<T>> const& in) {
  op::any_op const op(o);
  std::vector<shape> types;
  for (auto const& x : in) types.push_back(x.type);
  op::inference const y = op.op->infer(op.attr, {types.data(), static_cast<int>(types.size())});
  REQUIRE(y.ok());
  elements<T> r;
  r.type = y.out[0];
  r.data.assign(static_cast<std::size_t>(r.type.elements()), T(0));
  if (op.is<attention>()) prover::detail::attend(a, op, in, r);
  else if (op.is<op::attention_parts>()) prover::detail::attend_in_parts(a, op, in, r);
  else prover::detail::put_together(a, op, in, r);
  return r;
}
}  // namespace

TEST_CASE("put together in any order and in any groups, states give attention to all keys, exactly") {
  std::mt19937 draw(3);
  for (int turn = 0; turn < 30; ++turn) {
    field_numbers a{draw()};
    auto up_to = [&](unsigned n) { return 1 + static_cast<i64>(draw() % n); };
    i64 const heads = up_to(2), width = heads * up_to(3), parts = 6, keys = up_to(3);
    auto const q = random_elements({2, 3, width}, draw, 1), k = random_elements({2, parts, keys, width}, draw, 1),
               v = random_elements({2, parts, keys, width}, draw, 1);
    auto joined = [&](elements<T> x) { x.type = {2, parts * keys, width}; return x; };
    auto const want = run(a, attention{heads}, {q, joined(k), joined(v)});
    auto const state = run(a, op::attention_parts{heads}, {q, k, v});
    CHECK(run(a, op::attention_finish{heads}, {state}).data == want.data);
    for (i64 left : {1, 2, 3, 6}) {
      auto const some = run(a, op::softmax_merge{heads, left}, {state});
      CHECK(run(a, op::attention_finish{heads}, {some}).data == want.data);
      CHECK(run(a, op::softmax_merge{heads, 1}, {some}).data == run(a, op::softmax_merge{heads, 1}, {state}).data);
    }
    // the parts in another order
    auto turned = state;
    std::size_t const one = state.data.size() / 2 / static_cast<std::size_t>(parts);
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t p = 0; p < static_cast<std::size_t>(parts); ++p)
        for (std::size_t e = 0; e < one; ++e)
          turned.data[(b * static_cast<std::size_t>(parts) + (p + 4) % static_cast<std::size_t>(parts)) * one + e] =
              state.data[(b * static_cast<std::size_t>(parts) + p) * one + e];
    CHECK(run(a, op::softmax_merge{heads, 1}, {turned}).data == run(a, op::softmax_merge{heads, 1}, {state}).data);
  }
}

TEST_CASE("the laws of the monoid for all numbers, by Z3: e^(x - y) is a quotient of positive numbers") {
  z3::context c;
  struct state { z3::expr o, l, m, e; };   // e: the exponential of m
  std::vector<z3::expr> given;
  auto variable = [&](std::string const& n) {
    auto real = [&](char const* x) { return c.real_const((n + x).c_str()); };
    state const s{real("o"), real("l"), real("m"), real("e")};
    given.push_back(s.e > 0);
    return s;
  };
  auto together = [](state const& x, state const& y) {
    z3::expr const first = x.m >= y.m, n = z3::ite(first, x.m, y.m), e = z3::ite(first, x.e, y.e);
    return state{x.o * (x.e / e) + y.o * (y.e / e), x.l * (x.e / e) + y.l * (y.e / e), n, e};
  };
  state const x = variable("x"), y = variable("y"), z = variable("z");
  // equal arguments have equal exponentials
  for (auto const& [a, b] : {std::pair(x, y), std::pair(y, z), std::pair(x, z)}) given.push_back(z3::implies(a.m == b.m, a.e == b.e));
  auto proved = [&](state const& a, state const& b) {
    for (z3::expr const& different : {a.o != b.o, a.l != b.l, a.m != b.m, a.e != b.e}) {
      z3::solver s(c);
      for (z3::expr const& g : given) s.add(g);
      s.add(different);
      if (s.check() != z3::unsat) return false;
    }
    return true;
  };
  CHECK(proved(together(together(x, y), z), together(x, together(y, z))));
  CHECK(proved(together(x, y), together(y, x)));
  state const none{c.real_val(0), c.real_val(0), x.m, x.e};    // nothing seen, whatever its maximum below x's
  CHECK(proved(together(x, none), x));
  // and a merge that forgets to rescale is none
  auto careless = [&](state const& a, state const& b) {
    state r = together(a, b);
    r.o = a.o + b.o;
    return r;
  };
  CHECK(!proved(careless(careless(x, y), z), together(x, together(y, z))));
}
