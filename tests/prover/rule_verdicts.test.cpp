// tests/prover/rule_verdicts.test.cpp - rules that hold for some numbers or functions alone: each with the verdict that is justified
#include <doctest/doctest.h>

#include <support/effort.hpp>
#include <tensorpar/prover/try_rule.hpp>
#include <tensorpar/prover/z3.hpp>
#include <tensorpar/rewrite/rule_parser.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

namespace {
enum class verdict { proved, held, open, refuted };   // held: true in every trial, and no axiom proves it
struct judged_rule {
  char const* text;
  verdict is;
  char const* named = "";                // what the counterexample, or what is open, names
};

/// A function that nobody but its author knows.
struct cubed {
  static constexpr auto name = "cubed";
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) const { return in[0]; }
};
/// Another one.
struct reversed {
  static constexpr auto name = "reversed";
  static constexpr auto notation = "... -> ...";
  constexpr op::inference infer(shapes in) const { return in[0]; }
};

void as_expected(std::initializer_list<judged_rule> rules, rewrite::vocabulary const& words = rewrite::standard_vocabulary()) {
  z3_prover p(words);
  for (judged_rule const& f : rules) {
    CAPTURE(std::string(f.text));
    rewrite::rule const r = rewrite::parse_rule(f.text, words);
    trial const t = try_rule(r, test_effort::cases(40), 1, words);
    CAPTURE(t.counterexample);
    CAPTURE(t.open);
    bool const proved = p.prove(r).status == proof_status::proved;
    CHECK(proved == (f.is == verdict::proved));
    CHECK(t.counterexample.empty() == (f.is != verdict::refuted));
    if (f.is == verdict::open) CHECK(t.undecided > 0);
    if (f.is == verdict::proved || f.is == verdict::held) CHECK((t.undecided == 0 && t.instances > 0));
    CHECK((f.is == verdict::open ? t.open : t.counterexample).find(f.named) != std::string::npos);
  }
}
}  // namespace

TEST_CASE("a number before or behind a function: true for numbers of one sign alone is false") {
  as_expected({
      {"relu(scale{s}(x)) => scale{s}(relu(x))", verdict::refuted, "s = -"},
      {"scale{s}(relu(x)) => relu(scale{s}(x))", verdict::refuted, "s = -"},
      {"relu(scale{s}(relu(x))) => scale{s}(relu(x))", verdict::refuted, "s = -"},
      {"pool2d{average=0}(scale{s}(x)) => scale{s}(pool2d{average=0}(x))", verdict::refuted, "s = -"},
      {"linear_relu(scale{s}(x), w) => scale{s}(linear_relu(x, w))", verdict::refuted, "s = -"},
      {"relu(scale{s}(linear(x, w))) => scale{s}(linear_relu(x, w))", verdict::refuted, "s = -"},
      {"relu(scale{s}(scale{t}(x))) => scale{s*t}(relu(x))", verdict::refuted, "t = "},
      {"relu(scale{s}(x)) => relu(x)", verdict::refuted},
      {"scale{s}(relu(x)) => relu(scale{-1}(scale{s}(x)))", verdict::refuted},   // true for s = 0 alone
      {"relu(scale{2}(x)) => scale{2}(relu(x))", verdict::open, "equal in real numbers"},
      {"relu(scale{0.5}(x)) => scale{0.5}(relu(x))", verdict::open},
      {"relu(scale{0}(x)) => scale{0}(x)", verdict::open},
      {"relu(scale{s*s}(x)) => scale{s*s}(relu(x))", verdict::open},              // a square is of one sign
      {"relu(scale{-1}(x)) => scale{-1}(relu(x))", verdict::refuted},
      {"relu(scale{s}(x)) => relu(scale{s}(x))", verdict::proved},
      {"scale{s}(scale{t}(x)) => scale{s*t}(x)", verdict::proved},
      {"scale{s}(add(x, y)) => add(scale{s}(x), scale{s}(y))", verdict::proved},
      {"pool2d{average=1}(scale{s}(x)) => scale{s}(pool2d{average=1}(x))", verdict::proved},
  });
}

TEST_CASE("rules that are true for some numbers alone: whole ones, 0 and 1, those above one") {
  as_expected({
      {"scale{s}(scale{s}(x)) => scale{s}(x)", verdict::refuted, "s = "},         // 0 and 1
      {"scale{s}(x) => x", verdict::refuted, "s = "},
      {"scale{s}(x) => scale{s*s*s}(x)", verdict::refuted, "s = "},               // -1, 0 and 1
      {"add(scale{s}(x), x) => scale{s}(add(x, x))", verdict::refuted, "s = "},   // 1
      {"sigmoid(scale{s}(x)) => sigmoid(x)", verdict::refuted, "s = "},
      {"add(x, x) => scale{2}(x)", verdict::held},
      {"add(scale{2}(x), x) => scale{3}(x)", verdict::held},
      {"softmax(scale{s}(x)) => softmax(x)", verdict::refuted, "s = "},
      {"layernorm(scale{s}(x), g, b) => layernorm(x, g, b)", verdict::refuted, "s = "},
  });
}

TEST_CASE("what needs a property of a function is not decided where it is true, and refuted where it is not") {
  as_expected({
      // idempotent
      {"relu(relu(x)) => relu(x)", verdict::open, "equal in real numbers"},
      {"relu(relu(relu(x))) => relu(x)", verdict::open},
      {"tanh(tanh(x)) => tanh(x)", verdict::refuted},
      {"sigmoid(sigmoid(x)) => sigmoid(x)", verdict::refuted},
      {"gelu(gelu(x)) => gelu(x)", verdict::refuted},
      {"?f(?f(x)) => ?f(x)", verdict::refuted},
      {"linear_relu(x, w) => relu(linear_relu(x, w))", verdict::open},
      {"relu(softmax(x)) => softmax(x)", verdict::open},
      {"relu(sigmoid(x)) => sigmoid(x)", verdict::open},
      {"relu(gelu(x)) => gelu(x)", verdict::refuted},
      // odd and even
      {"tanh(scale{-1}(x)) => scale{-1}(tanh(x))", verdict::open},
      {"sigmoid(scale{-1}(x)) => scale{-1}(sigmoid(x))", verdict::refuted},
      {"gelu(scale{-1}(x)) => scale{-1}(gelu(x))", verdict::refuted},
      {"?f(scale{-1}(x)) => scale{-1}(?f(x))", verdict::refuted},
      {"mul(tanh(x), tanh(x)) => mul(tanh(scale{-1}(x)), tanh(scale{-1}(x)))", verdict::open},
      {"mul(sigmoid(x), sigmoid(x)) => mul(sigmoid(scale{-1}(x)), sigmoid(scale{-1}(x)))", verdict::refuted},
      {"mul(relu(x), relu(scale{-1}(x))) => scale{0}(x)", verdict::open},
      {"add(relu(x), scale{-1}(relu(scale{-1}(x)))) => x", verdict::open},
      {"add(gelu(x), scale{-1}(gelu(scale{-1}(x)))) => x", verdict::open},        // gelu(x) = x F(x), and F(x) + F(-x) = 1
      {"add(tanh(x), tanh(scale{-1}(x))) => scale{0}(x)", verdict::open},
      {"add(x, scale{-1}(x)) => scale{0}(x)", verdict::held},
      // monotone, with maxima
      {"pool2d{average=0}(relu(x)) => relu(pool2d{average=0}(x))", verdict::open},
      {"pool2d{average=0}(tanh(x)) => tanh(pool2d{average=0}(x))", verdict::open},
      {"pool2d{average=0}(sigmoid(x)) => sigmoid(pool2d{average=0}(x))", verdict::open},
      {"pool2d{average=0}(gelu(x)) => gelu(pool2d{average=0}(x))", verdict::refuted},
      {"pool2d{average=0}(scale{-1}(x)) => scale{-1}(pool2d{average=0}(x))", verdict::refuted},
      {"pool2d{average=1}(relu(x)) => relu(pool2d{average=1}(x))", verdict::refuted},
      {"pool2d{average=0}(add(x, y)) => add(pool2d{average=0}(x), pool2d{average=0}(y))", verdict::refuted},
      {"pool2d{average=0}(x) => pool2d{average=1}(x)", verdict::refuted},
      // additive, multiplicative, order of functions
      {"relu(add(x, y)) => add(relu(x), relu(y))", verdict::refuted},
      {"relu(add(relu(x), relu(y))) => add(relu(x), relu(y))", verdict::open},
      {"relu(mul(relu(x), relu(y))) => mul(relu(x), relu(y))", verdict::open},
      {"relu(mul(x, x)) => mul(x, x)", verdict::open},
      {"relu(mul(x, y)) => mul(relu(x), relu(y))", verdict::refuted},
      {"tanh(relu(x)) => relu(tanh(x))", verdict::open},
      {"gelu(relu(x)) => relu(gelu(x))", verdict::open},
      {"relu(tanh(x)) => tanh(x)", verdict::refuted},
      {"softmax(relu(x)) => relu(softmax(x))", verdict::refuted},
      // parts of a batch keep what is undecided so, and false ones false
      {"relu(relu(partition{d,k}(x))) => partition{d,k}(relu(x))", verdict::open},
      {"relu(combine{d,k}(relu(x))) => combine{d,k}(relu(x))", verdict::open},
      {"relu(relu(replicate{k}(x))) => relu(x)", verdict::refuted},
      // needs none
      {"?f(transpose{a,b}(x)) => transpose{a,b}(?f(x))", verdict::proved},
      {"?f(add(x, y)) => ?f(add(y, x))", verdict::proved},
  });
}

TEST_CASE("of a function that only its author knows nothing is called equal in real numbers") {
  rewrite::vocabulary const words = rewrite::standard_vocabulary().with<cubed, reversed>();
  as_expected({{"cubed(scale{-1}(x)) => scale{-1}(cubed(x))", verdict::open, "a function is not known in real numbers"},
               {"reversed(reversed(x)) => x", verdict::open, "a function is not known in real numbers"},
               {"relu(cubed(x)) => cubed(relu(x))", verdict::open, "a function is not known in real numbers"},
               {"relu(scale{s}(cubed(x))) => scale{s}(relu(cubed(x)))", verdict::open, "a function is not known in real numbers"},
               {"cubed(add(x, y)) => cubed(add(y, x))", verdict::proved},
               {"cubed(partition{0,k}(x)) => cubed(x)", verdict::refuted}},
              words);
  trial const known = try_rule(rewrite::parse_rule("relu(relu(x)) => relu(x)"), 20, 1);
  CHECK(known.agreed == known.undecided);
  trial const unknown = try_rule(rewrite::parse_rule("cubed(cubed(x)) => cubed(x)", words), 20, 1, words);
  CHECK(unknown.undecided == 20);
  CHECK(unknown.agreed == 0);
}

TEST_CASE("a number of either sign before any function of one operand, one by one") {
  // homogeneous of degree one is relu alone, for numbers above zero; odd is tanh alone
  as_expected({{"relu(scale{3}(x)) => scale{3}(relu(x))", verdict::open},
               {"tanh(scale{3}(x)) => scale{3}(tanh(x))", verdict::refuted},
               {"gelu(scale{3}(x)) => scale{3}(gelu(x))", verdict::refuted},
               {"sigmoid(scale{3}(x)) => scale{3}(sigmoid(x))", verdict::refuted},
               {"relu(scale{-3}(x)) => scale{-3}(relu(x))", verdict::refuted},
               {"tanh(scale{-3}(x)) => scale{-3}(tanh(x))", verdict::refuted},
               {"tanh(scale{s}(x)) => scale{s}(tanh(x))", verdict::refuted},
               {"gelu(scale{s}(x)) => scale{s}(gelu(x))", verdict::refuted},
               {"sigmoid(scale{s}(x)) => scale{s}(sigmoid(x))", verdict::refuted},
               {"?f(scale{s}(x)) => scale{s}(?f(x))", verdict::refuted}});
}
