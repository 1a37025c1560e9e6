// tests/prover/derive.test.cpp - chains of rules between two graphs are found, and only where there are some
#include <tensorpar/prover/derive.hpp>
#include <doctest/doctest.h>

#include <set>
#include <tensorpar/rewrite/rules/standard_rules.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

namespace {
std::vector<rewrite::rule> both_ways(std::initializer_list<char const*> texts) {
  std::vector<rewrite::rule> all;
  for (char const* t : texts) {
    all.push_back(rewrite::parse_rule(t));
    if (auto back = rewrite::reversed(all.back())) all.push_back(std::move(*back));
  }
  return all;
}
}  // namespace

TEST_CASE("what follows is found with its chain, what does not is not") {
  auto const known = both_ways({"a: add(add(x, y), z) => add(x, add(y, z))", "f: ?f(partition{d,k}(x)) => partition{d,k}(?f(x))",
                            "u: combine{d,k}(partition{d,k}(x)) => x"});
  auto follows = [&](char const* text) { return derive(rewrite::parse_rule(text), known); };
  CHECK(follows("relu(partition{d,k}(x)) => partition{d,k}(relu(x))").steps == std::vector<std::string>{"f"});
  CHECK(follows("combine{d,k}(relu(partition{d,k}(x))) => relu(x)").found);
  CHECK(follows("add(x, add(y, add(z, w))) => add(add(w, y), add(x, z))").found);       // sums in either order by themselves
  CHECK(follows("relu(gelu(partition{d,k}(x))) => partition{d,k}(relu(gelu(x)))").steps.size() == 2);
  CHECK(!follows("add(x, y) => add(x, x)").found);
  CHECK(!follows("relu(x) => gelu(x)").found);
  CHECK(!follows("partition{d,k}(combine{d,k}(x)) => x").found);                         // true, but of another rule
  CHECK(!follows("concat{0}(x, y) => concat{0}(y, x)").found);
}

TEST_CASE("results with several uses are taken apart, outputs are looked at one by one") {
  auto const known = both_ways({"m: mul(x, add(y, z)) => add(mul(x, y), mul(x, z))"});
  CHECK(derive(rewrite::parse_rule("t = mul(x, y); add(t, mul(x, t)) => mul(x, add(y, mul(x, y)))"), known).found);
  CHECK(derive(rewrite::parse_rule("mul(x, add(y, z)), mul(y, add(x, z)) => add(mul(x, y), mul(x, z)), add(mul(y, x), mul(y, z))"),
               known).found);
  CHECK(!derive(rewrite::parse_rule("mul(x, add(y, z)), mul(y, add(x, z)) => add(mul(x, y), mul(x, z)), add(mul(x, z), mul(y, z))"),
                known).found);
}

TEST_CASE("every shipped rule follows from all, none of the basic ones from the others") {
  auto const& all = rewrite::rules_both_ways();
  int n = 0;
  for (rewrite::rule const& r : rewrite::standard_rules()) {
    if (n++ % 7) continue;
    CAPTURE(rewrite::spell(r));
    CHECK(derive(r, all).found);
  }
  // a rule about an operator that no other one mentions beside it
  for (char const* basic : {"embedding_bag(x, y) => sum{axis=-2}(embedding(x, y))"}) {
    rewrite::rule const r = rewrite::parse_rule(basic);
    std::vector<rewrite::rule> others;
    for (rewrite::rule const& s : all) {
      rewrite::rule nameless = s;
      nameless.name.clear();
      auto const text = rewrite::spell(nameless), back = rewrite::reversed(nameless) ? rewrite::spell(*rewrite::reversed(nameless))
          : std::string();
      if (text != basic && back != basic) others.push_back(s);
    }
    CHECK(others.size() + 2 == all.size());
    derivation_limits few;
    few.states = 300;
    CHECK(!derive(r, others, few).found);
    CHECK(derive(r, all, few).found);
  }
}

TEST_CASE("limits are kept") {
  derivation_limits none;
  none.states = 2;
  derivation const d = derive(rewrite::parse_rule("add(x, add(y, z)) => add(add(x, y), z)"), rewrite::rules_both_ways(), none);
  CHECK(d.states <= 2);
  CHECK(!d.found);
}

TEST_CASE("results of one node are not mixed up on the way") {
  auto const known = both_ways({"a: ?f(gelu(x)) => gelu(?f(x))"});
  CHECK(derive(rewrite::parse_rule("relu(gelu(split{parts=2,axis=0}(x).1)) => gelu(relu(split{parts=2,axis=0}(x).1))"), known).found);
  CHECK(!derive(rewrite::parse_rule("relu(gelu(split{parts=2,axis=0}(x).1)) => gelu(relu(split{parts=2,axis=0}(x)))"), known).found);
}
