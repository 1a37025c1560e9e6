// tensorpar/program/core/lifetimes.hpp - from when until when buffers are in use
#pragma once
#include <algorithm>
#include <deque>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/program/core/program.hpp>

namespace tensorpar::passes {

/// Every buffer lives from the first task that uses it to the last; one that no task uses, with the first
/// task of all. Persistent ones are left to the caller. O(tasks + buffers).
inline void live_by_use(program& p) {
  for (buffer& b : p.buffers) b.first = -1;
  for (int t = 0; t < static_cast<int>(p.tasks.size()); ++t) {
    auto const used = [&](int b) {
      if (b < 0) return;
      buffer& x = p.buffers[idx(b)];
      if (x.first < 0) x.first = t;
      x.last = t;
    };
    for (int b : p.tasks[idx(t)].in) used(b);
    for (int b : p.tasks[idx(t)].out) used(b);
    used(p.tasks[idx(t)].workspace);
  }
  for (buffer& b : p.buffers) if (b.first < 0) b.first = b.last = 0;
}

/// What is sent, and the space to pack it in, is kept until a sender computes with something that was
/// communicated later, or to the end. Whoever took over its bytes before would wait for the send, and so
/// would all that the device computes after it. Precondition: lifetimes are set, no offsets yet.
/// O(tasks * devices log).
inline void keep_until_sent(program& p) {
  std::map<int, std::deque<int>> open;                           // by device: sends, ascending
  std::vector<int> maker(p.buffers.size(), -1);
  auto const keep = [&](int send, int until) {
    task const& s = p.tasks[idx(send)];
    for (int b : {s.in[0], s.workspace})
      if (b >= 0) p.buffers[idx(b)].last = std::max(p.buffers[idx(b)].last, until);
  };
  for (int t = 0; t < static_cast<int>(p.tasks.size()); ++t) {
    task const& x = p.tasks[idx(t)];
    int arrived = -1;                                            // the last that it waits for
    if (x.kind == task_kind::compute)
      for (int b : x.in)
        if (int const m = maker[idx(b)]; m >= 0 && p.tasks[idx(m)].kind != task_kind::compute)
          arrived = std::max(arrived, m);
    for (int d : x.devices) {
      std::deque<int>& sends = open[d];
      for (; !sends.empty() && sends.front() < arrived; sends.pop_front()) keep(sends.front(), t);
      if (x.kind == task_kind::send) sends.push_back(t);
    }
    for (int b : x.out) maker[idx(b)] = t;
  }
  for (auto const& [d, sends] : open)
    for (int s : sends) keep(s, static_cast<int>(p.tasks.size()) - 1);
}

}  // namespace tensorpar::passes
