// tensorpar/exec/nccl/survivors.hpp - what is left of an NCCL run that has failed: old worlds of ranks that
// are not lost, to go on from
#pragma once
#include <algorithm>
#include <chrono>
#include <string>
#include <tensorpar/core/error.hpp>
#include <thread>
#include <utility>
#include <vector>

namespace tensorpar::comm {

namespace detail {

/// Between two questions whether something is done.
inline void pause(unsigned turn) {
  if (turn < 1000) std::this_thread::yield();
  else std::this_thread::sleep_for(std::chrono::microseconds(50));
}
/// Ends a communicator that is becoming ready for that (it was finalized, or revoked); by force if it is not
/// ready in time.
template <class Library>
void end_ready(typename Library::comm c, std::chrono::steady_clock::time_point last) {
  typename Library::status s = Library::in_progress;
  for (unsigned turn = 0; s == Library::in_progress; pause(turn++))
    if (Library::state(c, s) != Library::ok || std::chrono::steady_clock::now() > last) break;
  if (s == Library::ok) Library::destroy(c);
  else Library::abort(c);
}

/// The ranks among n that are not lost, ascending. Throws `error` for a lost rank that there is not, and
/// where nobody is left.
inline std::vector<int> left_of(int n, std::vector<int> const& lost) {
  for (int r : lost)
    if (r < 0 || r >= n)
      throw error("rank " + std::to_string(r) + " is said to be lost", "comm::nccl",
                  "ranks 0 to " + std::to_string(n - 1));
  std::vector<int> left;
  for (int r = 0; r < n; ++r) if (std::find(lost.begin(), lost.end(), r) == lost.end()) left.push_back(r);
  if (left.empty())
    throw error("all " + std::to_string(n) + " ranks are said to be lost", "comm::nccl",
                "at least one that is left");
  return left;
}

}  // namespace detail

/// Made by `nccl_world::survivors`; one world is made from it, or what it holds is ended. Who is left is
/// numbered anew, in the old order.
template <class Library> class nccl_survivors {
 public:
  using handle = typename Library::comm;
  /// A rank of this process.
  struct member {
    int rank = 0;                      // from now on
    int seat = 0;                      // its place among the devices that this process began with
    handle everyone{};                    // the old one; taken: none
  };

  nccl_survivors(int ranks, std::vector<int> lost, std::vector<member> here,
                 std::chrono::milliseconds deadline)
      : size_(ranks), lost_(std::move(lost)), here_(std::move(here)), deadline_(deadline) {}
  nccl_survivors(nccl_survivors&& x) noexcept
      : size_(x.size_),
        lost_(std::move(x.lost_)),
        here_(std::exchange(x.here_, {})),
        deadline_(x.deadline_) {}
  nccl_survivors& operator=(nccl_survivors&&) = delete;
  ~nccl_survivors() {
    auto const last = std::chrono::steady_clock::now() + deadline_;
    for (member const& m : here_) if (m.everyone != handle{}) detail::end_ready<Library>(m.everyone, last);
  }

  /// How many are left, of all processes.
  int size() const { return size_; }
  /// Their old numbers, ascending.
  std::vector<int> const& lost() const { return lost_; }
  std::vector<member> const& here() const { return here_; }
  std::chrono::milliseconds deadline() const { return deadline_; }
  /// The old world of a rank, which is the caller's to end; none if it is not here or has been taken.
  handle take(int rank) {
    for (member& m : here_) if (m.rank == rank) return std::exchange(m.everyone, handle{});
    return {};
  }

 private:
  int size_;
  std::vector<int> lost_;
  std::vector<member> here_;
  std::chrono::milliseconds deadline_;
};

}  // namespace tensorpar::comm
