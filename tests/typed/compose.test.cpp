// tests/typed/compose.test.cpp - tensors, operators and functions of tensors put together: the same tables however it is spelled
#include <tensorpar/typed/compose.hpp>
#include <doctest/doctest.h>

#include <string>
#include <tensorpar/op/kinds/contraction.hpp>
#include <tensorpar/op/kinds/reduction.hpp>

using namespace tensorpar;

namespace {
constexpr axis batch_axis{"batch"};

/// Operators and who reads whom, as text: "relu(0) add(1,1)"; values of the input are 0.
std::string written_down(auto&& define) {
  model_builder g;
  define(g, g.input("x", {batch_axis, 12}));
  graph_view const v = g.view();
  std::string s;
  for (int n = 0; n < v.node_count(); ++n) {
    model_node const& m = v.nodes[n];
    s += std::string(n ? " " : "") + std::string(m.op->name) + "(";
    for (int k = 0; k < m.activations; ++k) s += (k ? "," : "") + std::to_string(v.operands[m.in0 + k]);
    s += ")";
    if (m.block >= 0) s += "*" + std::to_string(v.times(m.block));
  }
  return s;
}

constexpr auto twice = [](ref x) { return x + x; };
constexpr auto sum = [](bundle const& b) { return b[0] + b[1]; };
static_assert(block<decltype(twice)> && !join<decltype(twice)> && !block<relu> && stage<relu> && stage<op::any_op>);
static_assert(join<decltype(sum)> && !stage<int>);
}  // namespace

TEST_CASE("a sequence is the same with its tensor, without it, and in pieces") {
  std::string const want = written_down([](auto&, ref x) { x | relu{} | gelu{} | tanh_{}; });
  CHECK(want == "relu(0) gelu(1) tanh(2)");
  CHECK(written_down([](auto&, ref x) { x | (relu{} | gelu{} | tanh_{}); }) == want);
  CHECK(written_down([](auto&, ref x) { x | seq(relu{}, gelu{}, tanh_{}); }) == want);
  CHECK(written_down([](auto&, ref x) { x | seq(relu{}) | seq(gelu{} | tanh_{}); }) == want);
}

TEST_CASE("functions of one tensor and of several; branches in the order they are written") {
  CHECK(written_down([](auto&, ref x) { x | relu{} | twice; }) == "relu(0) add(1,1)");
  CHECK(written_down([](auto&, ref x) { all(x, x | relu{}) | sum; }) == "relu(0) add(0,1)");
  CHECK(written_down([](auto&, ref x) { par(relu{}, gelu{}, seq(tanh_{}, relu{}))(x) | concat{}; }) ==
        "relu(0) gelu(0) tanh(0) relu(3) concat(1,2,4)");
  CHECK(written_down([](auto&, ref x) { x * (x | relu{}); }) == "relu(0) mul(0,1)");
  CHECK(written_down([](auto&, ref x) { x | residual(relu{} | gelu{}); }) == "relu(0) gelu(1) add(0,2)");
}

TEST_CASE("a split gives its parts, all made by one operator") {
  CHECK(written_down([](auto&, ref x) {
          auto const [q, k, v] = x | split<3>();
          CHECK(q.type() == k.type());
          CHECK(v.type().last().n == 4);
          all(v, q) | concat{};
        }) == "split(0) concat(3,1)");
}

TEST_CASE("a repeated block is there once, with as many turns as it says; on a bundle it carries all of it") {
  CHECK(written_down([](auto&, ref x) { x | repeat<5>(relu{} | gelu{}); }) == "relu(1)*5 gelu(2)*5");
  CHECK(written_down([](auto&, ref x) { x | repeat(i64{2}, repeat<3>(seq(relu{}))) | gelu{}; }).find("*6") != std::string::npos);
  constexpr auto swap = [](bundle const& b) { return all(b[1], b[0] + b[1]); };
  CHECK(written_down([&](auto&, ref x) { all(x, x | relu{}) | repeat<4>(swap); }).find("*4") != std::string::npos);
}

TEST_CASE("a block that returns other types than it takes, or a negative number of turns, is one complaint") {
  auto const complaint_about = [](auto&& define) {
    model_builder g;
    define(g.input("x", {batch_axis, 12}));
    return g.ok() ? std::string() : std::string(g.complaints()[0].why.rule);
  };
  CHECK(complaint_about([](ref x) { x | repeat<2>(linear{8}); }) == "the block must return what it takes");
  CHECK(complaint_about([](ref x) { x | repeat(i64{-1}, relu{}); }) == "a negative number of turns");
  CHECK(complaint_about([](ref x) { x | repeat<2>(relu{}); }) == "");
}
