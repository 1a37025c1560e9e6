// expect: COST_MODEL_LACKS<.*seconds_of_a_move_query.*half_a_model
// A cost model that cannot price a move query, handed to the simulator.
#include <tensorpar/simulate/engine.hpp>

struct half_a_model {
#if !defined(TENSORPAR_FAIL) || 1
  double seconds(tensorpar::cost::compute_query const&) const { return 1; }
#endif
#if !defined(TENSORPAR_FAIL) || 0
  double seconds(tensorpar::cost::reshard_query const&) const { return 1; }
#endif
};

double step(tensorpar::program const& p, tensorpar::machine const& m) { return tensorpar::simulate(p, m, half_a_model{}).seconds; }
