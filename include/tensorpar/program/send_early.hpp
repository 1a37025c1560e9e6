// tensorpar/program/send_early.hpp - exchanges between disjoint devices in two halves: sent when made,
// received when needed
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/exchange.hpp>
#include <tensorpar/program/core/lifetimes.hpp>
#include <tensorpar/program/core/program.hpp>

namespace tensorpar::passes {

namespace detail {

/// Leaves buffers out that no task uses, and says anew when the others are used first and last.
inline void leave_out(program& p, std::vector<int> const& unused) {
  std::vector<int> now(p.buffers.size(), 0);
  for (int b : unused) now[idx(b)] = -1;
  int kept = 0;
  for (std::size_t b = 0; b < now.size(); ++b) {
    if (now[b] < 0) continue;
    now[b] = kept++;
    if (idx(now[b]) != b) p.buffers[idx(now[b])] = std::move(p.buffers[b]);
  }
  p.buffers.erase(p.buffers.begin() + kept, p.buffers.end());
  auto const renumber = [&](int& b) { if (b >= 0) b = now[idx(b)]; };
  for (buffer& b : p.buffers) renumber(b.in_place_of);
  for (task& x : p.tasks) {
    for (int& b : x.in) renumber(b);
    for (int& b : x.out) renumber(b);
    renumber(x.workspace);
  }
  live_by_use(p);
}

/// Reshards for this node that make what task `made` makes, ascending, which may stand behind the task that
/// makes what the first of them reads: `made` is that one then.
inline std::vector<std::size_t> reshards_before(program const& p, int& made, int node,
                                                std::vector<int> const& maker,
                                                std::vector<bool> const& moved) {
  std::vector<std::size_t> r;
  int at = made;
  auto const among_senders = [&](task const& t) {
    return t.kind == task_kind::reshard && t.node == node && t.step.kind != ir::reshard_kind::exchange;
  };
  while (at >= 0 && !moved[idx(at)] && among_senders(p.tasks[idx(at)])) {
    r.insert(r.begin(), idx(at));
    int const before = maker[idx(p.tasks[idx(at)].in[0])];
    if (before >= at) return {};                              // written again since
    at = before;
  }
  if (at < 0) return {};
  made = at;
  return r;
}

}  // namespace detail

/// Replaces every exchange whose senders and receivers have no device in common by a `send` right after the
/// task that makes what is sent, and a `receive` where the exchange stood. What senders reduce among
/// themselves before they send it moves with the `send`. So no sender waits for the tasks of a receiver, and
/// what is sent may be let go. `last(node)`: is what the node reads wanted after all passes only? Such an
/// exchange stays whole and where it stood: sent when made, it would hold up what the sender's last passes
/// have to send, and the receiver gets to it no sooner.
/// Sets the lifetimes of all buffers anew, by use; persistent ones are left to the caller. Precondition: no
/// offsets yet. O(tasks). What is under way between the two lies in the communicator's memory and is in no
/// prediction of arenas.
/// Law: a receive stands behind its send, so devices that run their tasks in program order never wait in a
/// circle.
template <class Last> void send_early(program& p, Last const& last) {
  std::vector<int> maker(p.buffers.size(), -1);
  // by making task: the exchanges that start there, each behind what senders do for it
  std::vector<std::vector<std::size_t>> sends(p.tasks.size());
  std::vector<bool> split(p.tasks.size(), false), moved(p.tasks.size(), false);
  for (std::size_t t = 0; t < p.tasks.size(); ++t) {
    task const& x = p.tasks[t];
    if (x.kind == task_kind::reshard && x.step.kind == ir::reshard_kind::exchange) {
      std::vector<int> const &from = p.buffers[idx(x.in[0])].devices, &to = p.buffers[idx(x.out[0])].devices;
      bool common = false;
      for (int d : from) common = common || std::binary_search(to.begin(), to.end(), d);
      int made = maker[idx(x.in[0])];
      if (!common && made >= 0 && !last(x.node)) {
        split[t] = true;
        std::vector<std::size_t> before = detail::reshards_before(p, made, x.node, maker, moved);
        for (std::size_t m : before) moved[m] = true;
        before.push_back(t);
        sends[idx(made)].insert(sends[idx(made)].end(), before.begin(), before.end());
      }
    }
    for (int b : x.out) maker[idx(b)] = static_cast<int>(t);
  }
  std::vector<task> all;
  all.reserve(p.tasks.size() + idx(std::count(split.begin(), split.end(), true)));
  std::vector<int> send_at(p.tasks.size(), -1);
  auto on = [&](task& x, std::vector<int> const& devices, int workspace) {
    x.devices = devices;
    if (workspace < 0) return;
    buffer w = p.buffers[idx(workspace)];
    w.devices = devices;
    w.where = {devices.front(), {{ir::part_kind::replicate, -1, static_cast<i64>(devices.size()), 1}}};
    p.buffers.push_back(std::move(w));
    x.workspace = static_cast<int>(p.buffers.size()) - 1;
  };
  auto const follow = [&](auto const& self, std::size_t made) -> void {
    for (std::size_t e : sends[made]) {
      if (moved[e]) {
        all.push_back(std::move(p.tasks[e]));
        self(self, e);
      } else {
        task x = p.tasks[e];
        x.kind = task_kind::send;
        x.name = "send for " +
                 x.name.substr(x.name.rfind("for ") == std::string::npos ? 0 : x.name.rfind("for ") + 4);
        x.out.clear();
        on(x, p.buffers[idx(x.in[0])].devices, p.tasks[e].workspace);
        send_at[e] = static_cast<int>(all.size());
        all.push_back(std::move(x));
      }
    }
  };
  std::vector<int> unused;
  for (std::size_t t = 0; t < p.tasks.size(); ++t) {
    if (moved[t]) continue;
    if (split[t]) {
      task x = std::move(p.tasks[t]);
      int const workspace = x.workspace;
      x.kind = task_kind::receive;
      x.name = "receive for " +
               x.name.substr(x.name.rfind("for ") == std::string::npos ? 0 : x.name.rfind("for ") + 4);
      x.in.clear();
      on(x, p.buffers[idx(x.out[0])].devices, workspace);
      if (workspace >= 0) unused.push_back(workspace);
      x.other_half = send_at[t];
      all[idx(send_at[t])].other_half = static_cast<int>(all.size());
      all.push_back(std::move(x));
    } else all.push_back(std::move(p.tasks[t]));
    follow(follow, t);
  }
  p.tasks = std::move(all);
  detail::leave_out(p, unused);         // the exchanges' own packing space belongs to nobody now
}

inline void send_early(program& p) {
  send_early(p, [](int) { return false; });
}

}  // namespace tensorpar::passes
