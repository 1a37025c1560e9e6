// tests/support/peaks.hpp - how much of a program's memory lives at once, beside which arenas are measured
#pragma once
#include <algorithm>
#include <tensorpar/program/arena.hpp>

namespace tensorpar {

/// What is live on device `dev` while task t runs (buffers of workspaces included, alignment not). One entry
/// per task of the program. O(buffers log devices + tasks).
inline std::vector<i64> memory_over_tasks(program const& p, int dev) {
  std::vector<i64> live(p.tasks.size() + 1, 0);
  for (buffer const& b : p.buffers) {
    if (!std::binary_search(b.devices.begin(), b.devices.end(), dev)) continue;
    std::size_t const last = p.tasks.size();
    // its first task counts the one before
    std::size_t const first = static_cast<std::size_t>(b.first) + (b.in_place_of >= 0);
    live[b.persistent ? 0 : std::min(first, last)] += b.bytes;
    if (!b.persistent && static_cast<std::size_t>(b.last) + 1 < last)
      live[static_cast<std::size_t>(b.last) + 1] -= b.bytes;
  }
  for (std::size_t t = 1; t < live.size(); ++t) live[t] += live[t - 1];
  if (!p.tasks.empty()) live.pop_back();
  return live;
}

/// The most that is live at once on each of devices 0 .. devices-1. Law: at most the arena that the same
/// lifetimes were packed into.
inline std::vector<i64> peak_memory(program const& p, int devices) {
  std::vector<i64> r;
  for (int d = 0; d < devices; ++d) {
    auto const live = memory_over_tasks(p, d);
    r.push_back(*std::max_element(live.begin(), live.end()));
  }
  return r;
}

/// The bytes that device `dev` needs at least: persistent buffers and the most that lives beside them. The
/// arena is never smaller.
inline i64 arena_bound(program const& p, int dev) {
  i64 base = 0;
  std::vector<passes::lifetime> lives;
  for (buffer const& x : p.buffers) {
    if (!std::binary_search(x.devices.begin(), x.devices.end(), dev)) continue;
    if (x.persistent) base = core::saturating_add(base, passes::aligned(x.bytes));
    // its first task still counts the one before
    else lives.push_back({x.bytes, x.first + (x.in_place_of >= 0), x.last});
  }
  return core::saturating_add(base, passes::max_live(lives));
}

}  // namespace tensorpar
