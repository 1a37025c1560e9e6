// tensorpar/exec/nccl/running.hpp - the operations that a rank's queues have been given and have not ended:
// which one takes too long
#pragma once
#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <tensorpar/exec/device/memory.hpp>
#include <utility>
#include <vector>

namespace tensorpar::comm {

/// One operation, in words.
struct operation_name {
  char const* what = "";
  std::string with;                  // "of group {0,2}", "to rank 3"
  u64 number = 0;                    // of the operations with those, from 1
  int task = -1;                     // of the plan's program, if known
};

namespace detail {

/// Marks before and after every operation say which queue has come how far. An operation's time begins when
/// its own rank has come to it, so long computations before it do not count.
template <exec::queued_memory Memory> class running_operations {
  using clock = std::chrono::steady_clock;
  struct operation {
    operation_name name;
    int queue = 0;
    typename Memory::mark begun, ended;
    std::optional<clock::time_point> since;
  };
  std::deque<operation> running_;
  std::vector<typename Memory::mark> spare_;

  typename Memory::mark take(Memory const& q) {
    if (spare_.empty()) return q.make_mark();
    typename Memory::mark k = std::move(spare_.back());
    spare_.pop_back();
    return k;
  }

 public:
  bool empty() const { return running_.empty(); }
  operation_name const& first() const { return running_.front().name; }
  /// `queue`: a number for q, the same every time.
  void begin(Memory const& q, int queue, operation_name name) {
    running_.push_back({std::move(name), queue, take(q), take(q), {}});
    q.set(running_.back().begun);
  }
  void end(Memory const& q) { q.set(running_.back().ended); }
  /// Forgets what has ended. The first operation that has been going on for longer than the deadline, or
  /// null. O(operations that have ended since + queues).
  operation_name const* overdue(Memory const& q, std::chrono::milliseconds deadline) {
    std::vector<int> stopped;                      // queues whose first operation goes on
    auto const now = clock::now();
    for (auto i = running_.begin(); i != running_.end();) {
      bool known = false;
      for (int s : stopped) known = known || s == i->queue;
      if (known) {
        ++i;
      } else if (q.reached(i->ended)) {
        spare_.push_back(std::move(i->begun));
        spare_.push_back(std::move(i->ended));
        i = running_.erase(i);
      } else {
        if (!i->since && q.reached(i->begun)) i->since = now;
        if (i->since && now - *i->since > deadline) return &i->name;
        stopped.push_back(i->queue);
        ++i;
      }
    }
    return nullptr;
  }
};

}  // namespace detail
}  // namespace tensorpar::comm
