// tensorpar/cost/groups.hpp - how the groups of a collective lie over the levels of a machine's links
#pragma once
#include <algorithm>
#include <array>
#include <numeric>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/machine/machine.hpp>
#include <tensorpar/ir/reshard.hpp>
#include <utility>
#include <vector>

namespace tensorpar::cost {

/// One group of devices seen from the links, innermost level first: at level l the group falls into equal
/// parts of `fan[l]` sub-groups each; the product over all levels is the group's size. `even` is false where
/// its parts differ in size; then every fan is 1 but that of the level that joins them all. `abreast[l]`: how
/// many devices of one block of the level below send over level l at the same time when every group of the
/// step uses all its members at once (the crowd at that block's uplink).
struct group_levels {
  static constexpr int max_levels = 8;
  int levels = 0;
  bool even = true;
  std::array<i64, max_levels> fan{};
  std::array<i64, max_levels> abreast{};
  friend bool operator==(group_levels const&, group_levels const&) = default;
};

namespace detail {

/// Mesh axes with degree > 1 in ascending stride, in a fixed place: no allocation. Not used beyond 24 axes.
struct few_axes {
  static constexpr int max = 24;
  int n = 0;
  ir::group_axis a[max]{};
  bool add(ir::group_axis x) {
    if (x.degree <= 1) return true;
    if (n == max) return false;
    int i = n++;
    for (; i > 0 && a[i - 1].stride > x.stride; --i) a[i] = a[i - 1];
    a[i] = x;
    return true;
  }
};

/// The mesh and the group as digits of one mixed radix that the link levels share: then all groups lie alike,
/// and each level's fan is a product. Returns false where that is not so. O(axes * levels).
inline bool levels_by_digits(ir::reshard_step const& m, machine const& on, group_levels& r) {
  few_axes mesh;
  for (ir::layout_axis const& x : m.before.axes) if (!mesh.add({x.degree, x.stride})) return false;
  for (int i = 0; i < mesh.n; ++i) {
    ir::group_axis const x = mesh.a[i];
    if (i && x.stride % (mesh.a[i - 1].stride * mesh.a[i - 1].degree)) return false;
    // so that adding a digit never carries
    if (m.before.start / x.stride % x.degree) return false;
  }
  // how many digits of x fit into a block of consecutive devices
  auto inside = [](ir::group_axis const& x, i64 block, i64& n) {
    i64 const end = x.stride * x.degree;
    if (block % end == 0) n *= x.degree;
    else if (x.stride % block == 0) {}
    else if (block % x.stride == 0 && end % block == 0) n *= block / x.stride;
    else return false;
    return true;
  };
  i64 below = 1, crowd = 1;
  for (int l = 0; l < r.levels; ++l) {
    i64 members = 1, all = 1;
    i64 const block = on.links[idx(l)].group;
    bool const outermost = l + 1 == r.levels;
    for (int i = 0; i < mesh.n; ++i) {
      if (outermost) all *= mesh.a[i].degree;
      else if (!inside(mesh.a[i], block, all)) return false;
    }
    for (ir::group_axis const& x : m.group) {
      if (outermost) members *= x.degree;
      else if (!inside(x, block, members)) return false;
    }
    r.fan[idx(l)] = members / below;
    r.abreast[idx(l)] = crowd;
    below = members;
    crowd = all;
  }
  return true;
}

/// The mesh axes that are not the groups': their digits tell the groups apart. Precondition: each group axis
/// lies within one mesh axis.
inline ir::axis_list<ir::group_axis> axes_beside_groups(ir::reshard_step const& m) {
  ir::axis_list<ir::group_axis> rest;
  for (ir::layout_axis const& x : m.before.axes) rest.push_back({x.degree, x.stride});
  for (ir::group_axis const& g : m.group)
    for (std::size_t k = 0; k < rest.size(); ++k) {
      ir::group_axis const a = rest[k];
      if (g.stride < a.stride || g.stride * g.degree > a.stride * a.degree || g.stride % a.stride) continue;
      rest[k] = {g.stride / a.stride, a.stride};
      rest.push_back({a.stride * a.degree / (g.stride * g.degree), g.stride * g.degree});
      break;
    }
  return rest;
}

/// Every group of the step, members in the order of the group's axes.
inline std::vector<std::vector<int>> groups_of(ir::reshard_step const& m) {
  auto sharding_over = [](std::vector<int> from, ir::axis_list<ir::group_axis> const& axes) {
    for (ir::group_axis const& a : axes) {
      std::vector<int> next;
      for (int b : from)
        for (i64 i = 0; i < a.degree; ++i) next.push_back(b + static_cast<int>(i * a.stride));
      from = std::move(next);
    }
    return from;
  };
  std::vector<std::vector<int>> r;
  for (int base : sharding_over({m.before.start}, axes_beside_groups(m)))
    r.push_back(sharding_over({base}, m.group));
  return r;
}

/// start + every combination of the axes' steps, ascending.
inline std::vector<i64> places(i64 start, ir::axis_list<ir::group_axis> axes) {
  std::sort(axes.begin(), axes.end(),
            [](ir::group_axis const& a, ir::group_axis const& b) { return a.stride > b.stride; });
  std::vector<i64> r{start}, next;
  for (ir::group_axis const& a : axes) {
    next.clear();
    for (i64 b : r) for (i64 i = 0; i < a.degree; ++i) next.push_back(b + i * a.stride);
    r.swap(next);
  }
  if (!std::is_sorted(r.begin(), r.end())) std::sort(r.begin(), r.end());
  return r;
}

/// A progression that falls into blocks of devices in the same ways: where blocks of `period` devices repeat,
/// so do its steps.
inline ir::group_axis shortened(ir::group_axis a, i64 period) {
  i64 const turn = period / std::gcd(a.stride, period);
  if (a.degree > 3 * turn) a.degree = 2 * turn + a.degree % turn;
  return a;
}

/// The most devices of a mesh in one block of so many.
inline i64 max_in_block(ir::layout const& mesh, i64 block) {
  few_axes axes;
  bool dense = true;
  i64 size = 1;
  for (ir::layout_axis const& x : mesh.axes) {
    dense = axes.add({x.degree, x.stride}) && dense;
    size *= x.degree;
  }
  i64 next = 1;
  for (int i = 0; i < axes.n; ++i) { dense = dense && axes.a[i].stride == next; next *= axes.a[i].degree; }
  // devices start ... start + size - 1
  if (dense) {
    i64 const first = block - mesh.start % block;
    return size <= first ? size : size - first >= block ? block : std::max(first, size - first);
  }
  ir::axis_list<ir::group_axis> all;
  for (ir::layout_axis const& x : mesh.axes) all.push_back({x.degree, x.stride});
  i64 most = 0, n = 0, last = -1;
  for (i64 d : places(mesh.start, std::move(all))) {
    n = d / block == last ? n + 1 : 1;
    last = d / block;
    most = std::max(most, n);
  }
  return most;
}

/// The distinct ways in which the groups lie, where digits do not tell. Groups that lie a multiple of all
/// blocks apart lie alike, and long progressions repeat, so few devices are looked at. O(p^2 + p * group *
/// levels) for the least common multiple p of the blocks, with groups of about 3 p devices at most where one
/// axis makes them.
inline std::vector<group_levels> levels_by_residues(ir::reshard_step const& m, machine const& on) {
  int const levels = static_cast<int>(on.links.size()) < group_levels::max_levels
                         ? static_cast<int>(on.links.size())
                         : group_levels::max_levels;
  i64 period = 1;
  for (int l = 0; l + 1 < levels; ++l)
    period = std::lcm(period, static_cast<i64>(on.links[idx(l)].group));
  std::vector<char> residue(idx(period), 0), next;
  residue[idx(m.before.start % period)] = 1;
  for (ir::group_axis const& a : axes_beside_groups(m)) {
    next.assign(residue.size(), 0);
    i64 const turn = period / std::gcd(a.stride, period), n = a.degree < turn ? a.degree : turn;
    for (i64 r = 0; r < period; ++r)
      for (i64 i = 0; i < n && residue[idx(r)]; ++i)
        next[idx((r + i * a.stride) % period)] = 1;
    residue.swap(next);
  }
  i64 size = 1;
  ir::axis_list<ir::group_axis> axes = m.group;
  for (ir::group_axis const& a : axes) size *= a.degree;
  i64 span = 1;
  std::sort(axes.begin(), axes.end(),
            [](ir::group_axis const& a, ir::group_axis const& b) { return a.stride < b.stride; });
  // one progression where one begins as the other ends
  std::size_t kept = 0;
  for (std::size_t k = 1; k < axes.size(); ++k) {
    ir::group_axis& last = axes[kept];
    if (axes[k].stride == last.stride * last.degree) last.degree *= axes[k].degree;
    else axes[++kept] = axes[k];
  }
  if (!axes.empty()) axes.resize(kept + 1);
  for (std::size_t k = 0; k + 1 < axes.size(); ++k) span += (axes[k].degree - 1) * axes[k].stride;
  if (!axes.empty() && span <= axes.back().stride) axes.back() = shortened(axes.back(), period);
  group_levels x;
  x.levels = levels;
  for (int l = 0; l < levels; ++l)
    x.abreast[idx(l)] =
        l ? max_in_block(m.before, on.links[idx(l - 1)].group) : 1;
  std::vector<group_levels> r;
  for (i64 start = 0; start < period; ++start) {
    if (!residue[idx(start)]) continue;
    std::vector<i64> const devices = places(start, axes);
    i64 below = 1;
    int top = 0;
    x.even = true;
    for (int l = 0; l < levels; ++l) {
      i64 least = size, most = l + 1 == levels ? size : 0;
      for (std::size_t i = 0, j = 0; l + 1 < levels && i < devices.size(); i = j) {
        i64 const block = on.links[idx(l)].group;
        while (j < devices.size() && devices[j] / block == devices[i] / block) ++j;
        least = std::min(least, static_cast<i64>(j - i));
        most = std::max(most, static_cast<i64>(j - i));
      }
      if (least != most || most % below) x.even = false;
      x.fan[idx(l)] = most / below;
      if (most > below) top = l;
      below = most;
    }
    if (!x.even)
      for (int l = 0; l < levels; ++l) x.fan[idx(l)] = l == top ? size : 1;
    if (std::find(r.begin(), r.end(), x) == r.end()) r.push_back(x);
  }
  return r;
}

}  // namespace detail

/// Every distinct way in which the step's groups lie over the links, most often one: it depends on the
/// devices and the groups alone.
inline std::vector<group_levels> ways_to_lie(ir::reshard_step const& m, machine const& on) {
  group_levels x;
  x.levels = static_cast<int>(on.links.size()) < group_levels::max_levels ? static_cast<int>(on.links.size())
                                                                          : group_levels::max_levels;
  if (detail::levels_by_digits(m, on, x)) return {x};
  return detail::levels_by_residues(m, on);
}

/// Calls `visit(group_levels const&)` for every distinct way in which the step's groups lie over the links
/// (most often one), and returns the largest answer. O(axes * levels) and no allocation where mesh and link
/// levels nest; else as `levels_by_residues`.
template <class Visit> double worst_group(ir::reshard_step const& m, machine const& on, Visit&& visit) {
  group_levels x;
  x.levels = static_cast<int>(on.links.size()) < group_levels::max_levels ? static_cast<int>(on.links.size())
                                                                          : group_levels::max_levels;
  if (detail::levels_by_digits(m, on, x)) return visit(static_cast<group_levels const&>(x));
  double worst = 0;
  for (group_levels const& y : detail::levels_by_residues(m, on)) {
    double const s = visit(y);
    worst = s > worst ? s : worst;
  }
  return worst;
}

}  // namespace tensorpar::cost
