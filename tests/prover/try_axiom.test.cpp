// tests/prover/try_axiom.test.cpp - every property of operators holds on random shapes; wrong ones are refuted
#include <tensorpar/prover/try_axiom.hpp>
#include <doctest/doctest.h>

#include <set>
#include <support/effort.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

TEST_CASE("every axiom, on 1,000 shapes") {
  std::set<std::string_view> names;
  for (axiom const& a : axioms) {
    CAPTURE(std::string(a.name));
    CHECK(names.insert(a.name).second);
    axiom_trial const t = try_axiom(a, test_effort::cases(1000), 1);
    CHECK(t.counterexample.empty());
    CHECK(t.equal == test_effort::cases(1000));
  }
}

TEST_CASE("wrong properties are refuted") {
  struct wrong { axiom what; char const* why; };
  using enum axiom_kind;
  for (wrong const& w : {
           // joining grouped convolutions: only groups of equal size may be joined (four of TASO's published rules)
           wrong{{"", forward, "concat{-3}(conv2d{groups=1}(x, v), conv2d{groups=1}(y, w)) => "
                               "conv2d{groups=2}(concat{-3}(x, y), concat{-4}(v, w))"}, ""},
           wrong{{"", both, "?f(add(x, y)) => add(?f(x), ?f(y))"}, "differ"},
           wrong{{"", both, "conv2d{groups=1}(add(x, y), w) => add(conv2d{groups=1}(x, w), conv2d{groups=1}(y, w))"},
                 "only the right side"},
           wrong{{"", forward, "add(concat{d}(x, y), concat{d}(z, w)) => concat{d}(add(x, z), add(y, w))"}, "only the left side"},
           wrong{{"", both, "linear(concat{d}(x, y), w) => concat{d}(linear(x, w), linear(y, w))"}, ""},
           wrong{{"", guarded, "concat{d}(x, y) => concat{d}(y, x)"}, "differ"},
           wrong{{"", guarded, "matmul{0,0}(x, y) => matmul{0,0}(y, x)"}, ""},
           wrong{{"", guarded, "pool2d{average=0}(add(x, y)) => add(pool2d{average=0}(x), pool2d{average=0}(y))"}, "differ"},
           wrong{{"", guarded, "global_average(x) => global_average(x)"}, "not known"}}) {
    CAPTURE(std::string(w.what.text));
    axiom_trial const t = try_axiom(w.what, 1000, 1);
    CAPTURE(t.counterexample);
    CHECK(!t.counterexample.empty());
    CHECK(t.counterexample.find(w.why) != std::string::npos);
  }
}
