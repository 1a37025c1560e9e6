// tensorpar/exec/nccl/by_mpi.hpp - NCCL in the processes of an MPI run: MPI says who is who, NCCL does the
// rest
#pragma once
#include <tensorpar/exec/comm/mpi_session.hpp>
#include <tensorpar/exec/nccl/world.hpp>

namespace tensorpar::comm {

namespace detail {
/// MPI_COMM_WORLD's rank of this process. Throws `error` unless MPI is running, with exactly this many
/// processes.
inline int mpi_rank_of(int ranks) {
  int started = 0, rank = 0, size = 0;
  MPI_Initialized(&started);
  if (!started) throw error("MPI is not running", "comm::by_mpi", "an mpi_session before it");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == ranks) return rank;
  throw error("the plan is for " + std::to_string(ranks) + " devices, but MPI runs " + std::to_string(size) +
                  " processes",
              "comm::by_mpi", "one process per device");
}
/// The id that rank 0 makes, in every process. Collective.
template <class Library> typename Library::id mpi_world_id(int rank) {
  typename Library::id id{};
  typename Library::status made = Library::ok;
  if (rank == 0) made = Library::make_id(id);
  mpi_check(MPI_Bcast(&id, static_cast<int>(sizeof id), MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Bcast");
  nccl_world<Library>::check(made, "naming the ranks' world");
  return id;
}
}  // namespace detail

/// Makes the world of ranks that MPI has started, one in each process; collective over MPI_COMM_WORLD. All
/// else is NCCL's. A world_maker (exec/comm/world_maker.hpp): `executor<compute::cuda<float>, comm::nccl>
/// run(graph, plan, comm::by_mpi<comm::nccl>{})`.
template <class Endpoint> struct by_mpi {
  std::chrono::milliseconds deadline = std::chrono::seconds(60);
  typename Endpoint::world operator()(int ranks) const {
    int const rank = detail::mpi_rank_of(ranks);
    return {ranks, rank, detail::mpi_world_id<typename Endpoint::library>(rank), deadline};
  }
};

}  // namespace tensorpar::comm
