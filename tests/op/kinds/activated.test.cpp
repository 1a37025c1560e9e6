// tests/op/kinds/activated.test.cpp - an operator with a function of its result: its name, loops, work and derivative follow from the two
#include <tensorpar/op/kinds/activated.hpp>
#include <doctest/doctest.h>

#include <string>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/op/kinds/loss.hpp>

using namespace tensorpar;

namespace {
/// A user's own pair of the library's parts.
using matmul_tanh = op::activated<matmul, tanh_>;
static_assert(op::operator_<matmul_tanh> && op::differentiable<matmul_tanh>);
static_assert(op::info<matmul_tanh>.name == "matmul_tanh" && op::info<matmul_tanh>.id == core::name_hash("matmul_tanh"));
static_assert(op::info<linear>.first == nullptr && op::info<linear>.then == nullptr);

computation_graph chain(op::any_op const& one, op::any_op const* then) {
  computation_graph g;
  int const x = g.add_input("x", {4, 6}), w = g.add_parameter("w", {8, 6}, op::init::fan_in), y = g.add_input("y", {4, 8});
  int last = g.node(g.add(one, {x, w})).out[0];
  if (then) last = g.node(g.add(*then, {last})).out[0];
  g.add_output("loss", g.node(g.add(mean_squared_error{}, {last, y})).out[0]);
  return g;
}
std::vector<std::string> operators(computation_graph const& g) {
  std::vector<std::string> r;
  for (graph_node const& n : g.nodes) r.push_back(std::string(n.op.op->name));
  return r;
}
}  // namespace

TEST_CASE("an operator with a function has the parts' name, attributes, weights and work, and keeps its sums whole") {
  CHECK(op::info<op::linear_sigmoid>.name == "linear_sigmoid");
  CHECK(op::info<op::conv2d_relu>.name == "conv2d_relu");
  CHECK(op::info<op::conv2d_relu>.attrs == op::info<conv2d>.attrs);
  CHECK(op::info<op::linear_relu>.first == &op::info<linear>);
  CHECK(op::info<op::linear_relu>.then == &op::info<relu>);
  op::linear_relu const o{{.out = 8, .bias = false}};
  CHECK(op::any_op(o).as<op::linear_relu>().out == 8);
  CHECK(o.notation_for({}).view() == "...I, oI, o -> ...o");
  CHECK(op::conv2d_relu{{.out = 4}}.notation_for({}).view() == "nCHW,oCRS,o->noYX");
  CHECK(op::conv2d_relu{{.out = 4, .groups = 2}}.notation_for({}).view() == "ngHW,gCRS,g->ngYX");
  CHECK(matmul_tanh{{.transpose_a = true}}.notation_for({}).view() == "...Km,...Kn->...mn");
  shape const x{4, 6}, y{4, 8};
  op::any_op const both = o;
  double const alone = both.op->first->flops(both.attr, {&x, 1}, {&y, 1});
  CHECK(both.op->flops(both.attr, {&x, 1}, {&y, 1}) == alone + 32);        // one operation for each element
  CHECK(both.op->weights(both.attr, {&x, 1}).n == 1);
  CHECK(both.op->infer(both.attr, {&x, 1}).out[0] == y);
}

TEST_CASE("its derivative is the function's, once, then the operator's") {
  op::any_op const f = relu{};
  training_options const o;
  auto const apart = operators(differentiate(chain(linear{8, false}, &f), o).graph);
  auto whole = operators(differentiate(chain(op::linear_relu{{8, false}}, nullptr), o).graph);
  REQUIRE(whole.size() + 1 == apart.size());
  whole[0] = "linear";
  whole.insert(whole.begin() + 1, "relu");
  CHECK(whole == apart);
  // weight and operand are both asked for: the function's gradient is made once for them
  computation_graph g = chain(op::linear_relu{{8, false}}, nullptr);
  computation_graph two;
  int const p = two.add_parameter("p", {4, 6}, op::init::ones), w = two.add_parameter("w", {8, 6}, op::init::fan_in);
  int const y = two.node(two.add(op::linear_relu{{8, false}}, {p, w})).out[0];
  two.add_output("loss", two.node(two.add(mean_squared_error{}, {y, two.add_input("y", {4, 8})})).out[0]);
  int slopes = 0;
  for (std::string const& name : operators(differentiate(two, o).graph)) slopes += name == "relu_grad";
  CHECK(slopes == 1);
  // what is read is the result, so the product is not kept for it
  training_graph const t = differentiate(g, o);
  for (graph_node const& n : t.graph.nodes)
    if (n.op.is<relu_grad>()) CHECK(n.in[1] == t.graph.node(0).out[0]);
}
