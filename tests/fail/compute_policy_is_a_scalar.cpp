// expect: COMPUTE_POLICY_LACKS<.*scalar_type.*float
// A scalar where the executor wants a compute policy.
#include "support/exec_archetypes.hpp"
#include <tensorpar/exec/executor.hpp>

using namespace tests;

#ifdef TENSORPAR_FAIL
using policy = float;
#else
using policy = computes;
#endif
int devices(executor<policy, whole_communicator> const* e);
