// tensorpar/simulate/task_graph.hpp - the core of every simulation: tasks with costs, dependencies and lanes
// that run one task at a time
#pragma once
#include <cassert>
#include <cstddef>
#include <queue>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/index.hpp>
#include <utility>
#include <vector>

namespace tensorpar::simulation {

/// Work that takes `seconds`, starts when all of `after` (earlier tasks) are done and holds all of its lanes
/// while it runs.
struct timed_task {
  double seconds = 0;
  std::vector<int> after;
  std::vector<int> lanes;
};
struct task_times {
  double start = 0, end = 0;
  friend bool operator==(task_times const&, task_times const&) = default;
};

/// Lanes that serve their tasks in the order in which they are placed (a stream, a channel, a worker bound to
/// a device).
class lane_clock {
  std::vector<double> free_;

 public:
  explicit lane_clock(std::size_t lanes) : free_(lanes, 0) {}
  double free_at(std::size_t lane) const { return free_[lane]; }
  /// Marks the lane busy until `end`. Precondition: the task placed on it started no earlier than
  /// free_at(lane).
  void hold(std::size_t lane, double end) { free_[lane] = end; }
};

/// Every lane serves its tasks in index order, as streams do; a task without lanes starts as soon as its
/// dependencies allow. Since a task waits for earlier ones only, one pass in index order meets every event in
/// its order. O(tasks + dependencies + lanes).
inline std::vector<task_times> run_on_lanes(std::vector<timed_task> const& all, int lanes) {
  lane_clock clock(idx(lanes));
  std::vector<task_times> r(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    double start = 0;
    auto wait = [&](double t) { start = t > start ? t : start; };
    for (int p : all[i].after) {
      assert(p >= 0 && idx(p) < i);
      wait(r[idx(p)].end);
    }
    for (int l : all[i].lanes) wait(clock.free_at(idx(l)));
    r[i] = {start, start + all[i].seconds};
    for (int l : all[i].lanes) clock.hold(idx(l), r[i].end);
  }
  return r;
}

/// `workers` equal workers take whatever is ready, the lowest index first (Graham 1969, list scheduling);
/// lanes are ignored. Event-driven: time jumps from one completion to the next. O(tasks log tasks +
/// dependencies).
/// Law: at most (2 - 1/workers) times as long as the best schedule.
inline std::vector<task_times> run_on_workers(std::vector<timed_task> const& all, int workers) {
  assert(workers > 0);
  std::vector<task_times> r(all.size());
  std::vector<std::vector<int>> users(all.size());
  std::vector<std::size_t> missing(all.size());
  using event = std::pair<double, int>;                          // (end, task)
  auto const later = [](auto const& a, auto const& b) { return b < a; };
  std::priority_queue<event, std::vector<event>, decltype(later)> running(later);
  std::priority_queue<int, std::vector<int>, decltype(later)> ready(later);
  for (std::size_t i = 0; i < all.size(); ++i) {
    missing[i] = all[i].after.size();
    for (int p : all[i].after) users[idx(p)].push_back(static_cast<int>(i));
    if (missing[i] == 0) ready.push(static_cast<int>(i));
  }
  double now = 0;
  while (!ready.empty() || !running.empty()) {
    for (; !ready.empty() && static_cast<int>(running.size()) < workers; ready.pop()) {
      std::size_t const i = idx(ready.top());
      r[i] = {now, now + all[i].seconds};
      running.push({r[i].end, ready.top()});
    }
    now = running.top().first;
    for (; !running.empty() && running.top().first == now; running.pop())
      for (int u : users[idx(running.top().second)])
        if (--missing[idx(u)] == 0) ready.push(u);
  }
  return r;
}

inline double finish(std::vector<task_times> const& r) {
  double t = 0;
  for (task_times const& x : r) t = x.end > t ? x.end : t;
  return t;
}
/// The longest chain of dependencies: no number of workers is faster. O(tasks + dependencies).
inline double critical_path(std::vector<timed_task> const& all) {
  std::vector<double> end(all.size(), 0);
  double longest = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (int p : all[i].after)
      end[i] = end[idx(p)] > end[i] ? end[idx(p)] : end[i];
    end[i] += all[i].seconds;
    longest = end[i] > longest ? end[i] : longest;
  }
  return longest;
}

}  // namespace tensorpar::simulation
