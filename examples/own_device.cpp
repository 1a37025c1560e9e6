// examples/own_device.cpp - an accelerator of your own: a memory, what computes in it, what communicates from it; any plan runs there
#include "far_device.hpp"
#include "standard_output.hpp"

#include <cstdio>
#include <tensorpar/op/operators.hpp>
#include <tensorpar/typed/typed.hpp>

using namespace tensorpar;

constexpr axis batch{"batch"};
struct model {
  static constexpr void define(auto& g) {
    auto x = g.input("x", {batch, 16});
    auto y = g.input("y", {batch, 4});
    g.output("loss", all(x | linear{32} | relu{} | linear{4}, y) | mean_squared_error{});
  }
};

/// Ten steps of the same plan on these devices; the loss of the last one.
template <class Executor> double trained(computation_graph const& graph, plan const& p) {
  Executor run(differentiate(graph), p);
  run.initialise(1);
  host_batch data{{"x", host_tensor::reals({8, 16}, std::vector<float>(128, 1))}, {"y", host_tensor::reals({8, 4}, std::vector<float>(32, 0))}};
  double loss = 0;
  for (int step = 0; step < 10; ++step) loss = run.step(data, 0.1).loss;
  return loss;
}

int main() {
  computation_graph const graph = lower(typed<model>, {batch = 8});
  plan p;
  p.graph = graph.hash();
  p.cluster = logical(4);
  for (int v = 0; v < graph.node_count(); ++v) p.nodes.push_back({{0, {{'0', 4, 1}}}});
  double const here = trained<executor<compute::eigen<float>, comm::threads>>(graph, p);
  double const there = trained<executor<far::far_compute<float>, far::far_threads>>(graph, p);
  std::printf("loss after 10 steps: %g in the host's memory, %g in the devices'\n", here, there);
  return here == there ? 0 : 1;
}
