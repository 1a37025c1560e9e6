// tests/prover/rule_json.test.cpp - rules survive JSON; what is not a rule's JSON is refused
#include <tensorpar/prover/rule_json.hpp>
#include <doctest/doctest.h>

#include <support/effort.hpp>

#include "random_rule.hpp"

using namespace tests;
using namespace tensorpar::prover;

TEST_CASE("any rule can be written as JSON and read back") {
  std::mt19937 draw(1);
  for (int turn = 0; turn < test_effort::cases(300); ++turn) {
    tensorpar::rewrite::rule const r = good_random_rule(draw);
    tensorpar::core::json const j = to_json(r);
    CAPTURE(j.dump());
    tensorpar::rewrite::rule const again = rule_from_json(tensorpar::core::parse_json(j.dump(), "text"));
    REQUIRE(to_json(again).dump() == j.dump());
    CHECK(tensorpar::rewrite::spell(again) == tensorpar::rewrite::spell(r));
  }
}

TEST_CASE("what it looks like") {
  CHECK(to_json(tensorpar::rewrite::parse_rule("n: ?f(partition{d,2}(x)) => partition{d,2}(?f(x)) where d inside x")).dump() ==
        R"({"name":"n","source":{"nodes":[{"op":"partition","attributes":{"dim":"d","degree":"2"},"in":["x"]},)"
        R"({"op":"?f","attributes":{},"in":["#0"]}],"outputs":["#1"]},)"
        R"("target":{"nodes":[{"op":"?f","attributes":{},"in":["x"]},)"
        R"({"op":"partition","attributes":{"dim":"d","degree":"2"},"in":["#0"]}],)"
        R"("outputs":["#1"]},"conditions":["d inside x"]})");
}

TEST_CASE("what is missing or of another type is named") {
  tensorpar::core::json const good = to_json(tensorpar::rewrite::parse_rule("relu(x) => relu(x)"));
  for (char const* key : {"name", "source", "target", "conditions"}) {
    tensorpar::core::json j = good;
    j.erase(key);
    CHECK_THROWS_WITH_AS(rule_from_json(j), doctest::Contains(key), error);
  }
  tensorpar::core::json j = good;
  j["source"]["nodes"][0]["in"][0] = 3;
  CHECK_THROWS_WITH_AS(rule_from_json(j), doctest::Contains("no text"), error);
  j = good;
  j["source"]["nodes"][0]["op"] = "rellu";
  CHECK_THROWS_WITH_AS(rule_from_json(j), doctest::Contains("no operator rellu"), error);
  j = good;
  j["source"]["outputs"][0] = "#4";
  CHECK_THROWS_AS(rule_from_json(j), error);
  CHECK_THROWS_AS(rule_from_json(tensorpar::core::json::array()), error);
}
