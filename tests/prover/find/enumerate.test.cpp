// tests/prover/find/enumerate.test.cpp - all terms, by brute force as well; equal ones are paired, different ones are not
#include <tensorpar/prover/find/enumerate.hpp>
#include <doctest/doctest.h>

#include <set>
#include <tensorpar/prover/find/candidates.hpp>
#include <tensorpar/prover/try_rule.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

namespace {
family small() {
  return make_family("small", "x:ab y:ab", "d=0,1 k ?f", "?f(_); add(_,_); partition{d,k}(_); combine{d,k}(_)", 2);
}
}  // namespace

TEST_CASE("every pair holds on random instances, no two terms that were kept apart are equal") {
  family const f = small();
  enumeration const e = enumerate(f, 1);
  for (term_pair const& p : e.pairs) {
    rewrite::rule const r = candidate(f, e, p.right, p.left);
    CAPTURE(spell(r));
    REQUIRE(problems(r).empty());
    CHECK(try_rule(r, 40, 1).counterexample.empty());
  }
  std::vector<bool> paired(e.terms.size(), false);
  for (term_pair const& p : e.pairs) paired[static_cast<std::size_t>(p.right)] = true;
  int apart = 0;
  for (std::size_t i = 0; i < e.terms.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      if (paired[i] || paired[j] || e.terms[i].step < 0 || (i + j) % 3) continue;   // a third of them
      rewrite::rule const r = candidate(f, e, static_cast<int>(i), static_cast<int>(j));
      if (!problems(r).empty()) continue;
      CAPTURE(spell(r));
      trial const t = try_rule(r, 60, 1, rewrite::standard_vocabulary(), {}, 2000);
      CHECK((!t.counterexample.empty() || t.instances == 0));
      ++apart;
    }
  CHECK(apart > 100);
}

TEST_CASE("as many terms as there are, by hand") {
  // x; f(x), P(x); f(f(x)), f(P(x)) = P(f(x)), P(P(x))
  enumeration const e = enumerate(make_family("unary", "x:a", "d=0,0 k ?f", "?f(_); partition{d,k}(_)", 2), 1);
  CHECK(e.terms.size() == 1 + 2 + 4);
  CHECK(e.pairs.size() == 1);
  // x + y in both orders is one term; x + (x + y) and y + (x + x) are not equal, shared terms are counted once
  enumeration const a = enumerate(make_family("sums", "x:a y:a", "", "add(_,_)", 2), 1);
  CHECK(a.terms.size() == 2 + 3 + 9);
  CHECK(a.pairs.size() == 2);   // x + (x + y) = y + (x + x), x + (y + y) = y + (x + y)
  CHECK(a.tried == 3 + 9);
}

TEST_CASE("what is equal in shape and value but lies otherwise is not paired") {
  enumeration const e = enumerate(make_family("shardings", "x:ab", "k m", "replicate{k}(_); replicate{m}(_); partition{0,k}(_)", 2), 1);
  for (term_pair const& p : e.pairs) CHECK(e.terms[static_cast<std::size_t>(p.left)].operators == 2);
  CHECK(e.pairs.size() == 3);   // R_k R_m, R_k P, R_m P commute
}

TEST_CASE("extents of the family's tensors, joined axes, operators that occur once, pairs with a small side") {
  char const* steps = "concat{0}(_,_); slice{0,0,extent(x,0)}(_)";
  auto pairs = [&](family const& g) {
    std::set<std::string> all;
    for (candidate_rule const& c : candidates(g, enumerate(g, 1))) all.insert(spell(c.what));
    return all;
  };
  auto const all = pairs(make_family("windows", "x:A y:(BB) z:(ABB)", "", steps, 2));
  CHECK(all.count("slice{axis=0,begin=0,length=extent(x,0)}(x) => x"));
  CHECK(all.count("slice{axis=0,begin=0,length=extent(x,0)}(concat{axis=0}(x, y)) => x"));
  CHECK(!all.count("slice{axis=0,begin=0,length=extent(x,0)}(y) => x"));
  // z is as long as x and y together: they add up
  family const sums = make_family("sums", "x:A y:(BB) z:(ABB)", "", "concat{0}(_,_); add(_,_)", 2);
  int valid = 0;
  for (family_term const& t : enumerate(sums, 1).terms)
    valid += t.operators == 2 && sums.steps[static_cast<std::size_t>(t.step)].commutative;
  CHECK(valid > 0);
  // each once: functions of functions are not there
  CHECK(enumerate(make_family("once", "x:a", "?f ?g", "!?f(_); ?g(_)", 2), 1).terms.size() == 1 + 2 + 3);
  auto few = [](int least) {
    char const* shardings = "partition{d,k}(_); partition{d,m}(_); replicate{k}(_)";
    return enumerate(make_family("small", "x:a", "d=0,0 k m", shardings, 2, least), 1).pairs.size();
  };
  CHECK(few(1) == 0);
  CHECK(few(2) > 0);
}

TEST_CASE("results of one node are terms of their own, and one node in a rule") {
  family const f = make_family("halves", "x:(AA)b", "?f", "split{2,0}(_); split{2,0}(_).1; concat{0}(_,_); ?f(_)", 3);
  std::set<std::string> all;
  for (candidate_rule const& c : candidates(f, enumerate(f, 1))) {
    all.insert(spell(c.what));
    CHECK(try_rule(c.what, 20, 1).counterexample.empty());
  }
  CHECK(all.count("t0 = split{parts=2,axis=0}(x); concat{axis=0}(t0, t0.1) => x"));
  CHECK(all.count("?f(split{parts=2,axis=0}(x).1) => split{parts=2,axis=0}(?f(x)).1"));
  CHECK(!all.count("t0 = split{parts=2,axis=0}(x); concat{axis=0}(t0.1, t0) => x"));
}

TEST_CASE("the same in every run; a seed changes nothing but the numbers drawn") {
  enumeration const a = enumerate(small(), 1), b = enumerate(small(), 1), c = enumerate(small(), 2);
  CHECK(a.pairs.size() == b.pairs.size());
  REQUIRE(a.pairs.size() == c.pairs.size());
  for (std::size_t i = 0; i < a.pairs.size(); ++i) {
    CHECK(a.pairs[i].left == b.pairs[i].left);
    CHECK(a.pairs[i].right == c.pairs[i].right);
  }
}

TEST_CASE("an operator that nobody can compute is named") {
  CHECK_THROWS_WITH_AS(enumerate(make_family("f", "x:ab", "", "dropout{0.5,1}(_)", 1), 1), doctest::Contains("dropout"), error);
}
