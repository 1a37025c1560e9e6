// tensorpar/exec/comm/traffic.hpp - who will talk to whom: the groups and messages of a program, known before
// its first step
#pragma once
#include <algorithm>
#include <set>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/move.hpp>
#include <tensorpar/program/core/program.hpp>
#include <vector>

namespace tensorpar::exec {

/// One message of a step.
struct planned_message {
  int from = 0, to = 0, tag = 0;
  i64 count = 0;                     // elements
  i64 bytes = 0;                     // of one of them
  friend bool operator==(planned_message const&, planned_message const&) = default;
};

/// All groups of two or more, ascending, and all messages between different ranks, those of one sender in the
/// order in which it sends them. Every process of a run finds the same.
struct traffic {
  std::vector<std::vector<int>> groups;
  std::vector<planned_message> messages;
  // a hash of all that is run: processes whose hashes differ must not begin
  u64 program = 0;
};

/// The tag of the messages of task number i. Halves of different exchanges may pass one another, so each has
/// a tag of its own.
inline int message_tag(task const& t, std::size_t i) {
  return t.kind == task_kind::reshard ? 0
                                      : 1 + (t.kind == task_kind::send ? static_cast<int>(i) : t.other_half);
}

/// `only`: by task, whether it is among those that are run; null: all are. O(tasks * devices^2).
inline traffic traffic_of(program const& q, std::vector<char> const* only = nullptr) {
  std::set<std::vector<int>> groups;
  traffic r;
  for (std::size_t i = 0; i < q.tasks.size(); ++i) {
    task const& t = q.tasks[i];
    if (only && !(*only)[i]) continue;
    if (!t.communicates() || t.kind == task_kind::receive) continue;
    if (t.step.kind == ir::reshard_kind::exchange) {
      shape const& whole = q.buffers[idx((t.in.empty() ? t.out : t.in)[0])].type;
      i64 const bytes = tensorpar::bytes_of(whole.type, q.scalar_bytes);
      for (ir::transfer const& x : ir::transfers(t.step, whole))
        if (x.from != x.to) r.messages.push_back({x.from, x.to, message_tag(t, i), x.box.elements(), bytes});
    } else {
      for (int d : t.devices)
        if (std::vector<int> g = detail::order(t.step.members(d)).devices; g.size() > 1)
          groups.insert(std::move(g));
    }
  }
  r.groups.assign(groups.begin(), groups.end());
  return r;
}

/// What has to be set up between ranks: a group, or (`message`) the way from the first member to the second.
struct channel {
  std::vector<int> members;
  bool message = false;
  friend bool operator==(channel const&, channel const&) = default;
};

/// Every group and every way of messages once, in rounds of disjoint ones: each round splits all ranks at
/// once. First fit.
inline std::vector<std::vector<channel>> channel_rounds(traffic const& t, int ranks) {
  std::vector<channel> all;
  for (auto const& g : t.groups) all.push_back({g, false});
  std::set<std::pair<int, int>> ways;
  for (planned_message const& m : t.messages) ways.insert({m.from, m.to});
  for (auto const& [from, to] : ways) all.push_back({{from, to}, true});
  std::vector<std::vector<channel>> rounds;
  std::vector<std::vector<char>> busy;
  for (channel& c : all) {
    std::size_t k = 0;
    auto const clash = [&](std::vector<char> const& b) {
      return std::any_of(c.members.begin(), c.members.end(),
                         [&](int r) { return b[idx(r)] != 0; });
    };
    while (k < busy.size() && clash(busy[k])) ++k;
    if (k == busy.size()) {
      busy.emplace_back(idx(ranks), 0);
      rounds.emplace_back();
    }
    for (int r : c.members) busy[k][idx(r)] = 1;
    rounds[k].push_back(std::move(c));
  }
  return rounds;
}

}  // namespace tensorpar::exec
