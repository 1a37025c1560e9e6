// tests/typed/composites.test.cpp - layers of several operators: what they consist of, and what they refuse
#include <doctest/doctest.h>

#include <cmath>
#include <support/typed_models.hpp>
#include <tensorpar/typed/composites.hpp>
#include <tensorpar/typed/lower.hpp>

using namespace tensorpar;

namespace {

constexpr axis n{"batch"}, tok{"tok"}, width{"width"};

std::string operators_of(computation_graph const& g) {
  std::string s;
  for (graph_node const& v : g.nodes) s += std::string(v.op.op->name) + " ";
  return s;
}
std::string refusal(auto&& layer, shape const& s) {
  model_builder g;
  g.output("y", g.input("x", s) | layer);
  return g.ok() ? "accepted" : g.complaints()[0].why.rule;
}

}  // namespace

TEST_CASE("batch normalisation is moments, then normalising by them") {
  model_builder g;
  g.output("y", g.input("x", {n, 8, 4, 4}) | batch_norm(1e-3));
  auto const net = lower(g, {n = 2});
  CHECK(operators_of(net) == "channel_moments normalize ");
  CHECK(net.node(1).op.as<op::normalize>().eps == 1e-3);
  CHECK(net.node(1).in[0] == net.node(0).in[0]);
  CHECK(net.node(1).in[1] == net.node(0).out[0]);
  CHECK(parameters(net) == 16);                            // gamma and beta of 8 channels
  CHECK(net.type(net.output("y")) == shape{n(2), 8, 4, 4});
}

TEST_CASE("spelled-out attention: four projections, and the work of its products") {
  model_builder g;
  g.output("y", g.input("x", {n, tok(16), width(32)}) | multi_head_attention(4));
  auto const net = lower(g, {n = 2});
  CHECK(parameters(net) == 4 * (32 * 32 + 32));
  CHECK(op::spell(net.type(net.output("y"))) == "[batch=2,tok=16,width=32]");
  double products = 0;
  int count = 0;
  for (graph_node const& v : net.nodes)
    if (v.op.is<matmul>()) {
      shape const in[2]{net.type(v.in[0]), net.type(v.in[1])}, out[1]{net.type(v.out[0])};
      products += v.op.op->flops(v.op.attr, {in, 2}, {out, 1});
      ++count;
    }
  CHECK(count == 2);
  CHECK(products == 2 * (2. * 2 * 4 * 16 * 16 * 8));       // q k^T and (softmax) v, each 2 b h s s d
  for (graph_node const& v : net.nodes)
    if (v.op.is<scale>()) CHECK(v.op.as<scale>().factor == doctest::Approx(1 / std::sqrt(8.)));
}

TEST_CASE("keys and values may be another tensor's") {
  model_builder g;
  auto x = g.input("x", {n, tok(16), width(32)}), memory = g.input("memory", {n, 10, width(32)});
  g.output("y", all(x, memory, memory) | multi_head_attention(4));
  auto const net = lower(g, {n = 2});
  CHECK(op::spell(net.type(net.output("y"))) == "[batch=2,tok=16,width=32]");
  CHECK(parameters(net) == 4 * (32 * 32 + 32));
}

TEST_CASE("refusals") {
  CHECK(refusal(multi_head_attention(3), {n, tok(16), width(32)}) == "width not divisible by heads");
  CHECK(refusal(multi_head_attention(0), {n, tok(16), width(32)}) == "width not divisible by heads");
  CHECK(refusal(multi_head_attention(4), {n, width(32)}) == "attention takes [batch,seq,hidden]");
  CHECK(refusal(multi_head_attention(4), {n, tok(16), width(32)}) == "accepted");
  CHECK(refusal(batch_norm(), {n, 8}) != "accepted");
}
