// tests/prover/cases/setting.test.cpp - typing patterns, and which axes have one extent
#include <tensorpar/prover/cases/setting.hpp>
#include <doctest/doctest.h>

#include <tensorpar/rewrite/rule_parser.hpp>

using namespace tensorpar;
using namespace tensorpar::prover;

namespace {
std::optional<typed_pattern> typed(std::string_view text, std::vector<shape> const& tensors, std::vector<i64> parameter = {}) {
  rewrite::rule const r = tensorpar::rewrite::parse_rule(text);
  parameter.resize(r.parameters.size(), 1);
  return prover::detail::type_pattern(r.source, tensors, parameter, tensorpar::rewrite::standard_vocabulary());
}
}  // namespace

TEST_CASE("what follows is filled in, axes may count from the last one, weights must fit") {
  auto const t = typed("linear(concat{-2}(x, y), w) => linear(concat{-2}(x, y), w)", {{4, 5, 8}, {4, 3, 8}, {6, 8}});
  REQUIRE(t.has_value());
  CHECK(t->op[0] == tensorpar::op::any_op(concat{1}));
  CHECK(t->op[1] == tensorpar::op::any_op(linear{6, false}));
  CHECK(t->value[1][0] == shape{4, 8, 6});
  CHECK(!typed("linear(x, w) => x", {{4, 8}, {6, 7}}));
  CHECK(!typed("linear(x, w) => x", {{4, 8}, {6, 8, 1}}));
  CHECK(!typed("concat{-3}(x, y) => x", {{4, 8}, {4, 8}}));
  CHECK(!typed("embedding(x, w) => x", {{4}, {6, 8}}));
  CHECK(typed("embedding(x, w) => x", {shape({4}, dtype::i64), {6, 8}}));
  CHECK(!typed("split{parts=2,axis=0}(x).2 => x", {{4}}));
  CHECK(!typed("relu(split{parts=2,axis=0}(x).2) => x", {{4}}));
  auto const s = typed("slice{d,0,2*extent(y,d)}(x), relu(y) => x, y", {{2, 3}, {7, 3}}, {0});   // y is named first
  REQUIRE(s.has_value());
  CHECK(s->op[0] == tensorpar::op::any_op(slice_axis{0, 0, 4}));
}

TEST_CASE("scalars go through operators that work element by element, and no others") {
  CHECK(typed("add(sum{0}(x), sum{0}(y)) => x", {{4}, {6}}));
  CHECK(typed("?f(scale{0.5}(sum{0}(x))) => x", {{4}}));
  CHECK(!typed("softmax(sum{0}(x)) => x", {{4}}));
  CHECK(!typed("sum{0}(sum{0}(x)) => x", {{4}}));
}

TEST_CASE("functions are chosen by number") {
  auto const& f = prover::detail::functions_of(tensorpar::rewrite::standard_vocabulary());
  REQUIRE(f.size() == 4);
  for (std::size_t i = 0; i < f.size(); ++i)
    CHECK(typed("?f(x) => x", {{4}}, {static_cast<i64>(i)})->op[0].op == f[i]);
}

TEST_CASE("axes that one loop walks have one extent, joined and windowed axes their own") {
  rewrite::rule const r = tensorpar::rewrite::parse_rule("linear(concat{0}(x, y), w) => concat{0}(linear(x, w), linear(y, w))");
  std::vector<shape> const tensors{{12, 12}, {12, 12}, {12, 12}};
  auto const source = prover::detail::type_pattern(r.source, tensors, {}, tensorpar::rewrite::standard_vocabulary());
  auto const target = prover::detail::type_pattern(r.target, tensors, {}, tensorpar::rewrite::standard_vocabulary());
  prover::detail::extent_classes const c(r, tensors, *source, *target);
  CHECK(c.of(0, 1) == c.of(1, 1));
  CHECK(c.of(0, 1) == c.of(2, 1));
  CHECK(c.of(0, 0) != c.of(1, 0));
  CHECK(c.of(2, 0) != c.of(0, 1));
  auto const joined = c.of_node(0, 0, 0), out = c.of_node(1, 2, 0);
  CHECK(joined[1] == c.of(0, 1));
  CHECK(joined[0] != c.of(0, 0));
  CHECK(out[1] == c.of(2, 0));
  CHECK(out == c.of_node(0, 1, 0));
}
