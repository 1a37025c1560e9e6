// tensorpar/plan/check_memory.hpp - are buffers alive when used, apart in their arenas, and the arenas within the devices?
#pragma once
#include <map>
#include <set>
#include <tensorpar/plan/check_form.hpp>

namespace tensorpar::detail::check {

/// What starts here is aligned for every scalar and vector unit.
inline constexpr i64 alignment = 64;

/// Precondition: check_program_form found nothing. O(placements * log(placements)).
inline void check_memory(computation_graph const& g, plan const& p, program const& q, findings& out) {
  for (std::size_t i = 0; i < q.tasks.size() && !out.full(); ++i) {
    task const& t = q.tasks[i];
    auto used = [&](int b, bool everywhere) {
      buffer const& x = q.buffers[z(b)];
      int const now = static_cast<int>(i);
      if (now < x.first || now > x.last)
        out.add({fault::lifetime, now, b, -1, t.node,
                 label(g, q, now) + " uses buffer " + std::to_string(b) + ", which lives from task " + std::to_string(x.first) + " to " +
                     std::to_string(x.last)});
      if (everywhere && !std::includes(x.devices.begin(), x.devices.end(), t.devices.begin(), t.devices.end()))
        out.add({fault::devices, now, b, -1, t.node, label(g, q, now) + " has a workspace that is not on all of its devices"});
    };
    for (int b : t.in) used(b, false);
    for (int b : t.out) used(b, false);
    if (t.workspace >= 0) used(t.workspace, true);
  }
  int const end = static_cast<int>(q.tasks.size()) - 1;
  struct stay {
    int buffer;
    i64 at, bytes;
  };
  std::vector<std::vector<stay>> held(q.arena.size());
  for (std::size_t b = 0; b < q.buffers.size(); ++b) {
    buffer const& x = q.buffers[b];
    if (x.persistent && (x.first != 0 || x.last != end))
      out.add({fault::lifetime, -1, static_cast<int>(b), -1, -1,
               "buffer " + std::to_string(b) + " is persistent but does not live through the step"});
    for (std::size_t k = 0; k < x.devices.size(); ++k) {
      int const d = x.devices[k];
      if (x.offset[k] < 0 || x.offset[k] % alignment || x.bytes > q.arena[z(d)] - x.offset[k])
        out.add({fault::arena, -1, static_cast<int>(b), d, -1,
                 "buffer " + std::to_string(b) + " lies at byte " + std::to_string(x.offset[k]) + " with " + std::to_string(x.bytes) +
                     " bytes, the arena of device " + std::to_string(d) + " has " + std::to_string(q.arena[z(d)])});
      if (x.bytes) held[z(d)].push_back({static_cast<int>(b), x.offset[k], x.bytes});
    }
  }
  for (std::size_t d = 0; d < held.size() && !out.full(); ++d) {
    // in order of time; among those alive, each may only meet its neighbours by offset
    struct event {
      int time, kind;
      std::size_t who;
    };  // kind 0: an end of the task before, 1: a start
    std::vector<event> events;
    for (std::size_t i = 0; i < held[d].size(); ++i) {
      buffer const& x = q.buffers[z(held[d][i].buffer)];
      events.push_back({x.first, 1, i});
      events.push_back({x.last + 1, 0, i});
    }
    std::sort(events.begin(), events.end(), [](event const& a, event const& b) {
      return a.time != b.time ? a.time < b.time : a.kind != b.kind ? a.kind < b.kind : a.who < b.who;
    });
    std::set<std::pair<i64, std::size_t>> alive;
    for (event const& e : events) {
      stay const& me = held[d][e.who];
      if (e.kind == 0) {
        alive.erase({me.at, e.who});
        continue;
      }
      auto const [it, fresh] = alive.insert({me.at, e.who});
      auto clash = [&](std::size_t low, std::size_t high) {
        stay const &a = held[d][low], &b = held[d][high];
        if (a.at + a.bytes <= b.at) return;
        out.add({fault::overlap, e.time, b.buffer, static_cast<int>(d), -1,
                 "buffers " + std::to_string(a.buffer) + " and " + std::to_string(b.buffer) + " share bytes on device " +
                     std::to_string(d) + " at task " + std::to_string(e.time)});
      };
      if (it != alive.begin()) clash(std::prev(it)->second, e.who);
      if (std::next(it) != alive.end()) clash(e.who, std::next(it)->second);
    }
    i64 const room = p.cluster.kind_of(static_cast<int>(d)).memory;
    if (q.arena[d] > room)
      out.add({fault::memory, -1, -1, static_cast<int>(d), -1,
               "device " + std::to_string(d) + " needs " + std::to_string(q.arena[d]) + " bytes and has " + std::to_string(room) + ": " +
                   std::to_string(q.arena[d] - room) + " too few"});
  }
  if (!p.peak_bytes.empty() && p.peak_bytes != q.arena)
    for (std::size_t d = 0; d < q.arena.size(); ++d)
      if (d >= p.peak_bytes.size() || p.peak_bytes[d] != q.arena[d])
        out.add({fault::peak, -1, -1, static_cast<int>(d), -1,
                 "device " + std::to_string(d) + " takes " + std::to_string(q.arena[d]) + " bytes, the plan predicts " +
                     (d < p.peak_bytes.size() ? std::to_string(p.peak_bytes[d]) : "nothing")});
}

}  // namespace tensorpar::detail::check
