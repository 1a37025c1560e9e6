// tests/zoo/counts.hpp - what the tests of the zoo ask of a model: operators by name, and as papers count them
#pragma once
#include <map>
#include <tensorpar/typed/typed.hpp>
#include <tensorpar/zoo/axes.hpp>

namespace tests {

using namespace tensorpar;

template <class Model, class Sizes> computation_graph made(Sizes const& s, i64 batch = 1) {
  model_builder g;
  Model::define(g, s);
  return lower(g, {zoo::batch = batch});
}

inline std::map<std::string, int> operators(computation_graph const& g) {
  std::map<std::string, int> n;
  for (graph_node const& v : g.nodes) ++n[std::string(v.op.op->name)];
  return n;
}

/// Operators as Unity's artifact counts them: a ReLU, GELU, sigmoid or tanh that alone reads the result of a convolution or linear layer is
/// that layer's activation (one that has been given a name stands alone), an attention contains its four projections, a cross entropy is
/// the softmax before it, a squared error is no operator.
inline int fused_operators(computation_graph const& g) {
  std::vector<int> readers(g.values.size(), 0);
  for (graph_node const& v : g.nodes) for (int x : v.in) ++readers[static_cast<std::size_t>(x)];
  int n = 0;
  for (graph_node const& v : g.nodes) {
    ++n;
    if (v.op.is<attention>()) n -= 4;
    if (v.op.is<mean_squared_error>()) --n;
    if (!(v.op.is<relu>() || v.op.is<gelu>() || v.op.is<sigmoid>() || v.op.is<tanh_>()) || v.op.name) continue;
    int const p = g.value(v.in[0]).producer;
    if (p >= 0 && readers[static_cast<std::size_t>(v.in[0])] == 1 && (g.node(p).op.is<conv2d>() || g.node(p).op.is<linear>())) --n;
  }
  return n;
}

}  // namespace tests
