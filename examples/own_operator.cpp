// examples/own_operator.cpp - an operator of your own: one struct with shape rule, iteration space, derivative and kernel
#include "standard_output.hpp"
#include <cmath>
#include <cstdio>
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/exec/executor.hpp>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;

// [quoted: operator]
/// Swish: x * sigmoid(beta * x). The derivative is a second operator.
struct swish_grad {
  double beta = 1;
  static constexpr auto name = "swish_grad";
  static constexpr auto notation = "..., ... -> ...";            // every axis may be split
  static constexpr int arity = 2;
  static constexpr void describe(auto& s, auto&& visit) { visit("beta", s.beta); }
  constexpr op::inference infer(shapes in) const { return in[0]; }
  template <class S> static void compute(exec::kernel_call const& c, swish_grad const& op) {
    auto const *dy = static_cast<S const*>(c.in[0]), *x = static_cast<S const*>(c.in[1]);
    auto* dx = static_cast<S*>(c.out[0]);
    S const beta = exec::constant_of<S>(op.beta), one = exec::scalar_traits<S>::from_integer(1);
    for (i64 i = 0; i < c.out_block[0].elements(); ++i) {
      S const s = exec::scalar_traits<S>::sigmoid(beta * x[i]);
      dx[i] = dy[i] * (s + beta * x[i] * s * (one - s));
    }
  }
};
struct swish {
  double beta = 1;
  static constexpr auto name = "swish";
  static constexpr auto notation = "... -> ...";
  static constexpr void describe(auto& s, auto&& visit) { visit("beta", s.beta); }
  constexpr op::inference infer(shapes in) const {
    if (is_integer(in[0].type)) return op::mismatch("swish takes real numbers", in[0], scalar);
    return in[0];
  }
  constexpr double flops(shapes in, shapes) const { return 5.0 * static_cast<double>(in[0].elements()); }
  void derive(op::gradient_builder& g) const {
    if (g.wanted(0)) g.give(0, g.emit(swish_grad{beta}, {g.gradient(0), g.operand(0)}));
  }
  template <class S> static void compute(exec::kernel_call const& c, swish const& op) {
    auto const* x = static_cast<S const*>(c.in[0]);
    auto* y = static_cast<S*>(c.out[0]);
    S const beta = exec::constant_of<S>(op.beta);
    for (i64 i = 0; i < c.out_block[0].elements(); ++i) y[i] = x[i] * exec::scalar_traits<S>::sigmoid(beta * x[i]);
  }
};
template <class S> using my_compute = compute::eigen<S, op::op_set<swish, swish_grad>>;   // the standard operators and these
// [end]

constexpr axis batch{"batch"};
struct model {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, 16});
    auto y = g.input("y", {batch, 4});
    g.output("loss", all(x | linear{32} | swish{.beta = 1.5} | linear{4}, y) | mean_squared_error{});
  }
};

template <class S> std::vector<std::vector<S>> train(int devices) {
  computation_graph const graph = lower(typed<model>, {batch = 24});
  plan p;
  p.graph = graph.hash();
  p.cluster = logical(devices);
  for (int v = 0; v < graph.node_count(); ++v) p.nodes.push_back({{0, {{'0', devices, 1}}}});   // samples split over all devices
  executor<my_compute<S>, comm::threads> run(differentiate(graph), p);
  run.initialise(3);
  host_batch data{{"x", host_tensor::reals({24, 16}, std::vector<float>(24 * 16))},
                  {"y", host_tensor::reals({24, 4}, std::vector<float>(24 * 4))}};
  for (std::size_t i = 0; i < 24 * 16; ++i) data["x"].real[i] = static_cast<float>(i % 7) / 8;
  for (std::size_t i = 0; i < 24 * 4; ++i) data["y"].real[i] = static_cast<float>(i % 3) / 4;
  double first = 0, last = 0;
  for (int k = 0; k < 20; ++k) {
    last = run.step(data, 0.125).loss;
    if (k == 0) first = last;
  }
  if constexpr (std::same_as<S, float>) {
    std::printf("%d devices: loss %.4f -> %.4f\n", devices, first, last);
    if (!(last < first)) std::exit(1);
  }
  std::vector<std::vector<S>> all;
  for (std::size_t x = 0; x < graph.values.size(); ++x)
    if (graph.values[x].role == value_role::parameter) all.push_back(run.fetch(static_cast<int>(x)));
  return all;
}

int main() {
  train<float>(1);
  train<float>(4);
  bool const equal = train<prime_field>(1) == train<prime_field>(4);   // the proof that the operator may be split as its notation says
  std::printf("prime field, 1 and 4 devices: %s\n", equal ? "equal" : "NOT EQUAL");
  return equal ? 0 : 1;
}
