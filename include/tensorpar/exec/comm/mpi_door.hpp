// tensorpar/exec/comm/mpi_door.hpp - the only door to MPI: its C interface
#pragma once
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>
