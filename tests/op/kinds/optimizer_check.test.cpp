// tests/op/kinds/optimizer_check.test.cpp - constants that no optimizer can work with are refused by name, also where a graph is
// differentiated
#include <cmath>
#include <doctest/doctest.h>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/op/kinds/loss.hpp>
#include <tensorpar/op/kinds/optimizer_check.hpp>

using namespace tensorpar;

TEST_CASE("each constant has its bounds") {
  auto const says = [](auto const& change) -> std::string {
    optimizer_choice o;
    change(o);
    try { op::require_optimizer(o); } catch (error const& e) { return e.what(); }
    return "";
  };
  CHECK(says([](optimizer_choice&) {}) == "");
  CHECK(says([](optimizer_choice& o) { o.beta1 = 1; }) == "beta1 is 1 (at optimizer); valid: a number from 0 to below 1");
  CHECK(says([](optimizer_choice& o) { o.clip_norm = -1; }) == "clip_norm is -1 (at optimizer); valid: a number from 0 to 1.8e+308");
  CHECK(says([](optimizer_choice& o) { o.kind = static_cast<optimizer_kind>(3); }) ==
        "kind is 3 (at optimizer); valid: sgd, momentum or adamw");
  CHECK(says([](optimizer_choice& o) { o.on_non_finite = static_cast<non_finite>(3); }) ==
        "on_non_finite is 3 (at optimizer); valid: error, skip or go_on");
  CHECK(says([](optimizer_choice& o) { o.momentum = 1; }) == "");
  CHECK(says([](optimizer_choice& o) { o.moments = o.gradients = o.masters = dtype::bf16; }) == "");
  CHECK(says([](optimizer_choice& o) { o.moments = dtype::f16; }) == "moments are in f16 (at optimizer); valid: f32 or bf16");
  CHECK(says([](optimizer_choice& o) { o.gradients = dtype::i32; }) == "gradients are in i32 (at optimizer); valid: f32 or bf16");
  double optimizer_choice::* const all[] = {&optimizer_choice::momentum, &optimizer_choice::beta1, &optimizer_choice::beta2,
                                            &optimizer_choice::eps, &optimizer_choice::weight_decay, &optimizer_choice::clip_norm};
  for (auto member : all) {
    CHECK(says([&](optimizer_choice& o) { o.*member = 0; }) == "");
    for (double bad : {-1e-9, std::nan(""), std::numeric_limits<double>::infinity()})
      CHECK(says([&](optimizer_choice& o) { o.*member = bad; }) != "");
  }
}

TEST_CASE("differentiate asks for them") {
  computation_graph g;
  int const w = g.add_parameter("w", {4}, op::init::ones), y = g.add_input("y", {4});
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {w, y})).out[0]);
  training_options o;
  CHECK_NOTHROW(differentiate(g, o));
  o.optimizer.weight_decay = std::nan("");
  CHECK_THROWS_WITH_AS(differentiate(g, o), doctest::Contains("weight_decay is nan"), error);
}
