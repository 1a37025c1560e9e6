// tensorpar/program/core/task_lane.hpp - which tasks of a device run side by side: the lanes of computing and
// communicating
#pragma once
#include <algorithm>
#include <tensorpar/ir/machine/machine.hpp>
#include <tensorpar/program/core/program.hpp>

namespace tensorpar::passes {

/// The level of links (`machine::links`) that joins the members of this device's group, or all devices of an
/// exchange. Precondition: the device takes part; the step is no slice. O(axes + levels).
inline int link_of(ir::reshard_step const& m, int device, machine const& on) {
  i64 low = 0, high = 0;
  auto const widen = [&](i64 degree, i64 stride) { (stride < 0 ? low : high) += (degree - 1) * stride; };
  if (m.kind != ir::reshard_kind::exchange) {
    low = high = m.first_member(device);
    for (ir::group_axis const& a : m.group) widen(a.degree, a.stride);
    return on.level_joining(static_cast<int>(low), static_cast<int>(high));
  }
  i64 first = on.size(), last = 0;
  for (ir::layout const* l : {&m.before, &m.after}) {
    low = high = l->start;
    for (ir::layout_axis const& a : l->axes) widen(a.degree, a.stride);
    first = std::min(first, low);
    last = std::max(last, high);
  }
  return on.level_joining(static_cast<int>(first), static_cast<int>(last));
}

/// In which of its device's lanes a task runs, in program order: 0 computes, the others communicate. Where
/// links have lanes of their own (`machine::lane_per_link`), lane 1 + l is that of level l (`link_of`).
/// Law: all members of a group find one lane, and groups of the same members find the same one.
/// Precondition: the device takes part in the task. O(axes + levels).
inline int lane_of(task const& t, int device, machine const& on) {
  if (!t.communicates()) return 0;
  return on.communication_lanes() == 1 ? 1 : 1 + link_of(t.step, device, on);
}

}  // namespace tensorpar::passes
