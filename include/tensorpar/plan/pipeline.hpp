// tensorpar/plan/pipeline.hpp - a pipeline as a value: stages that form a DAG, where they run, and in which
// order their passes run
#pragma once
#include <string_view>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/machine/device_range.hpp>
#include <vector>

namespace tensorpar {

/// What a stage does with one micro-batch. `backward` computes the gradients of the stage's inputs and of its
/// weights; where a stage splits it, `backward` stops at the inputs' and `weights` does the rest (Qi et al.
/// 2024, "Zero bubble pipeline parallelism": B and W).
enum class pass : int { forward, backward, weights };
constexpr std::string_view name_of(pass p) {
  return p == pass::forward ? "forward" : p == pass::backward ? "backward" : "weights";
}

/// One entry of a schedule: a stage's pass over its micro-batch number `micro_batch`, which counts from 0 in
/// units of that stage's size.
struct pass_entry {
  int stage = 0;
  pass what = pass::forward;
  int micro_batch = 0;
  friend bool operator==(pass_entry const&, pass_entry const&) = default;
};

/// More micro-batches than this in a step of any stage are refused everywhere: by schedules, checkers and
/// plan files.
inline constexpr i64 max_micro_batches = i64{1} << 20;

/// A convex set of forward operators that run one after another on one group of devices (thesis, section 3.3:
/// the tuple <G, b, D, Pi>).
struct pipeline_stage {
  std::vector<int> nodes;            // forward operators, ascending
  int group = 0;
  i64 micro_batch = 1;               // samples; a multiple of the graph's own batch
  int k = 1;                         // of kFkB: how the schedule was made, not what it is
  bool split_backward = false;       // `weights` passes are entries of their own
  bool recompute = false;            // the backward pass computes the stage's activations anew
  // ZeRO stage 1: each data-parallel copy keeps a part of the optimizer's state
  bool shard_optimizer = false;
  friend bool operator==(pipeline_stage const&, pipeline_stage const&) = default;
};

/// Stages, devices and order. Edges between stages follow from the graph. Empty: no pipeline.
/// Laws (checked by check/schedule_check.hpp and by program/passes/pipeline_pass.hpp; section 3.3):
///  - C1: stages are convex and partition the operators.
///  - C2: their quotient is acyclic.
///  - C3: groups are disjoint.
///  - C4: per stage the passes of each kind ascend, and forward precedes backward.
///  - C5: a pass over samples follows the passes that produce those samples in the neighbouring stages, for
///    any two micro-batch sizes of which one divides the other.
struct pipeline {
  i64 mini_batch = 0;                              // samples per training step
  std::vector<device_range> groups;
  std::vector<pipeline_stage> stages;              // in topological order
  std::vector<std::vector<pass_entry>> schedule;   // of passes, by group
  // samples in the graph's own batch; every stage's micro-batch is a multiple
  i64 unit = 1;

  bool empty() const { return stages.empty(); }
  int micro_batches(int stage) const {
    return static_cast<int>(mini_batch / stages[idx(stage)].micro_batch);
  }
  friend bool operator==(pipeline const&, pipeline const&) = default;
  u64 hash() const {
    core::hasher h;
    h.add(mini_batch).add(groups.size()).add(stages.size());
    for (device_range const& g : groups) h.add(g.first).add(g.count);
    for (pipeline_stage const& s : stages) {
      h.add(s.nodes.size());
      for (int v : s.nodes) h.add(v);
      h.add(s.group)
          .add(s.micro_batch)
          .add(s.k)
          .add(s.split_backward)
          .add(s.recompute)
          .add(s.shard_optimizer);
    }
    for (auto const& o : schedule) {
      h.add(o.size());
      for (pass_entry const& e : o) h.add(e.stage).add(static_cast<int>(e.what)).add(e.micro_batch);
    }
    return h.add(unit).value();
  }
};

}  // namespace tensorpar
