// tests/rewrite/try_rule.test.cpp - rules that hold pass, rules that do not are refuted
#include <tensorpar/rewrite/try_rule.hpp>
#include <doctest/doctest.h>

#include <support/effort.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>

#include "rules_that_hold.hpp"

using namespace tensorpar;

TEST_CASE("rules that hold do so on every device") {
  for (char const* text : tests::rules_that_hold) {
    CAPTURE(std::string(text));
    trial const t = try_rule(parse_rule(text), effort::cases(200), 1);
    CHECK(t.counterexample.empty());
    CHECK(t.unknown.empty());
    CHECK(t.instances == effort::cases(200));
  }
}

TEST_CASE("rules that do not hold are refuted, and it is said how") {
  for (tests::false_rule const& f : tests::rules_that_do_not_hold) {
    CAPTURE(std::string(f.text));
    trial const t = try_rule(parse_rule(f.text), 300, 1);
    CAPTURE(t.counterexample);
    CHECK(!t.counterexample.empty());
    CHECK(t.counterexample.find(f.why) != std::string::npos);
  }
}

TEST_CASE("a seed gives one answer; an operator that nobody can compute is said") {
  rule const wrong = parse_rule("?f(add(x, y)) => add(?f(x), ?f(y))");
  CHECK(try_rule(wrong, 10, 5).counterexample == try_rule(wrong, 10, 5).counterexample);
  CHECK(try_rule(wrong, 10, 5).counterexample != try_rule(wrong, 10, 6).counterexample);
  CHECK(try_rule(parse_rule("global_average(x) => global_average(x)"), 10, 1).unknown == "global_average");
}
