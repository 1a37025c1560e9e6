// tensorpar/search/intra/sharding_knobs.hpp - where `optimize` looks, and how far
#pragma once
#include <optional>
#include <tensorpar/search/problem/shardings.hpp>
#include <tensorpar/search/solve/mapping_options.hpp>

namespace tensorpar::search {

/// Where `optimize` looks, and how far. For experts.
struct sharding_knobs {
  // nothing: by the size of graph and machine, see `usual_limits`
  std::optional<sharding_limits> shardings;
  // try parts of the machine too, where shardings and grain are not given
  bool fewer_devices = true;
  int grain = 0;                              // 0: every division up to 8 devices, quarters beyond
  // where the fastest does not fit: shard updates and weights, compute again
  bool save_memory = true;
  // where operators stand apart, look for an order in which they wait less (plan.order)
  bool reorder = true;
  mapping_options mapping;
};

}  // namespace tensorpar::search
