// tensorpar/exec/step/task_times.hpp - when a worker's tasks began and ended: by the host's clock, or by that
// of a device of queues
#pragma once
#include <algorithm>
#include <chrono>
#include <deque>
#include <tensorpar/exec/device/memory.hpp>
#include <tensorpar/program/core/timeline.hpp>
#include <utility>
#include <vector>

namespace tensorpar::exec::detail {

/// By the host's clock; every task is waited for, so what is measured is not disturbed by others, and nothing
/// overlaps within a worker.
template <class Memory, bool ByDevice> class task_times {
  using clock = std::chrono::steady_clock;
  clock::time_point origin_, begun_;
  std::vector<span> spans_;

  double since(clock::time_point t) const { return std::chrono::duration<double>(t - origin_).count(); }

 public:
  task_times(Memory const&, clock::time_point origin) : origin_(origin) {}
  void begin(Memory const&) { begun_ = clock::now(); }
  template <class Wait> void end(Memory const&, span s, Wait const& wait) {
    wait();
    s.start = since(begun_);
    s.end = since(clock::now());
    spans_.push_back(std::move(s));
  }
  std::vector<span> spans() { return std::move(spans_); }
};

/// By marks in the queues: no task is waited for, and the step goes as it does unrecorded. Time 0 is a mark
/// that is reached before the first task is asked for.
template <class Memory> class task_times<Memory, true> {
  using mark = typename Memory::mark;
  struct timed {
    mark begun, ended;
    span what;
  };
  Memory const& first_;
  mark origin_;
  std::deque<timed> tasks_;

 public:
  task_times(Memory const& m, std::chrono::steady_clock::time_point)
      : first_(m), origin_(m.make_timed_mark()) {
    m.set(origin_);
    m.wait();
  }
  void begin(Memory const& q) {
    tasks_.push_back({q.make_timed_mark(), q.make_timed_mark(), {}});
    q.set(tasks_.back().begun);
  }
  template <class Wait> void end(Memory const& q, span s, Wait const&) {
    q.set(tasks_.back().ended);
    tasks_.back().what = std::move(s);
  }
  /// Precondition: all is done.
  std::vector<span> spans() {
    std::vector<span> r;
    for (timed& t : tasks_) {
      t.what.start = first_.seconds(origin_, t.begun);
      t.what.end = first_.seconds(origin_, t.ended);
      r.push_back(std::move(t.what));
    }
    return r;
  }
};

/// All workers' spans, in a timeline's order.
inline timeline timeline_of(std::vector<std::vector<span>> workers) {
  timeline r;
  for (auto& w : workers)
    for (span& s : w) {
      r.seconds = std::max(r.seconds, s.end);
      r.spans.push_back(std::move(s));
    }
  std::stable_sort(r.spans.begin(), r.spans.end(), [](span const& a, span const& b) {
    return a.device != b.device ? a.device < b.device
           : a.where != b.where ? a.where < b.where
           : a.link != b.link   ? a.link < b.link
                                : a.start < b.start;
  });
  return r;
}

}  // namespace tensorpar::exec::detail
