// expect: COST_MODEL_LACKS<.*seconds_of_a_compute_query.*half_a_model
// A cost model that cannot price an operator, handed to the strategies that a plan is compared with.
#include <tensorpar/peers/strategies.hpp>

using namespace tensorpar;
using namespace tensorpar::peers;

struct half_a_model {
#ifndef TENSORPAR_FAIL
  double seconds(cost::compute_query const&) const { return 1; }
#endif
  double seconds(cost::reshard_query const&) const { return 1; }
};

auto compared(computation_graph const& g, machine const& m) { return strategies(g, m, half_a_model{}); }
