// tensorpar/program/program_hash.hpp - numbers that bind a plan to what is executed: its tasks, and where its
// buffers lie
#pragma once
#include <algorithm>
#include <map>
#include <tensorpar/core/error.hpp>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/program/core/program.hpp>
#include <tensorpar/program/lockstep_devices.hpp>

namespace tensorpar::passes {

namespace detail {
inline void add_to(core::hasher& h, ir::layout const& l) {
  h.add(l.start).add(l.axes.size());
  for (ir::layout_axis const& a : l.axes) h.add(a.kind).add(a.dim).add(a.degree).add(a.stride);
}
/// Buffers of values and of operands, counted without workspaces: backends, and devices that take no part,
/// differ in those.
inline std::vector<int> value_numbers(program const& q) {
  std::vector<int> number(q.buffers.size(), -1);
  std::vector<char> counts(q.buffers.size(), false);
  for (std::size_t b = 0; b < counts.size(); ++b) counts[b] = q.buffers[b].value >= 0;
  for (task const& t : q.tasks)
    for (auto const* side : {&t.in, &t.out})
      for (int b : *side)
        if (b >= 0 && b < static_cast<int>(counts.size())) counts[idx(b)] = true;
  int n = 0;
  for (std::size_t b = 0; b < counts.size(); ++b) if (counts[b]) number[b] = n++;
  return number;
}
}  // namespace detail

/// Of every task, in order: operator, micro-batch, mesh, reshard, and the buffers that it reads and writes;
/// of every buffer: value, layout and life. The same for all devices' views of a program, all backends'
/// scratch spaces and all sizes of scalars. O(program).
inline u64 task_hash(program const& q) {
  std::vector<int> const number = detail::value_numbers(q);
  auto of = [&](int b) {
    return b < 0 || b >= static_cast<int>(number.size()) ? -1 : number[idx(b)];
  };
  core::hasher h;
  h.add(q.micro_batches).add(q.tasks.size());
  for (std::size_t k = 0; k < number.size(); ++k) {
    if (number[k] < 0) continue;
    buffer const& b = q.buffers[k];
    h.add(b.value).add(b.persistent).add(of(b.in_place_of)).add(b.first).add(b.last);
    detail::add_to(h, b.where);
  }
  for (task const& t : q.tasks) {
    h.add(t.kind).add(t.node).add(t.micro_batch).add(t.other_half).add(t.in.size()).add(t.out.size());
    for (int b : t.in) h.add(of(b));
    for (int b : t.out) h.add(of(b));
    if (t.kind == task_kind::compute) {
      h.add(t.op.hash()).add(t.mesh.start).add(t.mesh.axes.size());
      for (ir::mesh_axis const& a : t.mesh.axes)
        h.add(static_cast<int>(a.letter)).add(a.degree).add(a.stride);
      continue;
    }
    h.add(t.step.kind).add(t.step.from_dim).add(t.step.to_dim).add(t.step.group.size());
    for (ir::group_axis const& a : t.step.group) h.add(a.degree).add(a.stride);
    detail::add_to(h, t.step.before);
    detail::add_to(h, t.step.after);
  }
  return h.value();
}

/// By device: the first device that holds the same buffers, hence takes part in the same tasks. O(buffers +
/// different layouts * devices).
inline std::vector<int> alike_devices(program const& q, int devices) {
  std::vector<ir::layout const*> seen;
  std::map<u64, std::vector<ir::layout const*>> by_hash;
  for (buffer const& b : q.buffers) {
    if (b.value < 0) continue;
    core::hasher h;
    detail::add_to(h, b.where);
    std::vector<ir::layout const*>& same = by_hash[h.value()];
    if (std::any_of(same.begin(), same.end(), [&](ir::layout const* l) { return *l == b.where; })) continue;
    same.push_back(&b.where);
    seen.push_back(&b.where);
  }
  std::vector<int> like(idx(devices), 0);
  for (ir::layout const* l : seen) {
    std::vector<char> on(like.size(), 0);
    for (int d : l->devices()) if (d >= 0 && d < devices) on[idx(d)] = 1;
    refine_classes(like, on);
  }
  return like;
}

/// Where the buffers of values lie on one device, and the size of its arena. O(buffers * log).
inline u64 offset_hash(program const& q, int device) {
  core::hasher h;
  h.add(q.arena[idx(device)]);
  for (buffer const& b : q.buffers) {
    auto const at = std::lower_bound(b.devices.begin(), b.devices.end(), device);
    if (at != b.devices.end() && *at == device)
      h.add(b.bytes).add(b.offset[idx(at - b.devices.begin())]);
  }
  return h.value();
}

namespace detail {
/// The program, if it is the one that the plan was sealed with (or it was not).
inline program as_sealed(program q, plan const& p) {
  if (p.tasks && task_hash(q) != p.tasks)
    throw error("the plan's program has other tasks than those it was sealed with", "executor",
                "the plan and the graph as they were sealed");
  return q;
}
}  // namespace detail

}  // namespace tensorpar::passes
