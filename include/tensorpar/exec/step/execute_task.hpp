// tensorpar/exec/step/execute_task.hpp - one task of a program on one device: what moves, what the host
// feeds, what computes
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/traffic.hpp>
#include <tensorpar/exec/device/concepts.hpp>
#include <tensorpar/exec/device/host.hpp>
#include <tensorpar/exec/device/kernel.hpp>
#include <tensorpar/exec/device/narrow.hpp>
#include <tensorpar/exec/step/device_memory.hpp>
#include <tensorpar/exec/step/prepared_task.hpp>
#include <tensorpar/ir/computation_graph.hpp>
#include <tensorpar/program/core/program.hpp>

namespace tensorpar::exec::detail {

/// Runs task i, which `p` was prepared for. `moves`: the memory in whose queue a reshard is done; `only`: the
/// evaluation that this is, or null.
template <class Compute, class Prepared, class Comm, class Memory, class Evaluation>
void execute_task(computation_graph const& g, program const& q, std::size_t i, Prepared& p,
                  host_batch const& batch, step_state const& state, Comm& comm, Memory const& moves,
                  Compute& compute, Memory const& memory, Evaluation const* only) {
  using scalar = typename Compute::scalar_type;
  task const& t = q.tasks[i];
  if (t.kind != task_kind::compute) {
    auto const move = [&]<class Element>(Element*) {
      auto const* src = p.in_at.empty() ? nullptr : static_cast<Element const*>(p.in_at[0]);
      auto* dst = p.out_at.empty() ? nullptr : static_cast<Element*>(p.out_at[0]);
      run_move(t.step, p.move, src, dst, static_cast<Element*>(p.workspace), comm, p.group, message_tag(t, i),
               moves);
    };
    return p.narrow ? move(static_cast<narrow_of<Compute>*>(nullptr)) : move(static_cast<scalar*>(nullptr));
  }
  for (auto const& [k, value] : p.feeds) {
    graph_value const& v = g.value(value);
    auto const operand = idx(k);
    feed_box<scalar>(batch.find(v.name)->second, t.micro_batch + v.micro_batch, p.in[operand],
                     const_cast<void*>(p.in_at[operand]), memory);
  }
  kernel_call c = call_of(t, p);
  c.state = state;
  place_in_batch(c, g.node(t.node), t.micro_batch, q.micro_batches);
  if (only) only->adapt(c);
  compute.run(c);
}

}  // namespace tensorpar::exec::detail
