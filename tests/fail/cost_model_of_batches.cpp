// expect: COST_MODEL_LACKS<.*seconds_of_a_compute_query.*half_a_model
// A cost model that cannot price an operator, handed to the search for micro-batches and stages.
#include <tensorpar/search/optimize_batch.hpp>

using namespace tensorpar;

struct half_a_model {
#ifndef TENSORPAR_FAIL
  double seconds(compute_query const&) const { return 1; }
#endif
  double seconds(reshard_query const&) const { return 1; }
};

auto planned(computation_graph const& g, machine const& m) { return optimize_batch(g, 8, m, half_a_model{}); }
