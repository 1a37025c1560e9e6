// tensorpar/report/exposed_communication.hpp - how long a step communicates and does nothing else
#pragma once
#include <algorithm>
#include <map>
#include <tensorpar/report/tasks.hpp>
#include <utility>
#include <vector>

namespace tensorpar::report {

/// Of one device in one step, in seconds: how long it is busy, communicates, and communicates without
/// computing. Spans that overlap count once.
struct communication_time {
  int device = -1;
  double busy = 0, communicating = 0, exposed = 0;
  friend bool operator==(communication_time const&, communication_time const&) = default;
};

namespace detail {

using intervals = std::vector<std::pair<double, double>>;  // start, end

/// Sorted, and those that touch joined.
inline intervals joined_intervals(intervals all) {
  std::sort(all.begin(), all.end());
  intervals r;
  for (auto const& [from, to] : all) {
    if (to <= from) continue;
    if (!r.empty() && from <= r.back().second)
      r.back().second = std::max(r.back().second, to);
    else
      r.push_back({from, to});
  }
  return r;
}
inline double length_of(intervals const& all) {
  double sum = 0;
  for (auto const& [from, to] : all) sum += to - from;
  return sum;
}

}  // namespace detail

/// By device that has spans, ascending. O(spans log).
inline std::vector<communication_time> communication_times(program const& q, timeline const& t) {
  struct both {
    detail::intervals all, compute, talk;
  };
  std::map<int, both> of;
  for (span const& s : t.spans) {
    both& x = of[s.device];
    x.all.push_back({s.start, s.end});
    (communicates(q, s) ? x.talk : x.compute).push_back({s.start, s.end});
  }
  std::vector<communication_time> r;
  for (auto& [device, x] : of) {
    double const busy = detail::length_of(detail::joined_intervals(std::move(x.all))),
                 compute = detail::length_of(detail::joined_intervals(std::move(x.compute))),
                 talk = detail::length_of(detail::joined_intervals(std::move(x.talk)));
    r.push_back({device, busy, talk, std::max(0.0, busy - compute)});
  }
  return r;
}

/// Of the device that is busy longest, the first of several; device -1 for a timeline without spans.
/// O(spans log).
inline communication_time exposed_communication(program const& q, timeline const& t) {
  communication_time r;
  for (communication_time const& x : communication_times(q, t))
    if (r.device < 0 || x.busy > r.busy) r = x;
  return r;
}

}  // namespace tensorpar::report
