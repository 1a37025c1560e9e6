// expect: COST_MODEL_LACKS<.*double_seconds_of_a_move_query.*rounds
// A cost model that answers in float, handed to the search.
#include <tensorpar/search/intra/optimize.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

#ifdef TENSORPAR_FAIL
using answer = float;
#else
using answer = double;
#endif
struct rounds {
  double seconds(cost::compute_query const&) const { return 1; }
  answer seconds(cost::reshard_query const&) const { return 1; }
};

search_result found(computation_graph const& g, machine const& m) {
  auto r = optimize(g, m, rounds{});
  return r;
}
