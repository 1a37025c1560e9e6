// tests/prover/find/term_closure.test.cpp - what follows from rules by instances and congruence, and what does not
#include <tensorpar/prover/find/term_closure.hpp>
#include <doctest/doctest.h>

#include <tensorpar/prover/find/candidates.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

namespace {
struct subject {
  family f;
  enumeration e;
  int find(std::string_view text) const {
    for (int t = 0; t < static_cast<int>(e.terms.size()); ++t)
      if (e.terms[static_cast<std::size_t>(t)].step >= 0) {
        rewrite::rule const r = candidate(f, e, t, t);
        if (spell(r, r.source) == text) return t;
      }
    FAIL("there is no such term");
    return -1;
  }
};
subject make(char const* steps, int most = 3) {
  family f = make_family("f", "x:ab y:ab", "d=0,1 e=1,0 k m ?f", steps, most);
  enumeration e = enumerate(f, 1);
  return {std::move(f), std::move(e)};
}
}  // namespace

TEST_CASE("instances, under operators as well, and congruence") {
  subject const s = make("?f(_); partition{d,k}(_); add(_,_)");
  term_closure c(s.f, s.e);
  int const a = s.find("?f(partition{dim=d,degree=k}(x))"), b = s.find("partition{dim=d,degree=k}(?f(x))");
  CHECK(!c.equal(a, b));
  int const classes = c.classes();
  c.apply(rewrite::parse_rule("?f(partition{h,n}(z)) => partition{h,n}(?f(z))"));
  CHECK(c.equal(a, b));
  // the same under add, of other tensors, and twice
  CHECK(c.equal(s.find("?f(partition{dim=d,degree=k}(add(x, y)))"), s.find("partition{dim=d,degree=k}(?f(add(x, y)))")));
  CHECK(c.classes() < classes);
  c.settle();
  CHECK(!c.equal(a, s.find("?f(x)")));
}

TEST_CASE("degrees may be products, conditions are not granted for numbers") {
  subject const s = make("?f(_); partition{d,k}(_); partition{d,k*m}(_); partition{0,k}(_)", 2);
  term_closure c(s.f, s.e);
  c.apply(rewrite::parse_rule("?f(partition{d,k}(x)) => partition{d,k}(?f(x)) where d inside x"));
  CHECK(c.equal(s.find("?f(partition{dim=d,degree=k*m}(x))"), s.find("partition{dim=d,degree=k*m}(?f(x))")));
  CHECK(!c.equal(s.find("?f(partition{dim=0,degree=k}(x))"), s.find("partition{dim=0,degree=k}(?f(x))")));
  c.apply(rewrite::parse_rule("?f(partition{d,k}(x)) => partition{d,k}(?f(x))"));
  CHECK(c.equal(s.find("?f(partition{dim=0,degree=k}(x))"), s.find("partition{dim=0,degree=k}(?f(x))")));
}

TEST_CASE("extents bind the tensors that they are of, and numbers may be extents") {
  family f = make_family("f", "x:AB y:(AC)B", "?f", "?f(_); slice{0,0,extent(x,0)}(_); slice{0,0,extent(y,0)}(_); concat{0}(_,_)", 2);
  enumeration e = enumerate(f, 1);
  subject const s{std::move(f), std::move(e)};
  term_closure c(s.f, s.e);
  int const first = s.find("slice{axis=0,begin=0,length=extent(x,0)}(concat{axis=0}(x, y))");
  c.apply(rewrite::parse_rule("slice{0,0,extent(b,0)}(concat{0}(a, b)) => slice{0,0,extent(b,0)}(a)"));
  CHECK(!c.equal(first, 0));
  c.apply(rewrite::parse_rule("slice{0,0,extent(a,0)}(concat{0}(a, b)) => a"));
  CHECK(c.equal(first, 0));
  int const outside = s.find("?f(slice{axis=0,begin=0,length=extent(y,0)}(x))"),
            inside = s.find("slice{axis=0,begin=0,length=extent(y,0)}(?f(x))");
  CHECK(!c.equal(outside, inside));
  c.apply(rewrite::parse_rule("?f(slice{0,0,length}(a)) => slice{0,0,length}(?f(a))"));
  CHECK(c.equal(outside, inside));
}

TEST_CASE("results of one node are told apart") {
  family f = make_family("f", "x:(AA)", "?f", "?f(_); split{2,0}(_); split{2,0}(_).1", 2);
  enumeration e = enumerate(f, 1);
  subject const s{std::move(f), std::move(e)};
  term_closure c(s.f, s.e);
  c.apply(rewrite::parse_rule("?f(split{parts=2,axis=d}(y).1) => split{parts=2,axis=d}(?f(y)).1"));
  CHECK(c.equal(s.find("?f(split{parts=2,axis=0}(x).1)"), s.find("split{parts=2,axis=0}(?f(x)).1")));
  CHECK(!c.equal(s.find("?f(split{parts=2,axis=0}(x))"), s.find("split{parts=2,axis=0}(?f(x))")));
}

TEST_CASE("a term is not made larger to be made smaller again") {
  // f(x) = f(P(C(x))) would give C(f(x)) = f(C(x)) from two rules that a search cannot use so
  subject const s = make("?f(_); partition{d,k}(_); combine{d,k}(_)");
  term_closure c(s.f, s.e);
  c.apply(rewrite::parse_rule("partition{d,k}(combine{d,k}(x)) => x"));
  c.apply(rewrite::parse_rule("combine{d,k}(partition{d,k}(x)) => x"));
  c.apply(rewrite::parse_rule("?f(partition{d,k}(x)) => partition{d,k}(?f(x))"));
  c.settle();
  CHECK(!c.equal(s.find("?f(combine{dim=d,degree=k}(x))"), s.find("combine{dim=d,degree=k}(?f(x))")));
  CHECK(c.equal(s.find("?f(partition{dim=d,degree=k}(x))"), s.find("partition{dim=d,degree=k}(?f(x))")));
}

TEST_CASE("what stays apart is apart: classes hold equal terms only") {
  subject const s = make("?f(_); partition{d,k}(_); combine{d,k}(_); add(_,_)", 2);
  term_closure c(s.f, s.e);
  for (candidate_rule const& r : candidates(s.f, s.e)) c.apply(r.what);
  c.settle();
  // the enumeration's own pairs say what is equal: every class of the closure lies within one of theirs
  std::vector<int> left(s.e.terms.size());
  for (std::size_t t = 0; t < left.size(); ++t) left[t] = static_cast<int>(t);
  for (term_pair const& p : s.e.pairs) left[static_cast<std::size_t>(p.right)] = left[static_cast<std::size_t>(p.left)];
  for (int a = 0; a < static_cast<int>(left.size()); ++a)
    for (int b = 0; b < a; ++b)
      if (c.equal(a, b)) CHECK(left[static_cast<std::size_t>(a)] == left[static_cast<std::size_t>(b)]);
  for (term_pair const& p : s.e.pairs) CHECK(c.equal(p.left, p.right));
}
