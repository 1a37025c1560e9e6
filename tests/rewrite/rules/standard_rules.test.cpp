// tests/rewrite/rules/standard_rules.test.cpp - the rules that are shipped hold on every device; TENSORPAR_TEST_EFFORT=10 tries each 1,000
// times
#include <tensorpar/rewrite/rules/standard_rules.hpp>
#include <doctest/doctest.h>

#include <set>
#include <support/effort.hpp>
#include <tensorpar/prover/axioms.hpp>
#include <tensorpar/prover/try_rule.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

TEST_CASE("every shipped rule means something, once") {
  std::set<std::string_view> names, texts;
  std::set<std::string_view> known;
  for (axiom const& a : axioms) known.insert(a.name);
  int kinds[3] = {};
  for (rewrite::shipped_rule const& s : rewrite::shipped_rules()) {
    CAPTURE(std::string(s.name));
    CHECK(names.insert(s.name).second);
    CHECK(texts.insert(s.text).second);
    CHECK(s.cases > 0);
    ++kinds[static_cast<int>(s.kind)];
    rewrite::rule const r = tensorpar::rewrite::parse_rule(s.text);
    CHECK(problems(r).empty());
    CHECK(spell(r) == s.text);
    CHECK(!s.axioms.empty());
    for (std::string_view rest = s.axioms; !rest.empty();) {
      auto const end = rest.find("; ");
      CHECK(known.count(rest.substr(0, end)));
      rest = end == rest.npos ? "" : rest.substr(end + 2);
    }
  }
  CHECK(rewrite::standard_rules().size() == names.size());
  for (int k : kinds) CHECK(k > 5);
}

TEST_CASE("a rule is reversed where its target binds all") {
  rewrite::rule const r = rewrite::parse_rule("n: reduce{k}(linear(x, y)) => linear(combine{-1,k}(x), combine{-1,k}(y))");
  auto const back = reversed(r);
  REQUIRE(back);
  CHECK(spell(*back) == "n, reversed: linear(combine{dim=-1,degree=k}(x), combine{dim=-1,degree=k}(y)) => reduce{degree=k}(linear(x, y))");
  CHECK(!reversed(rewrite::parse_rule("combine{d,k}(partition{d,k}(x)) => x")));
  int both = 0;
  for (rewrite::rule const& s : rewrite::standard_rules()) both += reversed(s).has_value();
  CHECK(both > static_cast<int>(rewrite::standard_rules().size()) * 2 / 3);
}

TEST_CASE("every shipped rule holds on random instances") {
  int refused = 0, instances = 0;
  for (rewrite::rule const& r : rewrite::standard_rules()) {
    CAPTURE(spell(r));
    trial const t = try_rule(r, test_effort::cases(100), tensorpar::core::name_hash(r.name));
    CHECK(t.counterexample.empty());
    CHECK(t.unknown.empty());
    CHECK(t.instances == test_effort::cases(100));
    refused += t.refused;
    instances += t.instances;
  }
  MESSAGE(rewrite::standard_rules().size() << " rules, " << instances << " instances, " << refused
          << " on which only the source was valid");
}
