// tensorpar/report/tasks.hpp - what a task of a program does: whom it serves, what it moves and how much
#pragma once
#include <algorithm>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/program/core/program.hpp>
#include <tensorpar/program/core/timeline.hpp>

namespace tensorpar::report {

inline constexpr int move_kinds = 6;

/// As people write it: "all-reduce".
inline std::string move_text(ir::reshard_kind k) {
  std::string r = ir::name_of(k);
  std::replace(r.begin(), r.end(), '_', '-');
  return r;
}
/// The forward operator that a task works for, or -1.
inline node_id served(computation_graph const& g, task const& t) {
  return t.node < 0 || t.node >= g.node_count() ? node_id() : g.node(t.node).origin;
}

/// Whether a task is a reshard, counted once: of an exchange in two halves the one that sends.
inline bool is_movement(task const& t) { return t.kind == task_kind::reshard || t.kind == task_kind::send; }
/// Bytes that all devices of a reshard send together.
inline double bytes_of_move(program const& q, task const& t) {
  if (!is_movement(t) || t.in.empty()) return 0;
  shape const& s = q.buffers[idx(t.in[0])].type;
  return ir::bytes_sent(t.step, s, q.scalar_bytes) * static_cast<double>(t.step.after.size());
}

/// Whether a task talks to other devices.
inline bool communicates(task const& t) { return t.communicates(); }

/// What a span does: by its task, for a simulation without overlap runs all on one lane; else by its lane.
inline bool communicates(program const& q, span const& s) {
  bool const known = s.task >= 0 && s.task < static_cast<int>(q.tasks.size());
  return known ? communicates(q.tasks[idx(s.task)]) : s.where == lane::communication;
}

}  // namespace tensorpar::report
