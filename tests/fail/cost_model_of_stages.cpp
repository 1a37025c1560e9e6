// expect: COST_MODEL_LACKS<.*seconds_of_a_move_query.*half_a_model
// A cost model that cannot price a reshard, handed to the stages of a pipeline.
#include <tensorpar/search/pipeline/graph_model.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

struct half_a_model {
  double seconds(cost::compute_query const&) const { return 1; }
#ifndef TENSORPAR_FAIL
  double seconds(cost::reshard_query const&) const { return 1; }
#endif
};

i64 samples(computation_graph const& g, machine const& m) { return graph_stages(g, m, half_a_model{}, {}).mini_batch(); }
