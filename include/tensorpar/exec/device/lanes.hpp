// tensorpar/exec/device/lanes.hpp - what of a device's tasks must wait for what when computing and
// communicating run side by side
#pragma once
#include <condition_variable>
#include <iterator>
#include <map>
#include <mutex>
#include <tensorpar/core/config.hpp>
#include <vector>

namespace tensorpar::exec {

/// Bytes [begin, end) of a device's arena.
struct byte_range {
  i64 begin = 0, end = 0;
};
/// One task of a device in program order, and the memory it touches.
struct lane_task {
  bool communicates = false;
  std::vector<byte_range> reads, writes;
};

namespace detail {

/// The last task that touched each byte, as a number from 1; 0: none.
class latest_access {
  std::map<i64, int> from_;                            // of all bytes from here to the next key

  void cut(i64 at) {
    auto const next = from_.upper_bound(at);
    if (next == from_.begin()) { from_.emplace(at, 0); return; }
    from_.emplace_hint(next, at, std::prev(next)->second);
  }

 public:
  /// `number` grows from call to call. Amortised O(log touched ranges).
  void touch(byte_range r, int number) {
    if (r.begin >= r.end) return;
    cut(r.begin);
    cut(r.end);
    auto const i = from_.find(r.begin);
    i->second = number;
    from_.erase(std::next(i), from_.find(r.end));
  }
  int last(byte_range r) const {
    int most = 0;
    auto i = from_.upper_bound(r.begin);
    if (i != from_.begin()) --i;
    for (; i != from_.end() && i->first < r.end; ++i)
      if (std::next(i) == from_.end() || std::next(i)->first > r.begin)
        most = i->second > most ? i->second : most;
    return r.begin < r.end ? most : 0;
  }
};

}  // namespace detail

/// Two lanes take a device's tasks, those that communicate and the others, each in program order. r[k]: how
/// many tasks of the other lane, counted from its first, must have ended before task k begins. Then every
/// byte is written and read in an order that gives what the sequence gives: of two tasks in different lanes
/// that touch one byte, at least one of them writing, the later one waits for the earlier. No wait is longer
/// than that. Nothing waits in a circle, for all waits are for earlier tasks. O(n log n) for n ranges.
inline std::vector<int> lane_waits(std::vector<lane_task> const& tasks) {
  detail::latest_access touched[2], written[2];        // by lane
  int count[2]{};
  std::vector<int> r;
  for (lane_task const& t : tasks) {
    int const own = t.communicates, other = !own;
    int wait = 0;
    auto need = [&](int n) { wait = n > wait ? n : wait; };
    for (byte_range b : t.reads) need(written[other].last(b));
    for (byte_range b : t.writes) need(touched[other].last(b));
    r.push_back(wait);
    ++count[own];
    for (byte_range b : t.reads) touched[own].touch(b, count[own]);
    for (byte_range b : t.writes) { touched[own].touch(b, count[own]); written[own].touch(b, count[own]); }
  }
  return r;
}

/// How far the two lanes of a device are.
class lane_progress {
  std::mutex m_;
  std::condition_variable moved_;
  int ended_[2]{};
  bool stopped_ = false;

 public:
  /// Before a step, when no lane runs.
  void restart() { ended_[0] = ended_[1] = 0; stopped_ = false; }
  /// Waits until the other lane than `own` has ended n tasks; false if the lanes were stopped.
  bool await(int own, int n) {
    std::unique_lock lock(m_);
    moved_.wait(lock, [&] { return stopped_ || ended_[!own] >= n; });
    return !stopped_;
  }
  void ended(int own) {
    { std::lock_guard lock(m_); ++ended_[own]; }
    moved_.notify_all();
  }
  void stop() {
    { std::lock_guard lock(m_); stopped_ = true; }
    moved_.notify_all();
  }
};

}  // namespace tensorpar::exec
