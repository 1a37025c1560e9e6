// tensorpar/tool/repriced.hpp - the same plan on a changed machine: its step simulated again, nothing
// unrolled and nothing searched
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <utility>

namespace tensorpar::tools {

/// What a plan's step would take, and what it would lack.
struct repriced {
  double seconds = 0;
  i64 lacks = 0;    // bytes that a device lacks at most; 0: it fits
  int device = -1;  // that device
};

/// A plan's program, kept to be simulated on other machines. A program depends on shardings and devices'
/// numbers alone, so it is the same for machines that differ in links, memory and rates. Devices that do the
/// same are listed once (`program::listed_for`).
class step_again {
  program program_;
  std::size_t devices_;

 public:
  /// `forward`: the graph that the plan runs. O(unrolling).
  step_again(computation_graph const& forward, plan const& p, scratch_space const& scratch = {})
      : program_(step_to_simulate(forward, p, "loss", scratch).program), devices_(p.cluster.device.size()) {}

  /// Throws `error` for another number of devices. O(tasks * devices that are listed).
  repriced on(machine const& other) const {
    if (other.device.size() != devices_)
      throw error(std::to_string(other.size()) + " devices for a step on " + std::to_string(devices_),
                  "step_again", "a machine with as many devices");
    repriced r;
    r.seconds = simulate(program_, other, cost::analytical{}, {.memory = false}).seconds;
    for (int d = 0; d < other.size(); ++d) {
      i64 const lacks = program_.arena[idx(d)] - other.kind_of(d).memory;
      if (lacks > r.lacks) r = {r.seconds, lacks, d};
    }
    return r;
  }
};

}  // namespace tensorpar::tools
