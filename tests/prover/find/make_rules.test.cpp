// tests/prover/find/make_rules.test.cpp - from a family to proved rules
#include <tensorpar/prover/find/make_rules.hpp>
#include <doctest/doctest.h>

using namespace tensorpar;
using namespace tensorpar::prover;

namespace {
std::vector<family> two_families() {
  return {make_family("functions", "x:ab y:ab", "d=0,1 k ?f", "?f(_); add(_,_); partition{d,k}(_); combine{d,k}(_)", 2),
          make_family("linear", "x:ai v:oi w:oi", "k ?f",
              "linear(_,_); add(_,_); partition{-1,k}(_); combine{-1,k}(_); reduce{k}(_); ?f(_)", 3)};
}
std::string all_of(rule_making const& m) {
  std::string s;
  for (made_rule const& r : m.rules) s += spell(r.what) + (r.implied ? " implied" : "") + " " + std::to_string(r.proved.cases) + "\n";
  return s;
}
}  // namespace

TEST_CASE("counts add up, kinds are right, what is shipped is not implied") {
  rule_making const m = make_rules(two_families());
  CHECK(m.verified + m.sharding_rules == static_cast<i64>(m.rules.size()));
  CHECK(m.candidates == m.verified + static_cast<i64>(m.unproved.size()));
  i64 shipped = 0, hybrid = 0;
  for (made_rule const& r : m.rules) {
    CHECK(r.proved.status == proof_status::proved);
    shipped += !r.implied;
    hybrid += r.kind == rewrite::rule_kind::hybrid;
  }
  CHECK(shipped == m.shipped);
  CHECK(hybrid == m.hybrid);
  auto find = [&](std::string_view text) -> made_rule const* {
    for (made_rule const& r : m.rules)
      if (spell(r.what).find(text) != std::string::npos) return &r;
    return nullptr;
  };
  made_rule const* const shardings = find("combine{dim=d,degree=k}(partition{dim=d,degree=k}(x)) => x");
  made_rule const* const algebra = find("add(linear(x, y), linear(x, z)) => linear(x, add(y, z))");
  REQUIRE(shardings);
  REQUIRE(algebra);
  CHECK(shardings->kind == rewrite::rule_kind::parallel);
  CHECK(algebra->kind == rewrite::rule_kind::algebra);
  CHECK(!shardings->implied);
  CHECK(!algebra->implied);
  CHECK(find("linear(x, y) => reduce{degree=k}(linear(partition{dim=-1,degree=k}(x), partition{dim=-1,degree=k}(y)))"));
  // Unity's figure 2: a product over a split sum
  CHECK(find("reduce{degree=k}(linear(x, y))"));
}

TEST_CASE("the same for any number of threads") {
  making_options one, three;
  one.threads = 1;
  three.threads = 3;
  CHECK(all_of(make_rules(two_families(), one)) == all_of(make_rules(two_families(), three)));
}

TEST_CASE("what cannot be proved is listed with its reason, what is false is not shipped") {
  proof_options without;
  without.without.assign(std::size(axioms), false);
  for (std::size_t i = 0; i < std::size(axioms); ++i) without.without[i] = axioms[i].name == "linear of added weights";
  making_options o;
  o.proofs = without;
  rule_making const m = make_rules(two_families(), o);
  bool listed = false;
  for (made_rule const& r : m.unproved) {
    listed = listed || spell(r.what).find("add(linear(x, y), linear(x, z)) => linear(x, add(y, z))") != std::string::npos;
    CHECK(!r.proved.open.empty());
  }
  CHECK(listed);
}
