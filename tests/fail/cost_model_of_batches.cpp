// expect: COST_MODEL_LACKS<.*seconds_of_a_compute_query.*half_a_model
// A cost model that cannot price an operator, handed to the search for micro-batches and stages.
#include <tensorpar/search/plan_training.hpp>

using namespace tensorpar;

struct half_a_model {
#ifndef TENSORPAR_FAIL
  double seconds(cost::compute_query const&) const { return 1; }
#endif
  double seconds(cost::reshard_query const&) const { return 1; }
};

auto answer(training_problem const& p, machine const& m) { return plan_training(p, m, half_a_model{}); }
