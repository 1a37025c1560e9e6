// expect: NOT_A_SCALAR<int>
// A compute policy on numbers that there are no scalar_traits for.
#include "support/exec_archetypes.hpp"
#include <tensorpar/exec/executor.hpp>

using namespace tests;

struct counts : computes {
#ifdef TENSORPAR_FAIL
  using scalar_type = int;
#endif
};
int devices(executor<counts, whole_communicator> const* e);
