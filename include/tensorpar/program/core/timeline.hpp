// tensorpar/program/core/timeline.hpp - what happened when, as simulator and executor tell it
#pragma once
#include <string>
#include <tensorpar/core/config.hpp>
#include <vector>

namespace tensorpar {

enum class lane : int { compute, communication };

/// One task on one device. Times in seconds from the start of the step.
struct span {
  int device = 0;
  lane where = lane::compute;
  int task = 0;                   // index into the program's tasks
  std::string name;
  double start = 0, end = 0;
  // of communication: the level of links whose lane this is (`machine::lane_per_link`); 0 where there is one
  int link = 0;
  friend bool operator==(span const&, span const&) = default;
};
/// Bytes in use on a device from `time` on.
struct memory_sample {
  int device = 0;
  double time = 0;
  i64 bytes = 0;
  friend bool operator==(memory_sample const&, memory_sample const&) = default;
};
/// Spans ordered by (device, lane, link, start).
struct timeline {
  std::vector<span> spans;
  std::vector<memory_sample> memory;
  double seconds = 0;             // end of the last span
};

}  // namespace tensorpar
