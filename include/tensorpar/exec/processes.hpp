// tensorpar/exec/processes.hpp - a run of several processes: which devices are this one's, and host data that all must see alike
#pragma once
#include <concepts>
#include <cstddef>
#include <tensorpar/core/config.hpp>
#include <vector>

namespace tensorpar {

/// A hub whose ranks live in several processes, each of which drives its own.
///
/// Valid expressions (h is a hub, p a pointer to bytes, x a pointer to doubles):
///  - `h.local()`                  std::vector<int>: the ranks of this process, ascending, at least one
///  - `h.share(rank, p, bytes)`    the bytes of the process that has `rank` replace everybody's
///  - `h.add_up(x, n)`             x[i] = the sum of all processes' x[i]; exact, as at most one of them is not zero
/// Semantics: every process calls the same operations in the same order; one that some process never joins ends in an exception.
/// Minimal definition: all three. A hub without them keeps all its ranks in one process. Models: comm::mpi_hub.
template <class Hub>
concept spans_processes = requires(Hub& h, Hub const& c, int rank, void* p, std::size_t bytes, double* x, int n) {
  { c.local() } -> std::same_as<std::vector<int>>;
  h.share(rank, p, bytes);
  h.add_up(x, n);
};

namespace detail {

/// The ranks of this process, of `n` in all.
template <class Hub> std::vector<int> local_ranks(Hub const& h, int n) {
  if constexpr (spans_processes<Hub>) return h.local();
  std::vector<int> all;
  for (int i = 0; i < n; ++i) all.push_back(i);
  return all;
}
template <class Hub> void share(Hub& h, int rank, void* p, std::size_t bytes) {
  if constexpr (spans_processes<Hub>) h.share(rank, p, bytes);
}
template <class Hub> void add_up(Hub& h, std::vector<double>& x) {
  if constexpr (spans_processes<Hub>) h.add_up(x.data(), static_cast<int>(x.size()));
}

}  // namespace detail
}  // namespace tensorpar
