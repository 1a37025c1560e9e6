// expect: COMMUNICATOR_LACKS<.*all_reduce.*half_a_network
// A communicator without one of the operations that a plan may ask for, handed to the executor.
#include "support/exec_archetypes.hpp"
#include <tensorpar/exec/executor.hpp>

using namespace tests;

struct half_a_network : communicator_with<with_reduce_scatter, with_all_gather, with_all_to_all, with_broadcast, with_barrier, with_send,
                                          with_receive> {
#ifndef TENSORPAR_FAIL
  void all_reduce(group const&, float const*, float*, i64);
#endif
};
int devices(executor<computes, half_a_network> const* e);
