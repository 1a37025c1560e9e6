// tensorpar/exec/device/lanes.hpp - what of a device's tasks must wait for what when computing and
// communicating run side by side
#pragma once
#include <algorithm>
#include <condition_variable>
#include <iterator>
#include <map>
#include <mutex>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/slice.hpp>
#include <vector>

namespace tensorpar::exec {

/// Bytes [begin, end) of a device's arena.
struct byte_range {
  i64 begin = 0, end = 0;
};
/// One task of a device in program order, and the memory it touches.
struct lane_task {
  int lane = 0;                                        // `passes::lane_of`
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

/// So many lanes take a device's tasks, each in program order. r[k * lanes + l]: how many tasks of lane l,
/// counted from its first, must have ended before task k begins; 0 for its own lane. Then every byte is
/// written and read in an order that gives what the sequence gives: of two tasks in different lanes that
/// touch one byte, at least one of them writing, the later one waits for the earlier. No wait is longer than
/// that. Nothing waits in a circle, for all waits are for earlier tasks. O(lanes * n log n) for n ranges.
inline std::vector<int> lane_waits(std::vector<lane_task> const& tasks, int lanes) {
  std::vector<detail::latest_access> touched(idx(lanes)), written(idx(lanes));
  std::vector<int> count(idx(lanes), 0), r;
  r.reserve(tasks.size() * idx(lanes));
  for (lane_task const& t : tasks) {
    for (int l = 0; l < lanes; ++l) {
      int wait = 0;
      if (l != t.lane) {
        for (byte_range b : t.reads) wait = std::max(wait, written[idx(l)].last(b));
        for (byte_range b : t.writes) wait = std::max(wait, touched[idx(l)].last(b));
      }
      r.push_back(wait);
    }
    int const number = ++count[idx(t.lane)];
    for (byte_range b : t.reads) touched[idx(t.lane)].touch(b, number);
    for (byte_range b : t.writes) {
      touched[idx(t.lane)].touch(b, number);
      written[idx(t.lane)].touch(b, number);
    }
  }
  return r;
}

/// How far the lanes of a device are.
class lane_progress {
  std::mutex m_;
  std::condition_variable moved_;
  std::vector<int> ended_;
  bool stopped_ = false;

 public:
  explicit lane_progress(int lanes) : ended_(idx(lanes), 0) {}
  /// Before a step, when no lane runs.
  void restart() { std::fill(ended_.begin(), ended_.end(), 0); stopped_ = false; }
  /// Waits until every lane has ended as many tasks as `by_lane` says; false if the lanes were stopped.
  /// `own`: the lane that asks.
  bool await(int /*own*/, core::slice<int> by_lane) {
    auto const there = [&] {
      for (std::size_t l = 0; l < ended_.size(); ++l)
        if (ended_[l] < by_lane[static_cast<int>(l)]) return false;
      return true;
    };
    std::unique_lock lock(m_);
    moved_.wait(lock, [&] { return stopped_ || there(); });
    return !stopped_;
  }
  void ended(int own) {
    { std::lock_guard lock(m_); ++ended_[idx(own)]; }
    moved_.notify_all();
  }
  void stop() {
    { std::lock_guard lock(m_); stopped_ = true; }
    moved_.notify_all();
  }
};

}  // namespace tensorpar::exec
