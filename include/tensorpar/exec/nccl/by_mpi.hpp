// tensorpar/exec/nccl/by_mpi.hpp - NCCL in the processes of an MPI run: MPI says who is who, NCCL does the rest
#pragma once
#include <tensorpar/exec/mpi_session.hpp>
#include <tensorpar/exec/nccl/hub.hpp>

namespace tensorpar::comm {

namespace detail {
/// MPI_COMM_WORLD's rank of this process. Throws `error` unless MPI is running, with exactly this many processes.
inline int mpi_rank_of(int ranks) {
  int started = 0, rank = 0, size = 0;
  MPI_Initialized(&started);
  if (!started) throw error("MPI is not running", "comm::started_by_mpi", "an mpi_session before it");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size == ranks) return rank;
  throw error("the plan is for " + std::to_string(ranks) + " devices, but MPI runs " + std::to_string(size) + " processes",
              "comm::started_by_mpi", "one process per device");
}
/// The id that rank 0 makes, in every process. Collective.
template <class Library> typename Library::id mpi_world_id(int rank) {
  typename Library::id id{};
  typename Library::status made = Library::ok;
  if (rank == 0) made = Library::make_id(id);
  mpi_check(MPI_Bcast(&id, static_cast<int>(sizeof id), MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Bcast");
  nccl_hub<Library>::check(made, "naming the ranks' world");
  return id;
}
}  // namespace detail

/// The hub of ranks that MPI has started, one in each process. Making one is collective over MPI_COMM_WORLD; all else is the Library's.
template <class Library> struct mpi_started_hub : nccl_hub<Library> {
  explicit mpi_started_hub(int ranks, std::chrono::milliseconds deadline = std::chrono::seconds(60))
      : mpi_started_hub(ranks, detail::mpi_rank_of(ranks), deadline) {}

 private:
  mpi_started_hub(int ranks, int rank, std::chrono::milliseconds deadline)
      : nccl_hub<Library>(ranks, rank, detail::mpi_world_id<Library>(rank), deadline) {}
};

/// An endpoint with that hub: `comm::started_by_mpi<comm::nccl>`.
template <class Endpoint> struct started_by_mpi : Endpoint {
  using hub = mpi_started_hub<typename Endpoint::library>;
  using Endpoint::Endpoint;
};

}  // namespace tensorpar::comm
