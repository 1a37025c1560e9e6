// tests/prover/find/sharding_rules.test.cpp - rules that bring parallel operators in
#include <tensorpar/prover/find/sharding_rules.hpp>
#include <doctest/doctest.h>

#include <tensorpar/prover/try_rule.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

namespace {
std::vector<std::string> forms(std::string_view text) {
  std::vector<std::string> all;
  for (rewrite::rule const& r : sharding_rules_forms(rewrite::parse_rule(text))) {
    CHECK(problems(r).empty());
    CHECK(try_rule(r, 50, 1).counterexample.empty());
    all.push_back(spell(r));
  }
  return all;
}
using texts = std::vector<std::string>;
}  // namespace

TEST_CASE("a combine undoes a partition, on either side") {
  CHECK(forms("a: linear(partition{d,k}(x), replicate{k}(w)) => partition{d,k}(linear(x, w))") ==
        texts{"a, spread: linear(x, w) => combine{dim=d,degree=k}(linear(partition{dim=d,degree=k}(x), replicate{degree=k}(w)))"});
  CHECK(forms("b: partition{d,k}(?f(x)) => ?f(partition{d,k}(x))") ==
        texts{"b, spread: ?f(x) => combine{dim=d,degree=k}(?f(partition{dim=d,degree=k}(x)))"});
}

TEST_CASE("partitions take the places of what was combined") {
  CHECK(forms("c: linear(combine{-1,k}(x), combine{-1,k}(w)) => reduce{k}(linear(x, w))") ==
        texts{"c, spread: linear(x, w) => reduce{degree=k}(linear(partition{dim=-1,degree=k}(x), partition{dim=-1,degree=k}(w)))"});
  CHECK(forms("d: combine{d,k}(?f(x)) => ?f(combine{d,k}(x))") ==
        texts{"d, spread: ?f(x) => combine{dim=d,degree=k}(?f(partition{dim=d,degree=k}(x)))"});
  CHECK(forms("e: add(combine{d,k}(x), combine{d,k}(y)) => combine{d,k}(add(x, y))") ==
        texts{"e, spread: add(x, y) => combine{dim=d,degree=k}(add(partition{dim=d,degree=k}(x), partition{dim=d,degree=k}(y)))"});
}

TEST_CASE("nothing comes of rules without partitions, or whose source would still be sharded") {
  CHECK(forms("add(x, y) => add(y, x)").empty());
  CHECK(forms("combine{d,k}(partition{d,k}(x)) => x").empty());
  CHECK(forms("replicate{k}(partition{d,k}(x)) => partition{d,k}(replicate{k}(x))").empty());
  CHECK(forms("linear(replicate{k}(x), replicate{k}(w)) => replicate{k}(linear(x, w))").empty());
}
