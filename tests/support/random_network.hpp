// tests/support/random_network.hpp - seeded networks made by hand: weights that operators make, parameters read everywhere, learned scalars
#pragma once
#include <random>
#include "small_graphs.hpp"

namespace tests {

using namespace tensorpar;

/// What a drawn network may have beside layers, their functions, sums and transposed activations.
struct network_kind {
  i64 samples = 2;
  int operators = 6;           // about so many layers
  bool fixed_batch = false;    // parameters of an activation's shape: the graph is of this batch alone
};

/// A network that no layer library would write: weights that operators make of parameters and of one another, parameters that several
/// operators read (or one twice), learned scalars in the loss, regularisers, samples along any axis, dead ends, operators that read an
/// operand twice. Inputs are called x and y; the output "loss" is a mean over samples but for terms of parameters alone. All extents are
/// powers of two, and no operator mixes samples.
computation_graph random_network(network_kind k, std::mt19937& draw);

/// How often is the gradient of a parameter read, but by updates? 0 for most networks of layers.
int second_readers(computation_graph const& g);

/// Numbers of micro-batches that are drawn.
inline std::vector<int> micro_batch_counts() { return {1, 2, 3, 4, 5, 6, 7, 8}; }

}  // namespace tests
