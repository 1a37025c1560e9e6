// tests/prover/cases/sharding_system.test.cpp - linear forms say of all degrees what numbers say of some
#include <tensorpar/prover/cases/sharding_system.hpp>
#include <tensorpar/core/index.hpp>
#include <doctest/doctest.h>

#include <random>
#include <support/effort.hpp>
#include <tensorpar/prover/cases/exponents.hpp>
#include <tensorpar/prover/cases/instances.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>

#include "rules_that_hold.hpp"

using namespace tensorpar;
using namespace tensorpar::prover;

static_assert(ir::degree_algebra<valued_degrees>);
static_assert(ir::degree_algebra<tensorpar::ir::counted_degrees>);

TEST_CASE("forms are a commutative group") {
  degree_form const a{{1, 0, 2}}, b{{0, 3}};
  CHECK(a + b == b + a);
  CHECK((a + b) - b == a);
  CHECK((a - a).zero());
  CHECK(degree_form{{1, 0, 0}} == degree_form{{1}});
  CHECK(!(a == b));
}

TEST_CASE("where exponents satisfy the requirements, powers of two are valid shardings and the forms give the results") {
  std::mt19937 draw(1);
  int checked = 0, sharding = 0;
  for (char const* text : tests::rules_that_hold) {
    rewrite::rule const r = tensorpar::rewrite::parse_rule(text);
    CAPTURE(std::string(text));
    for (rule_case const& c : cases_of(r)) {
      for (int turn = 0; turn < test_effort::cases(4); ++turn) {
        auto const x = prover::detail::random_exponents(c.shardings, 0, 2, draw);
        REQUIRE(x.has_value());
        // every axis long enough for any degree
        std::vector<tensorpar::ir::parallel_shape> tensors;
        for (shape s : c.tensors) {
          for (int d = 0; d < s.rank; ++d) s.d[d].n *= 1 << 10;
          tensors.emplace_back(s);
        }
        std::vector<i64> parameter = c.at.parameter;
        for (std::size_t u = 0; u < x->size(); ++u) {
          rewrite::rule_factor const& f = c.shardings.unknowns[u];
          i64 const k = i64{1} << (*x)[u];
          if (f.kind == tensorpar::rewrite::term_kind::parameter) { parameter[idx(f.index)] = k; continue; }
          tensorpar::ir::parallel_shape& s = tensors[idx(f.index)];
          (f.kind == tensorpar::rewrite::term_kind::degree ? s.degree[f.axis] : f.kind == tensorpar::rewrite::term_kind::copies ? s.copy
           : s.sum) = k;
        }
        std::vector<shape> types;
        for (ir::parallel_shape const& s : tensors) types.push_back(s.type);
        for (bool target : {false, true}) {
          rewrite::pattern_graph const& g = target ? r.target : r.source;
          auto const t = prover::detail::type_pattern(g, types, parameter, tensorpar::rewrite::standard_vocabulary());
          if (!t) continue;     // a window larger than an image
          std::vector<std::vector<ir::parallel_shape>> have;
          for (std::size_t i = 0; i < g.nodes.size(); ++i) {
            std::vector<tensorpar::ir::parallel_shape> in;
            for (rewrite::pattern_value v : g.nodes[i].in) in.push_back(tensorpar::rewrite::detail::value_of(v, tensors, have));
            ir::parallel_result const y = infer_parallel_shapes(t->op[i], in);
            CAPTURE(y.problem);
            REQUIRE(y.ok());
            have.push_back(y.out);
          }
          auto const& forms = target ? c.shardings.target : c.shardings.source;
          auto power = [&](degree_form const& f) {
            int e = 0;
            for (std::size_t u = 0; u < x->size(); ++u) e += f.at(u) * (*x)[u];
            return i64{1} << e;
          };
          for (std::size_t k = 0; k < g.outputs.size(); ++k) {
            ir::parallel_shape const& y = tensorpar::rewrite::detail::value_of(g.outputs[k], tensors, have);
            for (int d = 0; d < y.type.rank; ++d) CHECK(y.degree[d] == power(forms[k].axis[idx(d)]));
            CHECK(y.sum == power(forms[k].sum));
            CHECK(y.copy == power(forms[k].copy));
            sharding += y.parts() > 1;
          }
          ++checked;
        }
      }
    }
  }
  CHECK(checked > test_effort::cases(400));
  CHECK(sharding > checked / 2);
}

TEST_CASE("numbers in degrees are forms of their primes") {
  degree_form const twelve = *number_form(12), two = *number_form(2), six = *number_form(6);
  CHECK(twelve == two + six);
  CHECK(twelve - six == two);
  CHECK((two - two).zero());
  CHECK(number_form(1)->zero());
  CHECK(twelve.of_number(2) == 2);
  CHECK(twelve.of_number(3) == 1);
  CHECK(twelve.of_number(5) == 0);
  CHECK(twelve.of_number(degree_form::any_other_prime) == 0);
  CHECK(!(twelve == two));
  for (i64 n : {i64{0}, i64{-2}, (i64{1} << 20) + 1}) CHECK(!number_form(n));
  for (i64 n = 1; n < 200; ++n)
    for (i64 m = 1; m < 20; ++m) CHECK(*number_form(n * m) == *number_form(n) + *number_form(m));

  auto const cases = cases_of(rewrite::parse_rule("partition{d,10}(replicate{3*k}(x)) => replicate{k}(partition{d,10}(x))"));
  REQUIRE(!cases.empty());
  for (rule_case const& c : cases) CHECK(c.shardings.primes() == std::set<i64>{2, 3, 5});
  CHECK(cases_of(rewrite::parse_rule("reduce{3}(reduce{k}(x)) => reduce{1048577}(x)")).empty());      // more than can be
}

TEST_CASE("a solution for a prime of a number is one in numbers: degrees that are drawn fit both sides") {
  std::mt19937 draw(3);
  int drawn = 0;
  for (char const* text : {"combine{d,12*k}(x) => combine{d,4*k}(combine{d,3}(x))", "reduce{2*k}(reduce{9}(x)) => reduce{18*k}(x)",
                           "partition{d,6}(combine{d,15*k}(x)) => partition{d,2}(combine{d,5*k}(x))",
                           "linear(combine{-1,7}(x), combine{1,7*k}(w)) => linear(x, w)", "combine{d,11}(partition{d,11}(x)) => x"}) {
    rewrite::rule const r = rewrite::parse_rule(text);
    CAPTURE(std::string(text));
    for (rule_case const& c : cases_of(r))
      for (int turn = 0; turn < 10; ++turn) {
        auto const degrees = prover::detail::random_degrees(c.shardings, draw);
        if (!degrees) continue;
        ++drawn;
        for (degree_requirement const& q : c.shardings.requirements) {
          i64 up = 1, down = 1;
          for (auto const& [prime, n] : q.form.number)
            for (int k = 0; k < std::abs(n); ++k) (n > 0 ? up : down) *= prime;
          for (std::size_t u = 0; u < degrees->of.size(); ++u)
            for (int k = 0; k < std::abs(q.form.at(u)); ++k) (q.form.at(u) > 0 ? up : down) *= degrees->of[u];
          CHECK((q.equal ? up == down : up % down == 0));
        }
      }
  }
  CHECK(drawn > 50);
}
