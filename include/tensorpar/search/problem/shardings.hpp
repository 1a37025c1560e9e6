// tensorpar/search/problem/shardings.hpp - which shardings a node may have
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/layout.hpp>
#include <utility>
#include <vector>

namespace tensorpar::search {

/// Which part of all legal shardings is searched. A larger space costs time, never validity: what a search
/// reports as its bound is a bound for the space stated here.
struct sharding_limits {
  int max_axes = 3;              // mesh axes of one node, a replica axis included
  bool replicas = true;          // may several devices do the same work?
  // on machines of at most so many devices every mesh size and replica count is tried
  i64 any_size_up_to = 4;
  // on larger ones a mesh has one device or at least 1 / min_part of the room. Where loops cannot be split
  // over all of it, also the largest power of two in it. Replica counts divide the machine or are powers of
  // two
  i64 min_part = 2;
  // where a room has more divisors than that, the degrees of axes are at most as large as the half smallest
  // of so many, or at least as large as the half largest: the space of large machines stays small. 0: all
  int max_divisors = 0;
  friend bool operator==(sharding_limits const&, sharding_limits const&) = default;
};

/// May a mesh have so many devices, out of `room` on a machine of `machine`? (The power of two aside.)
inline bool allows_size(sharding_limits const& l, i64 size, i64 room, i64 machine) {
  return size == 1 || machine <= l.any_size_up_to || size * l.min_part >= room;
}

/// Degrees in between are left out: (largest that is small, smallest that is large). O(sqrt(room)).
inline std::pair<i64, i64> left_out_between(sharding_limits const& l, i64 room) {
  std::vector<i64> lesser;
  int divisors = 0;
  for (i64 d = 1; d * d <= room; ++d)
    if (room % d == 0) {
      lesser.push_back(d);
      divisors += d * d == room ? 1 : 2;
    }
  if (l.max_divisors < 2 || divisors <= l.max_divisors) return {room, room};
  i64 const low = lesser[idx(l.max_divisors / 2 - 1)];
  return {low, room / low};
}

/// Every legal sharding of a node on devices start, start + 1, ..., start + room - 1 of a machine of
/// `machine` devices. It is an ordered list of axes over distinct splittable loops, and at most one replica
/// axis. Each degree is at least 2 and a divisor of the loop's units. The mesh takes the first
/// product-of-degrees devices of the room, the last axis innermost (stride 1). The order of axes matters on
/// hierarchical machines. Canonical order: one device first, then depth first by loop (as the notation lists
/// them, replicas last) and degree. O(result).
inline std::vector<ir::sharding> legal_shardings(ir::iteration_space const& s, int start, int room,
                                                 int machine, sharding_limits const& l = {}) {
  bool const any = machine <= l.any_size_up_to;
  auto const [low, high] = left_out_between(l, room);
  auto const between = [&, low = low, high = high](i64 d) { return d > low && d < high; };
  struct letter { char c; std::vector<i64> degrees; };
  std::vector<letter> letters;
  for (ir::node_loop const& p : s.loops) {
    if (p.units < 2) continue;
    letters.push_back({p.letter, {}});
    for (i64 d = 2; d <= room && d <= p.units; ++d)
      if (p.units % d == 0 && !between(d)) letters.back().degrees.push_back(d);
  }
  if (l.replicas) {
    letters.push_back({'\0', {}});
    for (i64 d = 2; d <= room; ++d)
      if ((any || machine % d == 0 || (d & (d - 1)) == 0) && !between(d)) letters.back().degrees.push_back(d);
  }
  std::vector<ir::sharding> r;
  ir::axis_list<ir::mesh_axis> axes;
  std::vector<char> used(letters.size(), 0);
  auto const is_power = [room](i64 size) {
    return size <= room && room < 2 * size && (size & (size - 1)) == 0;
  };
  bool full = false;                                     // a mesh without replicas fills the room
  auto const put = [&](i64 size) {
    if (!allows_size(l, size, room, machine) && !is_power(size)) return;
    if (size == room)
      full = full || std::none_of(axes.begin(), axes.end(), [](ir::mesh_axis const& a) { return !a.letter; });
    ir::sharding x{start, axes};
    i64 stride = 1;
    for (std::size_t k = x.axes.size(); k-- > 0;) { x.axes[k].stride = stride; stride *= x.axes[k].degree; }
    r.push_back(std::move(x));
  };
  auto const extend = [&](auto const& self, i64 size) -> void {
    put(size);
    if (static_cast<int>(axes.size()) >= l.max_axes) return;
    for (std::size_t i = 0; i < letters.size(); ++i) {
      if (used[i]) continue;
      used[i] = 1;
      for (i64 d : letters[i].degrees) {
        if (d * size > room) break;
        axes.push_back({letters[i].c, d, 1});
        self(self, size * d);
        axes.pop_back();
      }
      used[i] = 0;
    }
  };
  extend(extend, 1);
  if (full) std::erase_if(r, [&](ir::sharding const& x) { return !allows_size(l, x.size(), room, machine); });
  return r;
}

}  // namespace tensorpar::search
