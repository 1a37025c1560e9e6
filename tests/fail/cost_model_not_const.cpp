// expect: COST_MODEL_LACKS<.*const_seconds_of_a_compute_query.*forgets_const
// A cost model that may change while it is asked, handed to the joint search.
#include <tensorpar/search/joint/joint.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

#ifdef TENSORPAR_FAIL
#define CONST
#else
#define CONST const
#endif
struct forgets_const {
  double seconds(cost::compute_query const&) CONST { return 1; }
  double seconds(cost::reshard_query const&) CONST { return 1; }
};

double step(computation_graph const& g, machine const& m) { return optimize_jointly(g, m, forgets_const{}).cost.seconds; }
