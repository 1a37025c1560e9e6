// tensorpar/program/lockstep_devices.hpp - devices that do the same at the same time, of which a program need
// list but one
#pragma once
#include <algorithm>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/machine/machine.hpp>
#include <tensorpar/ir/reshard.hpp>
#include <utility>
#include <vector>

namespace tensorpar::passes {

/// A device mesh as a layout, which says where data lies and nothing of what it is.
inline ir::layout mesh_layout(ir::sharding const& s) {
  ir::layout l{s.start, {}};
  for (ir::mesh_axis const& a : s.axes)
    l.axes.push_back({ir::part_kind::replicate, -1, a.degree, a.stride});
  return l;
}

/// Which devices a program lists: one of those that do the same, or `only` one; else all.
struct listed_devices {
  bool lockstep = false;
  int only = -1;
};

namespace detail {

/// Numbers of what has been seen, in the order in which it was first seen.
template <class Key> class numbering {
  std::map<Key, int> seen_;

 public:
  int of(Key const& k) { return seen_.try_emplace(k, static_cast<int>(seen_.size())).first->second; }
  int count() const { return static_cast<int>(seen_.size()); }
};

/// A mesh axis in all its ways of prime numbers of devices: a collective's groups are made of these.
inline std::vector<ir::group_axis> prime_axes(ir::sharding const& s) {
  std::vector<ir::group_axis> r;
  for (ir::mesh_axis const& a : s.axes)
    for (i64 f = 1; f < a.degree; ++f) {
      if (a.degree % f) continue;
      i64 left = a.degree / f;
      for (i64 p = 2; left > 1; ++p) {
        if (left % p) continue;
        r.push_back({p, a.stride * f});
        while (left % p == 0) left /= p;
      }
    }
  return r;
}

}  // namespace detail

/// By device the first of those that do the same at the same time under these shardings: devices of one kind,
/// in the same shardings, whose groups of any collective have members of the same classes. The coarsest such
/// classes but for groups that no collective may need; found by refinement (Paige and Tarjan 1987, plainly).
/// Law: in a simulated step (simulate/engine.hpp) all devices of a class have the same spans.
/// O(rounds * shardings * log devices * devices * log), one round where every sharding has one class.
inline std::vector<int> lockstep_devices(std::vector<ir::sharding> const& shardings, machine const& on) {
  std::vector<ir::sharding> distinct;
  for (ir::sharding const& s : shardings)
    if (std::find(distinct.begin(), distinct.end(), s) == distinct.end()) distinct.push_back(s);
  std::size_t const n = on.device.size();
  std::vector<int> color(n);
  for (std::size_t d = 0; d < n; ++d) color[d] = on.device[d];
  int colors = 0;
  std::vector<std::vector<int>> devices;
  for (ir::sharding const& s : distinct) {
    devices.push_back(mesh_layout(s).devices());
    std::vector<char> in(n, 0);
    for (int d : devices.back()) in[idx(d)] = 1;
    detail::numbering<std::pair<int, char>> next;
    for (std::size_t d = 0; d < n; ++d) color[d] = next.of({color[d], in[d]});
    colors = next.count();
  }
  for (int before = 0; colors != before;) {
    before = colors;
    for (std::size_t i = 0; i < distinct.size(); ++i) {
      bool one = true;
      for (int d : devices[i]) one = one && color[idx(d)] == color[idx(devices[i].front())];
      if (one) continue;
      ir::layout const mesh = mesh_layout(distinct[i]);
      for (ir::group_axis const& a : detail::prime_axes(distinct[i])) {
        std::vector<std::vector<int>> group(n);                       // the classes in a device's group
        for (int d : devices[i]) {
          ir::reshard_step one_axis;
          one_axis.before = mesh;
          one_axis.group = {a};
          std::vector<int>& c = group[idx(d)];
          for (int m : one_axis.members(d)) c.push_back(color[idx(m)]);
          std::sort(c.begin(), c.end());
          c.erase(std::unique(c.begin(), c.end()), c.end());
        }
        detail::numbering<std::pair<int, std::vector<int>>> next;
        for (std::size_t d = 0; d < n; ++d) color[d] = next.of({color[d], std::move(group[d])});
        colors = next.count();
      }
    }
  }
  std::vector<int> first(n, -1), r(n);
  for (std::size_t d = 0; d < n; ++d) {
    int& f = first[idx(color[d])];
    if (f < 0) f = static_cast<int>(d);
    r[d] = f;
  }
  return r;
}

}  // namespace tensorpar::passes
