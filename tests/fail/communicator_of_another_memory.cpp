// expect: COMMUNICATOR_OF_ANOTHER_MEMORY<.*remembers
// A compute policy whose memory the communicator cannot read, handed to the executor.
#include "support/exec_archetypes.hpp"
#include <tensorpar/exec/executor.hpp>

struct elsewhere : tests::computes {
#ifdef TENSORPAR_FAIL
  using memory = tests::remembers;
#endif
  tests::remembers device_memory() const;
};
int devices(tensorpar::executor<elsewhere, tests::whole_communicator> const* e);
