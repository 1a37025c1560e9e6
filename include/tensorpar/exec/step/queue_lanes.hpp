// tensorpar/exec/step/queue_lanes.hpp - the lanes of a device that works through queues: waits among
// tasks become marks in its queues
#pragma once
#include <algorithm>
#include <deque>
#include <exception>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/slice.hpp>
#include <tensorpar/core/thread_pool.hpp>
#include <tensorpar/exec/comm/traffic.hpp>
#include <tensorpar/exec/device/lanes.hpp>
#include <tensorpar/exec/device/memory.hpp>
#include <utility>
#include <vector>

namespace tensorpar::exec {

/// Lane 0 computes, the others communicate, each in a queue of the device. The host asks for tasks in program
/// order and waits for none. Calls are those of lane_progress (exec/device/lanes.hpp), whose waits they take.
/// Only a task that another lane waits for gets a mark, and no lane waits for a mark that stands before one
/// that it has followed.
template <queued_memory Memory> class queue_lanes {
  struct side {
    Memory queue;
    std::deque<typename Memory::mark> marks;      // of the tasks that are awaited
    std::vector<int> mark_of;                     // by task: its mark, or -1
    std::vector<int> followed;                    // by lane: so many of its tasks
    int ended = 0;
  };
  std::deque<side> lane_;

 public:
  /// The queues by lane.
  explicit queue_lanes(std::vector<Memory> const& queues) {
    for (Memory const& q : queues) lane_.push_back({q, {}, {}, std::vector<int>(queues.size(), 0), 0});
  }

  /// Says before the first step which tasks are awaited: `await` of these numbers will be called.
  void plan(core::slice<int> by_lane) {
    for (std::size_t l = 0; l < lane_.size(); ++l) {
      int const n = by_lane[static_cast<int>(l)];
      if (n <= 0) continue;
      side& other = lane_[l];
      auto const k = idx(n - 1);
      if (other.mark_of.size() <= k) other.mark_of.resize(k + 1, -1);
      if (other.mark_of[k] >= 0) continue;
      other.mark_of[k] = static_cast<int>(other.marks.size());
      other.marks.push_back(other.queue.make_mark());
    }
  }
  /// Is this task of a lane, counted from 0, awaited by another?
  bool awaited(int own, int k) const {
    auto const& marks = lane_[idx(own)].mark_of;
    return idx(k) < marks.size() && marks[idx(k)] >= 0;
  }
  void restart() {
    for (side& s : lane_) {
      s.ended = 0;
      std::fill(s.followed.begin(), s.followed.end(), 0);
    }
  }
  /// What `own` is asked for from now on is done after so many tasks of every lane. Precondition:
  /// plan(by_lane), and they were asked for.
  bool await(int own, core::slice<int> by_lane) {
    side& mine = lane_[idx(own)];
    for (std::size_t l = 0; l < lane_.size(); ++l) {
      int const n = by_lane[static_cast<int>(l)];
      if (n <= mine.followed[l]) continue;
      mine.queue.follow(lane_[l].marks[idx(lane_[l].mark_of[idx(n - 1)])]);
      mine.followed[l] = n;
    }
    return true;
  }
  void ended(int own) {
    side& s = lane_[idx(own)];
    auto const k = idx(s.ended++);
    if (k < s.mark_of.size() && s.mark_of[k] >= 0)
      s.queue.set(s.marks[idx(s.mark_of[k])]);
  }
  void stop() {}
};

namespace detail {
/// How an executor's devices keep their lanes in order.
template <bool Queued, class Memory> struct lanes_of { using type = lane_progress; };
template <class Memory> struct lanes_of<true, Memory> { using type = queue_lanes<Memory>; };

/// In which of a device's queues its lane number l > 0 communicates.
template <class Comm> auto const& lane_queue(Comm const& end, int l) {
  if constexpr (requires { end.queue(l - 1); }) return end.queue(l - 1);
  else return end.queue();
}

/// The endpoints of all processes find each other, those of this one all at once. Throws what one of them
/// throws.
template <class World, class Ends>
void connect(World& world, Ends& ends, std::vector<int> const& local, traffic const& all,
             core::thread_pool& workers) {
  auto one = [&](int worker) {
    int const d = local[idx(worker)];
    try {
      ends[idx(d)]->prepare(all);
    } catch (...) {
      world.fail(std::current_exception(), d);
    }
  };
  workers.run_each(one);
  if (world.failed()) std::rethrow_exception(world.failure());
}
}  // namespace detail

}  // namespace tensorpar::exec
