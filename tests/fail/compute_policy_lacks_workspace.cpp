// expect: COMPUTE_POLICY_LACKS<.*workspace.*half_a_policy
// A compute policy without one of its members, handed to the executor.
#include "support/exec_archetypes.hpp"
#include <tensorpar/exec/executor.hpp>

using namespace tests;

struct half_a_policy {
  using scalar_type = float;
  static bool supports(tensorpar::op::any_op const&);
#ifndef TENSORPAR_FAIL
  static i64 workspace(tensorpar::op::any_op const&, shapes, shapes);
#endif
  void run(tensorpar::exec::kernel_call const&) const;
};
int devices(executor<half_a_policy, whole_communicator> const* e);
