// tensorpar/cost/groups.hpp - how the groups of a collective lie over the levels of a machine's links
#pragma once
#include <array>
#include <tensorpar/ir/machine.hpp>
#include <tensorpar/ir/movement.hpp>
#include <utility>
#include <vector>

namespace tensorpar {

/// One group of devices seen from the links, innermost level first: at level l the group falls into equal parts of `fan[l]` sub-groups
/// each; the product over all levels is the group's size. `even` is false where its parts differ in size; then every fan is 1 but that
/// of the level that joins them all. `abreast[l]`: how many devices of one block of the level below send over level l at the same time
/// when every group of the step uses all its members at once (the crowd at that block's uplink).
struct group_levels {
  static constexpr int max_levels = 8;
  int levels = 0;
  bool even = true;
  std::array<i64, max_levels> fan{};
  std::array<i64, max_levels> abreast{};
  friend bool operator==(group_levels const&, group_levels const&) = default;
};

namespace detail {

/// Grid axes with degree > 1 in ascending stride, in a fixed place: no allocation. Not used beyond 24 axes.
struct few_axes {
  static constexpr int max = 24;
  int n = 0;
  group_axis a[max]{};
  bool add(group_axis x) {
    if (x.degree <= 1) return true;
    if (n == max) return false;
    int i = n++;
    for (; i > 0 && a[i - 1].stride > x.stride; --i) a[i] = a[i - 1];
    a[i] = x;
    return true;
  }
};

/// The grid and the group as digits of one mixed radix that the link levels share: then all groups lie alike, and each level's fan is a
/// product. Returns false where that is not so. O(axes * levels).
inline bool levels_by_digits(move_step const& m, machine const& on, group_levels& r) {
  few_axes grid;
  for (layout_axis const& x : m.before.axes) if (!grid.add({x.degree, x.stride})) return false;
  for (int i = 0; i < grid.n; ++i) {
    group_axis const x = grid.a[i];
    if (i && x.stride % (grid.a[i - 1].stride * grid.a[i - 1].degree)) return false;
    if (m.before.start / x.stride % x.degree) return false;                // so that adding a digit never carries
  }
  auto inside = [](group_axis const& x, i64 block, i64& n) {               // how many digits of x fit into a block of consecutive devices
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
    i64 const block = on.links[static_cast<std::size_t>(l)].group;
    bool const outermost = l + 1 == r.levels;
    for (int i = 0; i < grid.n; ++i) {
      if (outermost) all *= grid.a[i].degree;
      else if (!inside(grid.a[i], block, all)) return false;
    }
    for (group_axis const& x : m.group) {
      if (outermost) members *= x.degree;
      else if (!inside(x, block, members)) return false;
    }
    r.fan[static_cast<std::size_t>(l)] = members / below;
    r.abreast[static_cast<std::size_t>(l)] = crowd;
    below = members;
    crowd = all;
  }
  return true;
}

/// Every group of the step, by the digits of the grid that are not the group's. Precondition: each group axis lies within one grid axis.
inline std::vector<std::vector<int>> groups_of(move_step const& m) {
  std::vector<group_axis> rest;
  for (layout_axis const& x : m.before.axes) rest.push_back({x.degree, x.stride});
  for (group_axis const& g : m.group)
    for (std::size_t k = 0; k < rest.size(); ++k) {
      group_axis const a = rest[k];
      if (g.stride < a.stride || g.stride * g.degree > a.stride * a.degree || g.stride % a.stride) continue;
      rest[k] = {g.stride / a.stride, a.stride};
      rest.push_back({a.stride * a.degree / (g.stride * g.degree), g.stride * g.degree});
      break;
    }
  auto spread_over = [](std::vector<int> from, std::vector<group_axis> const& axes) {
    for (group_axis const& a : axes) {
      std::vector<int> next;
      for (int b : from) for (i64 i = 0; i < a.degree; ++i) next.push_back(b + static_cast<int>(i * a.stride));
      from = std::move(next);
    }
    return from;
  };
  std::vector<std::vector<int>> r;
  for (int base : spread_over({m.before.start}, rest)) r.push_back(spread_over({base}, m.group));
  return r;
}

/// The distinct ways in which the groups lie, by looking at every device. O(devices * levels).
inline std::vector<group_levels> levels_by_enumeration(move_step const& m, machine const& on) {
  auto const groups = groups_of(m);
  int const levels =
      static_cast<int>(on.links.size()) < group_levels::max_levels ? static_cast<int>(on.links.size()) : group_levels::max_levels;
  auto block_at = [&](int l, int dev) { return l + 1 == levels ? 0 : dev / on.links[static_cast<std::size_t>(l)].group; };
  std::array<i64, group_levels::max_levels> crowd{};
  for (int l = 0; l < levels; ++l) {
    if (l == 0) { crowd[0] = 1; continue; }
    std::vector<i64> in(static_cast<std::size_t>(on.size()), 0);
    for (auto const& g : groups)
      for (int d : g) {
        i64& n = in[static_cast<std::size_t>(block_at(l - 1, d))];
        crowd[static_cast<std::size_t>(l)] = ++n > crowd[static_cast<std::size_t>(l)] ? n : crowd[static_cast<std::size_t>(l)];
      }
  }
  std::vector<group_levels> r;
  for (auto const& g : groups) {
    group_levels x;
    x.levels = levels;
    x.abreast = crowd;
    i64 below = 1;
    int top = 0;
    for (int l = 0; l < levels; ++l) {
      i64 least = static_cast<i64>(g.size()), most = 0;
      for (int d : g) {
        i64 n = 0;
        for (int e : g) n += block_at(l, e) == block_at(l, d);
        least = n < least ? n : least;
        most = n > most ? n : most;
      }
      if (least != most || most % below) x.even = false;
      x.fan[static_cast<std::size_t>(l)] = most / below;
      if (most > below) top = l;
      below = most;
    }
    if (!x.even) {
      for (int l = 0; l < levels; ++l) x.fan[static_cast<std::size_t>(l)] = l == top ? static_cast<i64>(g.size()) : 1;
    }
    bool known = false;
    for (group_levels const& y : r) known = known || y == x;
    if (!known) r.push_back(x);
  }
  return r;
}

}  // namespace detail

/// Calls `visit(group_levels const&)` for every distinct way in which the step's groups lie over the links (most often one), and returns
/// the largest answer. O(axes * levels) and no allocation where grid and link levels nest; else O(devices * group size * levels).
template <class Visit> double worst_group(move_step const& m, machine const& on, Visit&& visit) {
  group_levels x;
  x.levels = static_cast<int>(on.links.size()) < group_levels::max_levels ? static_cast<int>(on.links.size()) : group_levels::max_levels;
  if (detail::levels_by_digits(m, on, x)) return visit(static_cast<group_levels const&>(x));
  double worst = 0;
  for (group_levels const& y : detail::levels_by_enumeration(m, on)) {
    double const s = visit(y);
    worst = s > worst ? s : worst;
  }
  return worst;
}

}  // namespace tensorpar
