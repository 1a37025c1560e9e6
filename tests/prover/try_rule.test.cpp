// tests/prover/try_rule.test.cpp - rules that hold pass, rules that do not are refuted
#include <tensorpar/prover/try_rule.hpp>
#include <doctest/doctest.h>

#include <support/effort.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>

#include "rules_that_hold.hpp"

using namespace tensorpar;
using namespace tensorpar::prover;

TEST_CASE("rules that hold do so on every device") {
  for (char const* text : tests::rules_that_hold) {
    CAPTURE(std::string(text));
    trial const t = try_rule(rewrite::parse_rule(text), test_effort::cases(200), 1);
    CHECK(t.counterexample.empty());
    CHECK(t.unknown.empty());
    CHECK(t.instances == test_effort::cases(200));
  }
}

TEST_CASE("rules that do not hold are refuted, and it is said how") {
  for (tests::false_rule const& f : tests::rules_that_do_not_hold) {
    CAPTURE(std::string(f.text));
    trial const t = try_rule(rewrite::parse_rule(f.text), 300, 1);
    CAPTURE(t.counterexample);
    CHECK(!t.counterexample.empty());
    CHECK(t.counterexample.find(f.why) != std::string::npos);
  }
}

TEST_CASE("a seed gives one answer; an operator that nobody can compute is said") {
  rewrite::rule const wrong = rewrite::parse_rule("?f(add(x, y)) => add(?f(x), ?f(y))");
  CHECK(try_rule(wrong, 10, 5).counterexample == try_rule(wrong, 10, 5).counterexample);
  CHECK(try_rule(wrong, 10, 5).counterexample != try_rule(wrong, 10, 6).counterexample);
  CHECK(try_rule(rewrite::parse_rule("global_average(x) => global_average(x)"), 10, 1).unknown == "global_average");
}

TEST_CASE("a difference that only functions make which stand for random ones decides nothing; one of real functions does") {
  for (char const* text : {"relu(relu(x)) => relu(x)", "tanh(relu(x)) => relu(tanh(x))", "relu(sigmoid(x)) => sigmoid(x)",
                           "linear_relu(x, w) => relu(linear_relu(x, w))", "pool2d{average=0}(relu(x)) => relu(pool2d{average=0}(x))",
                           "relu(scale{2}(x)) => scale{2}(relu(x))", "tanh(scale{-1}(x)) => scale{-1}(tanh(x))",
                           "mul(relu(x), relu(scale{-1}(x))) => scale{0}(x)", "relu(softmax(x)) => softmax(x)",
                           "softmax(add(x, x)) => softmax(scale{2}(x))"}) {
    CAPTURE(std::string(text));
    trial const t = try_rule(rewrite::parse_rule(text), test_effort::cases(40), 1);
    CAPTURE(t.counterexample);
    CHECK(t.counterexample.empty());
    bool const plain = std::string_view(text).starts_with("softmax(add");   // needs no property of a function
    CHECK((t.undecided > 0) == !plain);
    CHECK(t.open.empty() == plain);
  }
  for (char const* text : {"relu(add(x, y)) => add(relu(x), relu(y))", "relu(tanh(x)) => tanh(x)", "tanh(tanh(x)) => tanh(x)",
                           "gelu(x) => relu(x)", "linear_relu(x, w) => linear(x, w)", "relu(scale{-1}(x)) => scale{-1}(relu(x))",
                           "pool2d{average=0}(scale{-1}(x)) => scale{-1}(pool2d{average=0}(x))", "softmax(scale{2}(x)) => softmax(x)",
                           "?f(?f(x)) => ?f(x)", "relu(replicate{k}(x)) => relu(x)"}) {
    CAPTURE(std::string(text));
    trial const t = try_rule(rewrite::parse_rule(text), test_effort::cases(40), 1);
    CHECK(!t.counterexample.empty());
  }
}

namespace {
/// A function that nobody but its author knows.
struct cubed {
  static constexpr auto name = "cubed";
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) const { return in[0]; }
};
}  // namespace

TEST_CASE("of a function that is not known nothing is refuted by its values") {
  rewrite::vocabulary const words = rewrite::standard_vocabulary().with<cubed>();
  CHECK(try_rule(rewrite::parse_rule("cubed(scale{-1}(x)) => scale{-1}(cubed(x))", words), 20, 1, words).undecided == 20);
  CHECK(try_rule(rewrite::parse_rule("cubed(add(x, y)) => cubed(add(y, x))", words), 20, 1, words).instances == 20);
  CHECK(!try_rule(rewrite::parse_rule("cubed(partition{0,k}(x)) => cubed(x)", words), 20, 1, words).counterexample.empty());
}

TEST_CASE("conditions hold on every instance, those on extents and with numbers too") {
  for (char const* text : {"reduce{m}(reduce{k}(x)) => reduce{2*k}(x) where m == 2", "combine{0,k}(x) => combine{0,2*m}(x) where k == 2*m",
                           "replicate{k}(x) => replicate{k}(x) where 2*k | copies(x)",
                           "add(slice{-1,0,extent(y,-1)}(x), y) => add(x, y) where extent(x,-1) == extent(y,-1)"}) {
    CAPTURE(std::string(text));
    trial const u = try_rule(rewrite::parse_rule(text), 20, 1);
    CHECK(u.counterexample.empty());
    CHECK(u.instances == 20);
  }
}
