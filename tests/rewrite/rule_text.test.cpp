// tests/rewrite/rule_text.test.cpp - rules as text
#include <tensorpar/rewrite/rule_text.hpp>
#include <doctest/doctest.h>

#include <tensorpar/rewrite/rule_parser.hpp>

using namespace tensorpar;

TEST_CASE("text says what a rule says, and leaves out what follows") {
  for (char const* text : {
           "data: linear(x, w) => combine{dim=d,degree=k}(linear(partition{dim=d,degree=k}(x), replicate{degree=k}(w))) where d inside x",
           "t0 = ?f(x); add(t0, t0) => t0 = ?f(x); add(t0, t0)",
           "matmul(a, b), matmul(a, c) => t0 = matmul(a, concat{axis=-1}(b, c)); "
           "slice{axis=-1,begin=0,length=extent(b,-1)}(t0), slice{axis=-1,begin=extent(b,-1),length=extent(c,-1)}(t0)",
           "split{parts=2,axis=0}(x).1 => slice{axis=0,begin=h,length=h}(x)",
           "attention{causal=0}(x, y, z) => attention_finish(attention_parts(x, split_axis{which=-2}(y), split_axis{which=-2}(z)))",
           "scale{factor=0.5}(scale{factor=s*t}(x)) => scale{factor=s*t}(scale{factor=0.5}(x))",
           "partition{dim=d,degree=2*k*m}(x) => partition{dim=d,degree=k}(partition{dim=d,degree=m}(x)) "
           "where k | degree(x,d), copies(x) == sums(x), d != -1, d inside x by 2"}) {
    INFO(text);
    CHECK(rewrite::spell(rewrite::parse_rule(text)) == text);
  }
}

TEST_CASE("attributes may be written by position") {
  CHECK(rewrite::spell(rewrite::parse_rule("partition{d,k}(x) => partition{1,k}(x)"))
        == "partition{dim=d,degree=k}(x) => partition{dim=1,degree=k}(x)");
  CHECK(rewrite::spell(rewrite::parse_rule("conv2d{groups=1}(x, w) => conv2d{stride,pad,1,pad_w}(x, w)")) ==
        "conv2d{groups=1}(x, w) => conv2d{groups=1}(x, w)");
}
