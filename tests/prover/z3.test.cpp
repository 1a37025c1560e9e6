// tests/prover/z3.test.cpp - true rules are proved, false ones are not, and proofs say what they used
#include <tensorpar/prover/z3.hpp>
#include <doctest/doctest.h>

#include <tensorpar/prover/proof.hpp>
#include <tensorpar/rewrite/rules/standard_rules.hpp>

#include "rules_that_hold.hpp"

using namespace tensorpar;
using namespace tensorpar::prover;

TEST_CASE("rules that hold are proved in all of their cases") {
  z3_prover p;
  for (char const* text : tests::rules_that_hold) {
    rewrite::rule const r = rewrite::parse_rule(text);
    CAPTURE(std::string(text));
    proof const q = p.prove(r);
    CAPTURE(q.open);
    CHECK(q.status == proof_status::proved);
    CHECK(q.cases == static_cast<int>(cases_of(r).size()));
    CHECK(!q.used.empty());
  }
}

TEST_CASE("rules that do not hold are not") {
  z3_prover p;
  for (tests::false_rule const& f : tests::rules_that_do_not_hold) {
    CAPTURE(std::string(f.text));
    proof const q = p.prove(rewrite::parse_rule(f.text));
    CHECK(q.status == (std::string_view(f.why).starts_with("no ranks") ? proof_status::impossible : proof_status::unproved));
    if (q.status == proof_status::unproved) CHECK(!q.open.empty());
  }
  // true for values, wrong about where they lie; and the other way round
  CHECK(p.prove(rewrite::parse_rule("replicate{k}(reduce{k}(x)) => x")).open.ends_with(": shardings"));
  CHECK(p.prove(rewrite::parse_rule("?f(add(x, y)) => add(?f(x), ?f(y))")).open.ends_with(": values"));
  CHECK(p.prove(rewrite::parse_rule("?f(partition{d,k}(add(x, y))) => partition{0,k}(add(?f(x), ?f(y)))")).open.ends_with(": values"));
}

TEST_CASE("a proof does not pass through what is undefined") {
  z3_prover p;
  // joining grouped convolutions, and joining matrix products along the batch, are right for equal groups and equal inner extents only
  CHECK(p.prove(rewrite::parse_rule("add(concat{d}(x, y), concat{d}(z, w)) => add(concat{d}(z, y), concat{d}(x, w))")).status !=
        proof_status::proved);
  CHECK(p.prove(rewrite::parse_rule("concat{-3}(conv2d{groups=1}(x, v), conv2d{groups=1}(y, w)) => "
                           "conv2d{groups=2}(concat{-3}(x, y), concat{-4}(v, w))")).status != proof_status::proved);
}

TEST_CASE("without an axiom that it needs a rule is unproved, with it the axiom is named") {
  rewrite::rule const r = rewrite::parse_rule("add(linear(x, v), linear(x, w)) => linear(x, add(v, w))");
  z3_prover all;
  proof const q = all.prove(r);
  REQUIRE(q.used.size() == 1);
  int const needed = *q.used.begin();
  CHECK(axioms[needed].name == "linear of added weights");
  proof_options o;
  o.without.assign(std::size(axioms), false);
  o.without[static_cast<std::size_t>(needed)] = true;
  z3_prover fewer(rewrite::standard_vocabulary(), o);
  CHECK(fewer.prove(r).status == proof_status::unproved);
}

TEST_CASE("results of one operator, and axioms that wait for their trigger") {
  z3_prover p;
  auto proved = [&](char const* text) { return p.prove(rewrite::parse_rule(text)).status == proof_status::proved; };
  CHECK(proved("t = split{parts=2,axis=d}(x); ?f(concat{d}(t, t.1)) => ?f(x)"));
  CHECK(!proved("t = split{parts=2,axis=d}(x); ?f(concat{d}(t.1, t)) => ?f(x)"));
  CHECK(proved("t = split{parts=2,axis=d}(add(x, y)); ?f(t.1) => split{parts=2,axis=d}(?f(add(x, y))).1"));
  CHECK(!proved("split{parts=2,axis=d}(x).1 => split{parts=2,axis=d}(x)"));
  CHECK(proved("linear(concat{-1}(x, y), w) => add(linear(x, slice{-1,0,extent(x,-1)}(w)), "
               "linear(y, slice{-1,extent(x,-1),extent(y,-1)}(w)))"));
  CHECK(!proved("linear(concat{-1}(x, y), w) => add(linear(y, slice{-1,0,extent(y,-1)}(w)), "
                "linear(x, slice{-1,extent(y,-1),extent(x,-1)}(w)))"));
}

TEST_CASE("without it a proof of a shipped rule fails: so it is for nine axioms in ten") {
  auto const shipped = rewrite::shipped_rules();
  auto const& rules = rewrite::standard_rules();
  std::string idle;
  int needed = 0;
  for (std::size_t a = 0; a < std::size(axioms); ++a) {
    proof_options o;
    o.without.assign(std::size(axioms), false);
    o.without[a] = true;
    z3_prover p(rewrite::standard_vocabulary(), o);
    bool fails = false;
    int tried = 0;
    for (std::size_t i = 0; i < rules.size() && !fails && tried < 12; ++i) {
      if (("; " + std::string(shipped[i].axioms) + ";").find("; " + std::string(axioms[a].name) + ";") == std::string::npos) continue;
      ++tried;
      fails = p.prove(rules[i]).status != proof_status::proved;
    }
    needed += fails;
    if (!fails) idle += (idle.empty() ? "" : ", ") + std::string(axioms[a].name);
  }
  MESSAGE(needed << " of " << std::size(axioms) << " are needed; not: " << idle);
  CHECK(needed * 10 >= static_cast<int>(std::size(axioms)) * 9);
}

TEST_CASE("conditions on axes are found by proving") {
  z3_prover p;
  rewrite::rule r = rewrite::parse_rule("partition{d,k}(transpose{-2,-1}(x)) => transpose{-2,-1}(partition{d,k}(x))");
  std::string const before = rewrite::spell(r);
  CHECK(p.prove(r).status == proof_status::unproved);
  CHECK(p.prove_restricted(r).status == proof_status::proved);
  CHECK(rewrite::spell(r) == before + " where d inside x by 2");
  rewrite::rule wrong = rewrite::parse_rule("concat{d}(x, y) => concat{d}(y, x)");
  CHECK(p.prove_restricted(wrong).status == proof_status::unproved);
}

TEST_CASE("two provers agree, whatever they proved before") {
  z3_prover a, b;
  for (char const* text : tests::rules_that_hold) a.prove(rewrite::parse_rule(text));
  rewrite::rule const r = rewrite::parse_rule("mul(x, scale{s}(scale{t}(y))) => scale{s*t}(mul(y, x))");
  proof const p = a.prove(r), q = b.prove(r);
  CHECK(p.status == proof_status::proved);
  CHECK(p.used == q.used);
  CHECK(p.cases == q.cases);
}
