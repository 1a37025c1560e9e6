// tests/rewrite/pattern.test.cpp - rules written in C++, and rules that are two graphs
#include <tensorpar/rewrite/pattern.hpp>
#include <doctest/doctest.h>

#include <tensorpar/rewrite/rule_parser.hpp>
#include <tensorpar/typed/lower.hpp>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;

TEST_CASE("operators by type and attributes by member say what the text says") {
  rewrite::rule_writer g("data");
  auto const x = g.tensor("x"), w = g.tensor("w");
  auto const d = g.axis("d"), k = g.degree("k");
  g.becomes({g.apply<linear>({x, w})});
  auto const part = g.apply<parallel::partition>({x}, rewrite::set<&parallel::partition::dim_no>(d),
                                                 rewrite::set<&parallel::partition::degree>(k));
  auto const copy = g.apply<parallel::replicate>({w}, rewrite::set<&parallel::replicate::degree>(k));
  g.with_outputs({g.apply<parallel::combine>({g.apply<linear>({part, copy})}, rewrite::set<&parallel::combine::dim_no>(d),
                                             rewrite::set<&parallel::combine::degree>(k))});
  g.inside(d, x);
  rewrite::rule const r = std::move(g).done();
  CHECK(rewrite::spell(r) ==
        "data: linear(x, w) => combine{dim=d,degree=k}(linear(partition{dim=d,degree=k}(x), replicate{degree=k}(w))) where d inside x");
  CHECK(rewrite::spell(rewrite::parse_rule(rewrite::spell(r))) == rewrite::spell(r));
}

TEST_CASE("attributes that are not set are shared; functions, extents, products, several results and outputs") {
  rewrite::rule_writer g("many");
  auto const x = g.tensor("x"), y = g.tensor("y"), w = g.tensor("w");
  auto const f = g.function("f"), k = g.degree("k"), m = g.degree("m"), s = g.number("s");
  auto const c = g.apply<conv2d>({x, w});
  auto const n = g.apply<scale>({g.call(f, c)}, rewrite::set<&scale::factor>(s));
  g.becomes({n, g.apply<parallel::reduce>({y}, rewrite::set<&parallel::reduce::degree>(k * m))});
  auto const c2 = g.apply<conv2d>({x, w}, rewrite::set<&conv2d::stride>(2));
  auto const halves = g.apply<split_axes>({g.apply<concat>({g.call(f, c2), c2}, rewrite::set<&concat::axis_no>(1))},
                                          rewrite::set<&split_axes::parts>(2), rewrite::set<&split_axes::axis_no>(1));
  auto const cut = g.apply<slice_axis>({g.result(halves, 1)}, rewrite::set<&slice_axis::axis_no>(0), rewrite::set<&slice_axis::begin>(0),
                                       rewrite::set<&slice_axis::length>(g.extent(x, 0)));
  g.with_outputs({g.apply<scale>({cut}, rewrite::set<&scale::factor>(s * 0.5)),
                  g.apply<parallel::reduce>({y}, rewrite::set<&parallel::reduce::degree>(k))});
  g.divides(k, m);
  g.equal(k, 2);
  CHECK_NOTHROW(std::move(g).done());
  rewrite::rule_writer h("unbound");
  auto const z = h.tensor("z");
  h.becomes({h.apply<relu>({z})});
  h.with_outputs({h.apply<scale>({z})});
  CHECK_THROWS_WITH_AS(std::move(h).done(), doctest::Contains("parameter factor is not bound"), error);
}

namespace {
struct before {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {8, 4});
    auto v = g.weight("v", {6, 4}, op::init::ones), w = g.weight("w", {6, 4}, op::init::ones);
    g.output("y", all(all(x, v) | matmul{.transpose_b = true}, all(x, w) | matmul{.transpose_b = true}) | add{});
  }
};
struct after {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {8, 4});
    auto v = g.weight("v", {6, 4}, op::init::ones), w = g.weight("w", {6, 4}, op::init::ones);
    g.output("y", all(x, all(v, w) | add{}) | matmul{.transpose_b = true});
  }
};
struct other {
  static constexpr void define(auto& g) { g.output("z", g.input("x", {8, 4}) | relu{}); }
};
}  // namespace

TEST_CASE("two typed models are a rule") {
  rewrite::rule const r = rewrite::rule_of("sum of products", lower(typed<before>), lower(typed<after>));
  CHECK(rewrite::spell(r) ==
        "sum of products: add(matmul{transpose_a=0,transpose_b=1}(x, v), matmul{transpose_a=0,transpose_b=1}(x, w)) => "
        "matmul{transpose_a=0,transpose_b=1}(x, add(v, w))");
  CHECK_THROWS_WITH_AS(rewrite::rule_of("no", lower(typed<before>), lower(typed<other>)), doctest::Contains("no output y"), error);
}
