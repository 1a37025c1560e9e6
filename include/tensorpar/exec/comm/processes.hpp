// tensorpar/exec/comm/processes.hpp - a run of several processes: which devices are this one's, and host data
// that all must see alike
#pragma once
#include <concepts>
#include <cstddef>
#include <string>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/index.hpp>
#include <vector>

namespace tensorpar::exec {

/// A world whose ranks live in several processes, each of which drives its own.
///
/// Valid expressions (h is a world, p a pointer to bytes, x a pointer to doubles):
///  - `h.local()`                  std::vector<int>: the ranks of this process, ascending, at least one
///  - `h.share(rank, p, bytes)`    the bytes of the process that has `rank` replace everybody's
///  - `h.add_up(x, n)`             x[i] = the sum of all processes' x[i]; exact, as at most one of them is
///    not zero
/// Semantics: every process calls the same operations in the same order; one that some process never joins
/// ends in an exception. Optional: `h.leave(exception, rank, behind)`: this process takes no part from now
/// on, and the others' operations end in that exception. Where `behind`, all processes have begun the same so
/// far: what this one has begun goes on, what others begin later ends in it. Optional: `h.seats()`, a
/// std::vector<int>: of each rank in `local` its place among the process's devices, if not that in `local`.
/// Minimal definition: all three. A world without them keeps all its ranks in one process. Models:
/// comm::mpi_world, comm::nccl_world.
template <class World>
concept spans_processes = requires(World& h, World const& c, int rank, void* p, std::size_t bytes, double* x,
                                   int n) {
  { c.local() } -> std::same_as<std::vector<int>>;
  h.share(rank, p, bytes);
  h.add_up(x, n);
};

namespace detail {

/// The ranks of this process, of `n` in all. Throws `error` if the world joins another number.
template <class World> std::vector<int> local_ranks(World const& h, int n) {
  if constexpr (requires { { h.size() } -> std::same_as<int>; })
    if (h.size() != n)
      throw error("the plan is for " + std::to_string(n) + " devices, but its world joins " +
                      std::to_string(h.size()) + " ranks",
                  "executor", "a world of as many ranks as devices");
  if constexpr (spans_processes<World>) return h.local();
  std::vector<int> all;
  for (int i = 0; i < n; ++i) all.push_back(i);
  return all;
}
/// Of each of those, its place among the process's devices.
template <class World> std::vector<int> seats(World const& h, std::vector<int> const& local) {
  if constexpr (requires { { h.seats() } -> std::same_as<std::vector<int>>; }) return h.seats();
  std::vector<int> places;
  for (int i = 0; i < static_cast<int>(local.size()); ++i) places.push_back(i);
  return places;
}
template <class World> void share(World& h, int rank, void* p, std::size_t bytes) {
  if constexpr (spans_processes<World>) h.share(rank, p, bytes);
}
template <class World> void add_up(World& h, std::vector<double>& x) {
  if constexpr (spans_processes<World>) h.add_up(x.data(), static_cast<int>(x.size()));
}
/// Throws `error` unless `other` is empty: the ranks whose program is another one than rank 0's. They would
/// wait for one another or, worse, go on with other numbers.
inline void require_none_other(std::vector<int> const& other) {
  std::string ranks;
  for (int d : other) ranks += (ranks.empty() ? "" : ", ") + std::to_string(d);
  if (!ranks.empty())
    throw error("other programs than rank 0's on ranks " + ranks, "executor",
                "the same graph, options and plan on every process: one plans, and the others read its plan");
}
/// Throws `error`, on every process, unless all have the same number. `local`: the ranks of this process, of
/// `n`.
template <class World> void require_one_program(World& h, std::vector<int> const& local, int n, u64 program) {
  u64 first = program;
  share(h, 0, &first, sizeof first);
  std::vector<double> other(idx(n), 0);
  for (int d : local) other[idx(d)] = program != first;
  add_up(h, other);
  std::vector<int> ranks;
  for (int d = 0; d < n; ++d) if (other[idx(d)] != 0) ranks.push_back(d);
  require_none_other(ranks);
}

}  // namespace detail
}  // namespace tensorpar::exec
