// tensorpar/program/arena.hpp - fixed offsets for a program's buffers: what was planned is what a device
// allocates, to the byte
#pragma once
#include <algorithm>
#include <cassert>
#include <map>
#include <string>
#include <tensorpar/core/checked.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/program/core/program.hpp>
#include <utility>

namespace tensorpar::passes {

/// Every buffer starts at a multiple of this (a cache line, and what vector units and GPUs like).
inline constexpr i64 arena_alignment = 64;
constexpr i64 aligned(i64 bytes) {
  return core::saturating_add(bytes, arena_alignment - 1) / arena_alignment * arena_alignment;
}

namespace detail {
/// Beyond that, sums of offsets could wrap around.
inline void require_bytes(i64 together) {
  if (together > core::max_device_bytes)
    throw error("buffers of more than 2^62 bytes on one device", "plan: memory",
                "smaller tensors, or more devices");
}
}  // namespace detail

/// Bytes that are needed from task `first` to task `last`, inclusive.
struct lifetime {
  i64 bytes = 0;
  int first = 0, last = 0;
  friend bool operator==(lifetime const&, lifetime const&) = default;
};
struct packing {
  std::vector<i64> offset;
  i64 bytes = 0;               // end of the highest one
};

/// The most bytes that live at once: no packing needs less. Throws `error` where all together are more than
/// 2^62. O(n log n).
inline i64 max_live(std::vector<lifetime> const& all) {
  i64 together = 0;
  for (lifetime const& x : all) together = core::saturating_add(together, aligned(x.bytes));
  detail::require_bytes(together);
  std::vector<std::pair<int, i64>> events;
  for (lifetime const& x : all) {
    events.push_back({x.first, aligned(x.bytes)});
    events.push_back({x.last + 1, -aligned(x.bytes)});
  }
  std::sort(events.begin(), events.end());               // at one time, ends stand before starts
  i64 now = 0, most = 0;
  for (auto const& [time, change] : events) most = std::max(most, now += change);
  return most;
}

namespace detail {

/// Long lives first, each on top of all that is there in its time: exact where lives nest, as they do in a
/// forward and backward pass. A segment tree holds the skyline. O(n log n).
inline packing pack_nested(std::vector<lifetime> const& all) {
  std::vector<int> times;
  for (lifetime const& x : all) { times.push_back(x.first); times.push_back(x.last + 1); }
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  auto at = [&](int t) {
    return idx(std::lower_bound(times.begin(), times.end(), t) - times.begin());
  };
  std::size_t width = 1;
  while (width < times.size()) width *= 2;
  // highest point inside a node; a level that covers all of it. Heights only grow, so a covering level needs
  // no pushing down: nodes around both ends of an interval hold all that reaches into it from outside
  std::vector<i64> top(2 * width, 0), floor(2 * width, 0);
  auto const around = [&](std::size_t a, std::size_t b, auto const& f) {
    for (std::size_t l = a + width, r = b - 1 + width; l; l /= 2, r /= 2) { f(l); f(r); }
  };
  auto const inside = [&](std::size_t a, std::size_t b, auto const& f) {
    for (std::size_t l = a + width, r = b + width; l < r; l /= 2, r /= 2) {
      if (l % 2) f(l++);
      if (r % 2) f(--r);
    }
  };
  auto const highest = [&](std::size_t a, std::size_t b) {
    i64 h = 0;
    inside(a, b, [&](std::size_t node) { h = std::max(h, top[node]); });
    around(a, b, [&](std::size_t node) { h = std::max(h, floor[node]); });
    return h;
  };
  auto const raise = [&](std::size_t a, std::size_t b, i64 level) {
    inside(a, b, [&](std::size_t node) {
      floor[node] = std::max(floor[node], level);
      top[node] = std::max(top[node], level);
    });
    around(a, b, [&](std::size_t node) { top[node] = std::max(top[node], level); });
  };
  std::vector<std::size_t> order(all.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    int const a = all[i].last - all[i].first, b = all[j].last - all[j].first;
    return a != b ? a > b : all[i].bytes != all[j].bytes ? all[i].bytes > all[j].bytes : i < j;
  });
  packing r{std::vector<i64>(all.size(), 0), 0};
  for (std::size_t i : order) {
    if (all[i].bytes == 0) continue;
    std::size_t const a = at(all[i].first), b = at(all[i].last + 1);
    r.offset[i] = highest(a, b);
    i64 const end = r.offset[i] + aligned(all[i].bytes);
    raise(a, b, end);
    r.bytes = std::max(r.bytes, end);
  }
  return r;
}

/// In order of time, each in the smallest hole that takes it: what an allocator would do while running. O(n
/// (log n + holes)). Ends, with `bytes` not below that, where it takes no less than `below`.
inline packing pack_in_time(std::vector<lifetime> const& all, bool backwards, i64 below) {
  auto start = [&](std::size_t i) { return backwards ? -all[i].last : all[i].first; };
  auto end = [&](std::size_t i) { return backwards ? -all[i].first : all[i].last; };
  std::vector<std::size_t> order, leaving;
  for (std::size_t i = 0; i < all.size(); ++i) if (all[i].bytes) order.push_back(i);
  leaving = order;
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    if (start(i) != start(j)) return start(i) < start(j);
    if (end(i) != end(j)) return end(i) > end(j);
    return all[i].bytes != all[j].bytes ? all[i].bytes > all[j].bytes : i < j;
  });
  std::sort(leaving.begin(), leaving.end(),
            [&](std::size_t i, std::size_t j) { return end(i) != end(j) ? end(i) < end(j) : i < j; });
  packing r{std::vector<i64>(all.size(), 0), 0};
  struct hole { i64 at, bytes; };
  std::vector<hole> holes;                               // ascending
  i64 top = 0;
  auto add = [&](i64 at, i64 bytes) {
    auto next = std::lower_bound(holes.begin(), holes.end(), at,
                                 [](hole const& h, i64 x) { return h.at < x; });
    bool const before = next != holes.begin() && next[-1].at + next[-1].bytes == at,
               after = next != holes.end() && at + bytes == next->at;
    if (after) bytes += next->bytes;
    if (before) {
      at = (--next)->at;
      bytes += next->bytes;
    }
    if (at + bytes == top) {                             // nothing is above
      top = at;
      holes.erase(next, holes.end());
    } else if (before || after) {
      *next = {at, bytes};
      if (before && after) holes.erase(next + 1);
    } else holes.insert(next, {at, bytes});
  };
  std::size_t left = 0;
  for (std::size_t i : order) {
    for (; left < leaving.size() && end(leaving[left]) < start(i); ++left)
      add(r.offset[leaving[left]], aligned(all[leaving[left]].bytes));
    i64 const bytes = aligned(all[i].bytes);
    auto best = holes.end();
    for (auto h = holes.begin(); h != holes.end(); ++h)
      if (h->bytes >= bytes && (best == holes.end() || h->bytes < best->bytes)) best = h;
    if (best != holes.end()) {
      r.offset[i] = best->at;
      if (best->bytes > bytes) *best = {best->at + bytes, best->bytes - bytes};
      else holes.erase(best);
    } else {
      r.offset[i] = top;
      top += bytes;
      r.bytes = std::max(r.bytes, top);
      if (r.bytes >= below) return r;
    }
  }
  return r;
}

/// Large ones first, each in the smallest hole between those already placed that share its time. Ends as
/// `pack_in_time` does. O(n^2).
inline packing pack_by_size(std::vector<lifetime> const& all, i64 below) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < all.size(); ++i) if (all[i].bytes) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) {
    if (all[i].bytes != all[j].bytes) return all[i].bytes > all[j].bytes;
    int const a = all[i].last - all[i].first, b = all[j].last - all[j].first;
    return a != b ? a > b : i < j;
  });
  packing r{std::vector<i64>(all.size(), 0), 0};
  struct place { i64 at, end; };
  struct span { int first, last; };
  std::vector<place> down;                               // ascending offset
  std::vector<span> lives;                               // of each of `down`
  std::vector<std::size_t> met(order.size());            // which of `down` share the time of one, ascending
  for (std::size_t i : order) {
    span const life{all[i].first, all[i].last};
    std::size_t meets = 0;
    for (std::size_t k = 0; k < lives.size(); ++k) {     // branchless: no order to predict
      met[meets] = k;
      meets += std::size_t{life.first <= lives[k].last} & std::size_t{lives[k].first <= life.last};
    }
    i64 const bytes = aligned(all[i].bytes);
    i64 reached = 0, best = -1, room = 0;
    for (std::size_t m = 0; m < meets; ++m) {
      place const p = down[met[m]];
      if (p.at - reached >= bytes && (best < 0 || p.at - reached < room)) {
        best = reached;
        room = p.at - reached;
      }
      reached = std::max(reached, p.end);
    }
    r.offset[i] = best < 0 ? reached : best;
    r.bytes = std::max(r.bytes, r.offset[i] + bytes);
    if (r.bytes >= below) return r;
    place const mine{r.offset[i], r.offset[i] + bytes};
    auto const where = std::lower_bound(down.begin(), down.end(), mine,
                                        [](place const& x, place const& y) { return x.at < y.at; });
    lives.insert(lives.begin() + (where - down.begin()), life);
    down.insert(where, mine);
  }
  return r;
}

inline constexpr std::size_t pack_by_size_limit = 3000;

}  // namespace detail

/// Offsets such that what lives at the same time does not overlap; small, not always the smallest (the
/// problem is NP-hard). Takes the best of four orders and stops at the first that meets the lower bound
/// `max_live`. Deterministic. O(n (log n + holes at once)), and O(n^2) for up to 3,000 lives. Laws: multiples
/// of 64; disjoint; bytes >= max_live(all).
inline packing pack(std::vector<lifetime> const& all) {
  i64 const bound = max_live(all);
  packing best = detail::pack_nested(all);
  auto keep = [&](packing p) { if (p.bytes < best.bytes) best = std::move(p); };
  if (best.bytes > bound) keep(detail::pack_in_time(all, false, best.bytes));
  if (best.bytes > bound) keep(detail::pack_in_time(all, true, best.bytes));
  if (best.bytes > bound && all.size() <= detail::pack_by_size_limit)
    keep(detail::pack_by_size(all, best.bytes));
  return best;
}

/// Fills every buffer's `offset` and the program's `arena` for devices 0 .. devices-1. Persistent buffers lie
/// at the bottom, in order. Devices that hold the same sequence of (bytes, lifetime) share one packing, so
/// equal work costs once.
/// A buffer that is in place of another lies where that lies. Devices that others are listed for get their
/// arenas.
/// Precondition: every buffer's devices are ascending and below `devices`; what is in place of another stands
/// behind it, on its devices. O(sum of placements + packings).
template <class = void>
void assign_offsets(program& p, int devices) {
  std::size_t const n = idx(devices);
  // buffers that take over one another's bytes live as one: from the first of them on, till the last one ends
  std::vector<int> root(p.buffers.size()), end(p.buffers.size());
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    int const o = p.buffers[b].in_place_of;
    assert(o < static_cast<int>(b));
    root[b] = o < 0 ? static_cast<int>(b) : root[idx(o)];
    end[b] = p.buffers[b].last;
    int& whole = end[idx(root[b])];
    whole = std::max(whole, end[b]);
  }
  std::vector<std::vector<int>> held(n);                 // buffers of a device, ascending
  std::vector<core::hasher> content(n);
  for (std::size_t b = 0; b < p.buffers.size(); ++b) {
    buffer& x = p.buffers[b];
    x.offset.assign(x.devices.size(), 0);
    core::hasher facts;
    facts.add(x.bytes).add(x.persistent).add(x.first).add(end[b]).add(x.in_place_of >= 0);
    u64 const key = facts.value();
    for (int d : x.devices) {
      assert(d >= 0 && d < devices);
      held[idx(d)].push_back(static_cast<int>(b));
      content[idx(d)].add(key);
    }
  }
  auto at = [&](int b) -> buffer const& { return p.buffers[idx(b)]; };
  auto place_of_root = [&](std::size_t d, std::size_t i) {
    int const r = root[idx(held[d][i])];
    return std::lower_bound(held[d].begin(), held[d].end(), r) - held[d].begin();
  };
  auto alike = [&](std::size_t d, std::size_t e) {
    if (held[d].size() != held[e].size()) return false;
    for (std::size_t i = 0; i < held[d].size(); ++i) {
      if (held[d][i] == held[e][i]) continue;
      buffer const &x = at(held[d][i]), &y = at(held[e][i]);
      if (x.bytes != y.bytes || x.persistent != y.persistent || x.first != y.first ||
          end[idx(held[d][i])] != end[idx(held[e][i])] ||
          place_of_root(d, i) != place_of_root(e, i))
        return false;
    }
    return true;
  };
  p.arena.assign(n, 0);
  std::vector<std::vector<i64>> offsets(n);              // filled for the first device of each kind
  std::vector<std::size_t> like(n);
  std::map<u64, std::vector<std::size_t>> seen;
  for (std::size_t d = 0; d < n; ++d) {
    like[d] = d;
    std::vector<std::size_t>& same = seen[content[d].value()];
    for (std::size_t e : same) if (alike(e, d)) { like[d] = e; break; }
    if (like[d] != d) { p.arena[d] = p.arena[like[d]]; continue; }
    same.push_back(d);
    i64 base = 0;
    std::vector<lifetime> lives;
    std::vector<std::size_t> who;
    offsets[d].assign(held[d].size(), 0);
    for (std::size_t i = 0; i < held[d].size(); ++i) {
      buffer const& x = at(held[d][i]);
      if (x.persistent) { offsets[d][i] = base; base = core::saturating_add(base, aligned(x.bytes));
      } else if (x.in_place_of < 0) {
        lives.push_back({x.bytes, x.first, end[idx(held[d][i])]});
        who.push_back(i);
      }
    }
    packing const q = pack(lives);
    for (std::size_t k = 0; k < who.size(); ++k) offsets[d][who[k]] = base + q.offset[k];
    for (std::size_t i = 0; i < held[d].size(); ++i)
      offsets[d][i] = offsets[d][idx(place_of_root(d, i))];
    detail::require_bytes(p.arena[d] = core::saturating_add(base, q.bytes));
  }
  std::vector<std::size_t> next(n, 0);
  for (buffer& x : p.buffers)
    for (std::size_t i = 0; i < x.devices.size(); ++i) {
      std::size_t const d = idx(x.devices[i]);
      x.offset[i] = offsets[like[d]][next[d]++];
    }
  for (std::size_t d = 0; d < p.listed_for.size(); ++d) p.arena[d] = p.arena[idx(p.listed_for[d])];
}

#ifdef TENSORPAR_COMPILED
extern template void assign_offsets<>(program& p, int devices);
#endif

}  // namespace tensorpar::passes
