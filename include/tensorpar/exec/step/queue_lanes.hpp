// tensorpar/exec/step/queue_lanes.hpp - the two lanes of a device that works through queues: waits among
// tasks become marks in its queues
#pragma once
#include <deque>
#include <exception>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/thread_pool.hpp>
#include <tensorpar/exec/comm/traffic.hpp>
#include <tensorpar/exec/device/lanes.hpp>
#include <tensorpar/exec/device/memory.hpp>
#include <utility>
#include <vector>

namespace tensorpar::exec {

/// Lane 0 computes, lane 1 communicates, each in a queue of the device; the host asks for tasks in program
/// order and waits for none. Calls are those of lane_progress (exec/device/lanes.hpp), whose waits they take.
/// Only a task that the other lane waits for gets a mark, and no lane waits for a mark that stands before one
/// that it has followed.
template <queued_memory Memory> class queue_lanes {
  struct side {
    Memory queue;
    std::deque<typename Memory::mark> marks;      // of the tasks that are awaited
    std::vector<int> mark_of;                     // by task: its mark, or -1
    int ended = 0, followed = 0;                  // followed: tasks of the other lane
  };
  side lane_[2];

  side& of(int own) { return lane_[own ? 1 : 0]; }

 public:
  queue_lanes(Memory computing, Memory communicating)
      : lane_{{std::move(computing), {}, {}}, {std::move(communicating), {}, {}}} {}

  /// Says before the first step which tasks are awaited: `await(own, n)` will be called.
  void plan(int own, int n) {
    if (n <= 0) return;
    side& other = of(!own);
    auto const k = idx(n - 1);
    if (other.mark_of.size() <= k) other.mark_of.resize(k + 1, -1);
    if (other.mark_of[k] >= 0) return;
    other.mark_of[k] = static_cast<int>(other.marks.size());
    other.marks.push_back(other.queue.make_mark());
  }
  /// Is this task of a lane, counted from 0, awaited by the other?
  bool awaited(int own, int k) {
    auto const& marks = of(own).mark_of;
    return idx(k) < marks.size() && marks[idx(k)] >= 0;
  }
  void restart() { for (side& s : lane_) s.ended = s.followed = 0; }
  /// What `own` is asked for from now on is done after the other lane's first n tasks. Precondition:
  /// plan(own, n), and they were asked for.
  bool await(int own, int n) {
    side &mine = of(own), &other = of(!own);
    if (n <= mine.followed) return true;
    mine.queue.follow(other.marks[idx(other.mark_of[idx(n - 1)])]);
    mine.followed = n;
    return true;
  }
  void ended(int own) {
    side& s = of(own);
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
