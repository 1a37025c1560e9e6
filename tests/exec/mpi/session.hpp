// tests/exec/mpi/session.hpp - MPI for a program of tests: started by the first that asks, ended with the program
#pragma once
#include <tensorpar/exec/comm/mpi.hpp>

namespace tests {
inline tensorpar::comm::mpi_session& mpi() {
  static int argc = 0;
  static char** argv = nullptr;
  static tensorpar::comm::mpi_session session(argc, argv);
  return session;
}
}  // namespace tests
