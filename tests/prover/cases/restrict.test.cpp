// tests/prover/cases/restrict.test.cpp - the conditions on axes that a rule needs are found
#include <tensorpar/prover/cases/restrict.hpp>
#include <doctest/doctest.h>

#include <tensorpar/rewrite/rule_parser.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

TEST_CASE("no condition where all cases are good, the weakest that will do, or none at all") {
  rewrite::rule const r =
      tensorpar::rewrite::parse_rule("relu(partition{d,k}(x)) => partition{d,k}(relu(x))");   // d is its first parameter
  CHECK(restricted(r, [](rule_case const&) { return true; })->conditions.empty());
  auto const last = restricted(r, [](rule_case const& c) { return c.at.parameter[0] != c.at.rank[0] - 1; });
  REQUIRE(last);
  CHECK(spell(*last) == spell(r) + " where d inside x");
  auto const two = restricted(r, [](rule_case const& c) { return c.at.parameter[0] < c.at.rank[0] - 2; });
  REQUIRE(two);
  CHECK(spell(*two) == spell(r) + " where d inside x by 2");
  CHECK(!restricted(r, [](rule_case const&) { return false; }));
  CHECK(!restricted(r, [](rule_case const& c) { return c.at.parameter[0] == 0; }));
  rewrite::rule const s = tensorpar::rewrite::parse_rule("partition{d,k}(partition{e,m}(x)) => partition{e,m}(partition{d,k}(x))");
  auto const apart = restricted(s, [](rule_case const& c) {
    return c.at.parameter[0] != c.at.parameter[2] && c.at.parameter[0] != c.at.rank[0] - 1;
  });
  REQUIRE(apart);
  CHECK(apart->conditions.size() == 2);
  CHECK(spell(*apart).find("where d inside x, d != e") != std::string::npos);
}
