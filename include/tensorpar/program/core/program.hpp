// tensorpar/program/core/program.hpp - a plan unrolled: buffers, and every task in order
#pragma once
#include <tensorpar/ir/reshard.hpp>

namespace tensorpar {

/// One value in one layout: the same box size on every device that holds it.
struct buffer {
  // of the training graph; -1: workspace, or what fused tasks leave for one another
  int value = -1;
  shape type;                        // logical shape (workspace: one axis of scalars)
  ir::layout where;
  i64 bytes = 0;                     // on each device that holds it
  bool persistent = false;           // parameters and optimizer state live through the step
  // buffer of the same size whose bytes it takes over with the task that reads that one last
  int in_place_of = -1;
  int first = 0, last = 0;           // tasks between which it lives (inclusive)
  std::vector<int> devices;          // ascending
  std::vector<i64> offset;           // in the arena of devices[i], filled by the arena planner
};

/// `send` and `receive` are the two halves of an exchange between devices that have none in common: senders
/// go on at once.
enum class task_kind : int { compute, reshard, send, receive };

/// One operator or one step of a reshard, on all of its devices at once: every device runs the tasks it
/// takes part in, in program order.
struct task {
  task_kind kind = task_kind::compute;
  // of the training graph (compute: the operator; move: the consumer it serves)
  int node = -1;
  int micro_batch = 0;
  std::vector<int> in, out;          // buffers
  int workspace = -1;                // buffer, or -1
  // compute; for a sum of two buffers (accumulation over micro-batches) `add`
  op::any_op op;
  ir::sharding mesh;            // compute: the devices and what each does
  ir::reshard_step step;                    // move, send, receive
  int other_half = -1;               // send, receive: the task that is its counterpart
  std::string name;
  std::vector<int> devices;          // ascending

  /// Does it talk to other devices? Cutting a part out of what a device has is a reshard that does not.
  bool communicates() const {
    return kind != task_kind::compute && step.kind != ir::reshard_kind::slice;
  }
};

/// The whole step. `arena[d]` is what device d allocates once: buffers and workspaces at fixed offsets.
/// A program may list one device only of those that do the same at the same time
/// (`unroll_options::lockstep`): it is there to be simulated and looked at, and no executor takes it.
struct program {
  std::vector<buffer> buffers;
  std::vector<task> tasks;
  std::vector<i64> arena;
  int micro_batches = 1;
  i64 scalar_bytes = 4;
  std::vector<int> listed_for;       // by device the one that is listed for it; empty: each for itself
  bool scratch = false;              // kernels' scratch space is among the buffers, by some backend's rule
};

}  // namespace tensorpar
