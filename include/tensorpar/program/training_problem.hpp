// tensorpar/program/training_problem.hpp - what a planner is asked: one training step of a network
#pragma once
#include <string>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/program/core/scratch.hpp>

namespace tensorpar {

/// One training step. How hard to look for its plan is no part of it (search/effort.hpp).
struct training_problem {
  // the forward graph of as few samples as make sense, usually one: micro-batches are counted by it
  computation_graph graph;
  i64 samples = 0;                       // of a step, a multiple of the graph's; 0: as many as the graph has
  std::string loss = "loss";             // the output to minimise
  loss_reduction reduction = loss_reduction::as_graph;   // of that over samples, as in training_options
  optimizer_choice optimizer = {};
  // decides bytes of numbers and which of a device kind's rates counts. A graph that holds bf16 numbers
  // (`mixed_precision`) is trained in bf16 at least
  tensorpar::precision precision = tensorpar::precision::f32;
  // of the compute policy that will run the plan: `scratch_of<Policy>()` (exec/device/scratch_of.hpp). Its
  // memory is counted and its scalar's bytes are those of the plan; nobody's: none, and 4 bytes
  scratch_space scratch = {};
  std::string name = {};                 // a label for the plan

  i64 scalar_bytes() const { return scratch.scalar_bytes ? scratch.scalar_bytes : 4; }
  /// The format that plans are for: O(values).
  tensorpar::precision format() const {
    return precision == tensorpar::precision::f32 ? precision_in(graph) : precision;
  }
};

}  // namespace tensorpar
