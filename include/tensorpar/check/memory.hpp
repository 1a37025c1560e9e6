// tensorpar/check/memory.hpp - are buffers alive when used, apart in their arenas, and the arenas within the
// devices?
#pragma once
#include <algorithm>
#include <map>
#include <set>
#include <tensorpar/check/form.hpp>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/op/kinds/fused.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>

namespace tensorpar::detail::check {

/// What starts here is aligned for every scalar and vector unit.
inline constexpr i64 alignment = 64;

/// May the task leave its result in buffer `to` over what lies in buffer `from`: as it adds to that, element
/// by element, or as its operator says?
inline bool writes_over(task const& t, int from, int to) {
  if (!t.op.op || t.out.empty() || t.out[0] != to || std::count(t.in.begin(), t.in.end(), from) != 1)
    return false;
  int const k = t.op.op->overwrites;
  if (k >= 0 && idx(k) < t.in.size() && t.in[idx(k)] == from) return true;
  if (t.op.is<tensorpar::add>()) return t.in.size() == 2 && t.in[0] == from && t.out.size() == 1;
  bool const plus = (t.op.is<op::linear_with>() && t.op.as<op::linear_with>().plus) ||
                    (t.op.is<op::contraction_with>() && t.op.as<op::contraction_with>().plus) ||
                    (t.op.is<op::norm_grads>() && t.op.as<op::norm_grads>().plus);
  return plus && t.in.back() == from;
}

/// A buffer on one device, and where.
struct stay { int buffer; i64 at; };
/// The first task of which a buffer's bytes are its own.
inline int begins(buffer const& b) { return b.first + (b.in_place_of >= 0); }
/// Are these of the same sizes, at the same times, at the same bytes?
inline bool stay_alike(program const& q, std::vector<stay> const& a, std::vector<stay> const& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](stay const& s, stay const& t) {
    if (s.at != t.at) return false;
    if (s.buffer == t.buffer) return true;
    buffer const &x = q.buffers[idx(s.buffer)], &y = q.buffers[idx(t.buffer)];
    return begins(x) == begins(y) && x.last == y.last && x.bytes == y.bytes;
  });
}
/// Does no byte of device d belong to two at once? False after a finding. O(n log n).
inline bool stay_apart(program const& q, std::vector<stay> const& held, int d, findings& out) {
  // in order of time; among those alive, each may only meet its neighbours by offset. kind 0: an end of the
  // task before, 1: a start
  struct event { int time, kind; std::size_t who; };
  std::vector<event> events;
  events.reserve(2 * held.size());
  for (std::size_t i = 0; i < held.size(); ++i) {
    buffer const& x = q.buffers[idx(held[i].buffer)];
    events.push_back({begins(x), 1, i});
    events.push_back({x.last + 1, 0, i});
  }
  std::sort(events.begin(), events.end(), [](event const& a, event const& b) {
    return a.time != b.time ? a.time < b.time : a.kind != b.kind ? a.kind < b.kind : a.who < b.who;
  });
  bool good = true;
  std::set<std::pair<i64, std::size_t>> alive;
  for (event const& e : events) {
    std::pair<i64, std::size_t> const me{held[e.who].at, e.who};
    if (e.kind == 0 && alive.erase(me)) continue;
    auto const it = alive.insert(me).first;
    auto clash = [&](std::size_t low, std::size_t high) {
      stay const &a = held[low], &b = held[high];
      if (a.at + q.buffers[idx(a.buffer)].bytes <= b.at) return;
      good = false;
      out.add({fault::overlap, e.time, b.buffer, d, -1,
               sentence("buffers ", a.buffer, " and ", b.buffer, " share bytes on device ", d, " at task ",
                        e.time)});
    };
    if (it != alive.begin()) clash(std::prev(it)->second, e.who);
    if (std::next(it) != alive.end()) clash(e.who, std::next(it)->second);
  }
  return good;
}

/// `only`: the program lists this device alone; -1: all. `promised`: do the arenas fit the cluster's devices,
/// and what the plan predicts? Precondition: check_program_form found nothing.
/// O(placements), and O(placements * log) of devices unlike all others.
inline void check_memory(computation_graph const& g, plan const& p, program const& q, findings& out,
                         int only = -1, bool promised = true) {
  for (int now = 0; now < static_cast<int>(q.tasks.size()) && !out.full(); ++now) {
    task const& t = q.tasks[idx(now)];
    auto used = [&](int b) {
      buffer const& x = q.buffers[idx(b)];
      if (now < x.first || now > x.last)
        out.add({fault::lifetime, now, b, -1, t.node,
                 sentence(label(g, q, now), " uses buffer ", b, ", which lives from task ", x.first, " to ",
                          x.last)});
    };
    for (int b : t.in) used(b);
    for (int b : t.out) used(b);
    if (t.workspace < 0) continue;
    used(t.workspace);
    auto const& w = q.buffers[idx(t.workspace)].devices;
    if (!std::includes(w.begin(), w.end(), t.devices.begin(), t.devices.end()))
      out.add({fault::devices, now, t.workspace, -1, t.node,
               label(g, q, now) + " has a workspace that is not on all of its devices"});
  }
  int const end = static_cast<int>(q.tasks.size()) - 1, buffers = static_cast<int>(q.buffers.size());
  // who takes over another's bytes may share them in one task: the one that reads the other last and writes
  // over it
  for (int b = 0; b < buffers && !out.full(); ++b) {
    buffer const& x = q.buffers[idx(b)];
    if (x.in_place_of < 0) continue;
    buffer const& y = q.buffers[idx(x.in_place_of)];
    task const& t = q.tasks[idx(x.first)];
    if (y.last != x.first || y.offset != x.offset || y.bytes < x.bytes || y.persistent ||
        !writes_over(t, x.in_place_of, b))
      out.add({fault::overlap, x.first, b, -1, -1,
               sentence("buffer ", b, " takes over the bytes of buffer ", x.in_place_of,
                        " in a task that does not write over it")});
  }
  std::vector<std::vector<stay>> held(q.arena.size());
  std::vector<core::hasher> content(q.arena.size());
  std::vector<std::size_t> count(q.arena.size(), 0);
  for (buffer const& x : q.buffers) for (int d : x.devices) count[idx(d)] += x.bytes > 0;
  for (std::size_t d = 0; d < count.size(); ++d) held[d].reserve(count[d]);
  for (int b = 0; b < buffers; ++b) {
    buffer const& x = q.buffers[idx(b)];
    if (x.persistent && (x.first != 0 || x.last != end))
      out.add({fault::lifetime, -1, b, -1, -1,
               sentence("buffer ", b, " is persistent but does not live through the step")});
    u64 const life = core::hasher().add(begins(x)).add(x.last).add(x.bytes).value();
    for (std::size_t k = 0; k < x.devices.size(); ++k) {
      int const d = x.devices[k];
      i64 const at = x.offset[k], room = q.arena[idx(d)];
      if (at < 0 || at % alignment || x.bytes > room - at)
        out.add({fault::arena, -1, b, d, -1,
                 sentence("buffer ", b, " has ", x.bytes, " bytes at byte ", at, ", the arena of device ", d,
                          " has ", room)});
      if (!x.bytes || begins(x) > x.last) continue;             // none, or never its own: nobody reads it
      held[idx(d)].push_back({b, at});
      content[idx(d)].add(life + static_cast<u64>(at));
    }
  }
  // devices without a finding, by what they hold: alike ones have none either
  std::map<u64, std::vector<int>> good;
  for (int d = std::max(0, only); d < (only < 0 ? static_cast<int>(held.size()) : only + 1) && !out.full();
       ++d) {
    std::vector<int>& same = good[content[idx(d)].value()];
    bool const known =
        std::any_of(same.begin(), same.end(),
                    [&](int e) { return stay_alike(q, held[idx(e)], held[idx(d)]); });
    if (!known && stay_apart(q, held[idx(d)], d, out)) same.push_back(d);
    if (!promised) continue;
    i64 const room = p.cluster.kind_of(d).memory, need = q.arena[idx(d)];
    if (need > room)
      out.add({fault::memory, -1, -1, d, -1,
               sentence("device ", d, " needs ", need, " bytes, has ", room, ": ", need - room, " too few")});
    if (p.peak_bytes.empty() || (idx(d) < p.peak_bytes.size() && p.peak_bytes[idx(d)] == need)) continue;
    std::string const said = idx(d) < p.peak_bytes.size() ? sentence(p.peak_bytes[idx(d)]) : "nothing";
    out.add({fault::peak, -1, -1, d, -1,
             sentence("device ", d, " takes ", need, " bytes, the plan predicts ", said)});
  }
}

}  // namespace tensorpar::detail::check
