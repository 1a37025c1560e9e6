// tensorpar/exec/comm/mpi_session.hpp - MPI for the length of a program, and error codes as errors
#pragma once
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/mpi_door.hpp>
#include <thread>

namespace tensorpar::comm {

namespace detail {

/// Throws `error` with MPI's own words unless the code is success.
inline void mpi_check(int code, char const* what) {
  if (code == MPI_SUCCESS) return;
  char words[MPI_MAX_ERROR_STRING];
  int n = 0;
  if (MPI_Error_string(code, words, &n) != MPI_SUCCESS) n = 0;
  throw error(std::string("MPI says: ") + std::string(words, idx(n)), what, "");
}

/// From now on MPI_Finalize, which would wait for processes that may be gone, ends them all instead (MPI
/// deletes the attributes of MPI_COMM_SELF first).
inline bool mpi_will_abort = false;
inline void mpi_abort_at_the_end() {
  mpi_will_abort = true;
  int key = MPI_KEYVAL_INVALID;
  auto const end = [](MPI_Comm, int, void*, void*) -> int { return MPI_Abort(MPI_COMM_WORLD, 1); };
  if (MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, end, &key, nullptr) == MPI_SUCCESS)
    MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
}

}  // namespace detail

/// Starts MPI and ends it. One per program, made first of all: `mpi_session mpi(argc, argv); return
/// mpi.run([&] { ... });`. Who starts MPI in another way asks for MPI_THREAD_SERIALIZED at least.
class mpi_session {
 public:
  /// Throws `error` if MPI runs already or offers no calls from several threads, one at a time.
  mpi_session(int& argc, char**& argv) {
    int started = 0, level = 0;
    MPI_Initialized(&started);
    if (started) throw error("MPI has been started before", "mpi_session", "one session per program");
    detail::mpi_check(MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level), "MPI_Init_thread");
    if (level < MPI_THREAD_SERIALIZED) {
      MPI_Finalize();
      throw error("this MPI takes calls from one thread only", "mpi_session",
                  "an MPI that offers MPI_THREAD_SERIALIZED");
    }
    detail::mpi_check(MPI_Comm_dup(MPI_COMM_WORLD, &failed_), "MPI_Comm_dup");
  }
  mpi_session(mpi_session const&) = delete;
  mpi_session& operator=(mpi_session const&) = delete;
  /// Waits for all processes. Where one of them has failed, all are ended; those that have not are better
  /// found in a barrier than in MPI_Finalize: Open MPI 4's mpirun may hang if one that it ends is in there.
  ~mpi_session() {
    if (!detail::mpi_will_abort) {
      MPI_Barrier(MPI_COMM_WORLD);
      MPI_Comm_free(&failed_);
    }
    MPI_Finalize();
  }

  int rank() const { int r = 0; MPI_Comm_rank(MPI_COMM_WORLD, &r); return r; }
  int size() const { int n = 0; MPI_Comm_size(MPI_COMM_WORLD, &n); return n; }

  /// Runs main() and gives its exit status. What it throws is written to stderr with this process's rank, and
  /// ends all processes. An error that all of them throw is written by each: who has written waits up to half
  /// a second for the others.
  template <class Main> int run(Main const& main) const {
    try {
      return main();
    } catch (std::exception const& e) {
      std::fprintf(stderr, "rank %d: %s\n", rank(), e.what());
      std::fflush(stderr);
      await_failed();
      detail::mpi_abort_at_the_end();
      return 1;
    }
  }

 private:
  MPI_Comm failed_ = MPI_COMM_NULL;                 // of all processes, for those that fail

  /// Until all processes have failed, or half a second has passed.
  void await_failed() const {
    MPI_Request all = MPI_REQUEST_NULL;
    int done = MPI_Ibarrier(failed_, &all) != MPI_SUCCESS;
    for (int i = 0; i < 500 && !done; ++i) {
      if (MPI_Test(&all, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS) return;
      if (!done) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
};

}  // namespace tensorpar::comm
