// tensorpar/search/pipeline/stages/graph_stage_options.hpp - what stages of a computation graph are asked for
#pragma once
#include <string>
#include <tensorpar/ir/loss_reduction.hpp>
#include <tensorpar/op/kinds/update.hpp>
#include <tensorpar/program/core/scratch.hpp>

namespace tensorpar::search {

/// What a training step is made of and which degrees are offered.
struct graph_stage_options {
  i64 mini_batch = 1;  // samples
  std::string loss = "loss";
  optimizer_choice optimizer;
  i64 scalar_bytes = 4;
  // of programs that fit_stages unrolls; estimates of memory know nothing of it
  scratch_space scratch;
  int max_data = 1 << 20, max_tensor = 1;         // powers of two up to these and the number of devices
  bool recompute = false, shard_optimizer = false;  // offer these too
  loss_reduction reduction = loss_reduction::as_graph;   // of micro-batches' losses, as in training_options
};

}  // namespace tensorpar::search
