// tests/support/small_graphs.hpp - small computation graphs and random shardings of them: what tests of plans need, without any executor
#pragma once
#include <random>
#include <tensorpar/plan/plan.hpp>

namespace tests {

using namespace tensorpar;

inline int out(computation_graph const& g, int node, int k = 0) { return g.node(node).out[static_cast<std::size_t>(k)]; }

/// Residual MLP with layer norm and a softmax loss; 24 rows.
computation_graph residual_mlp();
/// Convolutions, batch norm, pooling, dropout, flatten; 12 images.
computation_graph small_cnn();
/// One transformer block over tokens, embedding shared with the output projection; 4 sequences of 6 tokens.
computation_graph small_transformer();
/// Towers of two layers each on the same 24 rows, and their sum; every other tower starts with the same weights. Most orders are valid.
computation_graph towers(int branches);
/// Legal shardings drawn at random: several axes, one loop split twice, replicas, any start, axes in any order of strides.
plan random_plan(computation_graph const& g, int n, std::mt19937& draw);
plan serial_plan(computation_graph const& g);
/// Any order of the operators in which each stands behind those that it reads from.
std::vector<int> random_order(computation_graph const& g, std::mt19937& draw);
inline machine devices(int n) { return make_cluster("test", {"device", 1e9, 1e9, i64{1} << 30, 0}, n, n, {"link", n, 1e-6, 1e9}, {}); }

}  // namespace tests
