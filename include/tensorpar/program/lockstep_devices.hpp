// tensorpar/program/lockstep_devices.hpp - devices that do the same at the same time, of which a program need
// list but one
#pragma once
#include <algorithm>
#include <map>
#include <numeric>
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

/// Classes are cut: by device the first of its class, and of those within it that have the same key.
/// O(devices * log).
template <class Key> void refine_classes(std::vector<int>& like, std::vector<Key> const& keys) {
  std::map<std::pair<int, Key>, int> first;
  for (std::size_t d = 0; d < like.size(); ++d)
    like[d] = first.insert({{like[d], keys[d]}, static_cast<int>(d)}).first->second;
}

namespace detail {

/// A mesh axis in all its ways of prime numbers of devices: a collective's groups are made of these.
inline ir::axis_list<ir::group_axis> prime_axes(ir::sharding const& s) {
  ir::axis_list<ir::group_axis> r;
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

/// Do the mesh's digits lie in blocks of every level of links? Then groups along some of its axes cross the
/// same levels wherever they lie.
inline bool nests_in_links(ir::sharding const& s, machine const& on) {
  ir::axis_list<ir::mesh_axis> axes;
  for (ir::mesh_axis const& a : s.axes) if (a.degree > 1) axes.push_back(a);
  std::sort(axes.begin(), axes.end(), [](auto const& a, auto const& b) { return a.stride < b.stride; });
  i64 end = 1;                                         // of the digit before
  for (ir::mesh_axis const& a : axes) {
    // adding a digit must not carry
    if (a.stride < 1 || a.stride % end || s.start / a.stride % a.degree) return false;
    end = a.stride * a.degree;
    for (std::size_t l = 0; l + 1 < on.links.size(); ++l) {
      i64 const block = on.links[l].group;
      bool const within = block % end == 0, beyond = a.stride % block == 0;
      if (!within && !beyond && (block % a.stride || end % block)) return false;
    }
  }
  return true;
}

}  // namespace detail

/// By device the first of those that do the same at the same time under these shardings: devices of one kind,
/// in the same shardings, whose groups of any collective have members of the same classes. The coarsest such
/// classes but for groups that no collective may need; found by refinement (Paige and Tarjan 1987, plainly).
/// Where levels of links have lanes of their own and groups cross them here and not there, each device is
/// its own class.
/// Law: in a simulated step (simulate/engine.hpp) all devices of a class have the same spans.
/// O(rounds * shardings * log devices * devices * log), one round where every sharding has one class.
inline std::vector<int> lockstep_devices(std::vector<ir::sharding> const& shardings, machine const& on) {
  std::vector<ir::sharding> distinct;
  for (ir::sharding const& s : shardings)
    if (std::find(distinct.begin(), distinct.end(), s) == distinct.end()) distinct.push_back(s);
  std::vector<int> like(on.device.size(), 0);
  auto const nests = [&](ir::sharding const& s) { return detail::nests_in_links(s, on); };
  if (on.communication_lanes() > 1 && !std::all_of(distinct.begin(), distinct.end(), nests)) {
    std::iota(like.begin(), like.end(), 0);
    return like;
  }
  refine_classes(like, on.device);
  std::vector<std::vector<int>> devices;
  for (ir::sharding const& s : distinct) {
    devices.push_back(mesh_layout(s).devices());
    std::vector<char> in(like.size(), 0);
    for (int d : devices.back()) in[idx(d)] = 1;
    refine_classes(like, in);
  }
  for (std::vector<int> before; before != like;) {
    before = like;
    for (std::size_t i = 0; i < distinct.size(); ++i) {
      bool one = true;
      for (int d : devices[i]) one = one && like[idx(d)] == like[idx(devices[i].front())];
      if (one) continue;
      ir::reshard_step along;
      along.before = mesh_layout(distinct[i]);
      for (ir::group_axis const& a : detail::prime_axes(distinct[i])) {
        along.group = {a};
        std::vector<std::vector<int>> met(like.size());               // the classes in a device's group
        for (int d : devices[i]) {
          std::vector<int>& c = met[idx(d)];
          for (int m : along.members(d)) c.push_back(like[idx(m)]);
          std::sort(c.begin(), c.end());
          c.erase(std::unique(c.begin(), c.end()), c.end());
        }
        refine_classes(like, met);
      }
    }
  }
  return like;
}

}  // namespace tensorpar::passes
