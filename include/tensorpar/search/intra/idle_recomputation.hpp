// tensorpar/search/intra/idle_recomputation.hpp - operators that a plan says are computed again although no
// backward pass needs that
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/program/passes/memory_pass.hpp>
#include <tensorpar/program/program_hash.hpp>
#include <tensorpar/program/unroll.hpp>

namespace tensorpar::search {

/// Takes `recompute` from the operators of a plan where it does nothing: its program is the same task by
/// task, buffers and lives included. Looked at are operators of which the backward pass holds no second copy,
/// all at once and then by halves. `t`: the step before anything is saved. How many flags went. Precondition:
/// no pipeline. O(unrolling * flags that go in vain * log), two unrollings where all go.
inline int drop_idle_recomputation(training_graph const& t, plan& p) {
  std::vector<int> idle;
  for (std::size_t v = 0; v < p.nodes.size(); ++v)
    if (p.nodes[v].recompute) idle.push_back(static_cast<int>(v));
  if (idle.empty()) return 0;
  planned_step const step = passes::memory_pass(t, p);
  std::vector<char> again(p.nodes.size(), 0);
  for (graph_node const& n : step.graph.graph.nodes)
    if (n.recomputed && n.origin >= 0) again[idx(n.origin)] = 1;
  std::erase_if(idle, [&](int v) { return again[idx(v)] != 0; });
  if (idle.empty()) return 0;
  u64 const whole = passes::task_hash(unroll(step.graph, step.plan, {.device = 0}));
  int dropped = 0;
  auto const drop = [&](auto const& self, std::size_t from, std::size_t to) -> void {
    plan q = p;
    for (std::size_t i = from; i < to; ++i) q.nodes[idx(idle[i])].recompute = false;
    planned_step const s = passes::memory_pass(t, q);
    if (passes::task_hash(unroll(s.graph, s.plan, {.device = 0})) == whole) {
      p.nodes = std::move(q.nodes);
      dropped += static_cast<int>(to - from);
    } else if (to - from > 1) {
      self(self, from, from + (to - from) / 2);
      self(self, from + (to - from) / 2, to);
    }
  };
  drop(drop, 0, idle.size());
  return dropped;
}

}  // namespace tensorpar::search
