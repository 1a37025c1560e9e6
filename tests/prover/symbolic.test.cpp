// tests/prover/symbolic.test.cpp - every property of operators holds for symbols, and wrong ones do not
#include <tensorpar/prover/symbolic.hpp>
#include <doctest/doctest.h>

using namespace tensorpar;
using namespace tensorpar::prover;

static_assert(number_algebra<symbolic_numbers>);

TEST_CASE("every axiom, at sizes one to three") {
  for (axiom const& a : axioms) {
    CAPTURE(std::string(a.name));
    symbolic_trial const t = check_symbolically(a, 6);
    CHECK(t.problem.empty());
    CHECK(t.cases >= 4);
  }
}

TEST_CASE("wrong properties are not shown") {
  using enum axiom_kind;
  for (char const* text : {"?f(add(x, y)) => add(?f(x), ?f(y))", "concat{d}(x, y) => concat{d}(y, x)",
                           "pool2d{average=0}(add(x, y)) => add(pool2d{average=0}(x), pool2d{average=0}(y))",
                           "conv2d{groups=2}(concat{-3}(x, y), concat{-4}(v, w)) => "
                           "concat{-3}(conv2d{groups=1}(x, v), conv2d{groups=1}(y, w))"}) {
    CAPTURE(std::string(text));
    CHECK(!check_symbolically({"", guarded, text}, 40).problem.empty());
  }
}
