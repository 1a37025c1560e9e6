// tensorpar/core/numbers.hpp - the units of a profile's numbers, and what is refused as a number
#pragma once
#include <cstddef>
#include <tensorpar/core/config.hpp>

namespace tensorpar::core {

/// How the compute times of a profile are to be read. Published inputs mix units: in dnn-partitioning's
/// throughput layer graphs, and in Piper's `gnmt.json` and `resnet.json`, compute is in milliseconds while
/// communication comes out in seconds, so that communication counts a thousand times too little. Nothing in a
/// file says so, hence the caller must.
enum class profile_units {
  as_published,             ///< numbers as they stand: comparable with published results, whatever they mean
  compute_in_milliseconds,  ///< compute times are divided by 1000; then all times are seconds
};

/// The factor that compute times are multiplied by.
constexpr double compute_scale(profile_units u) {
  return u == profile_units::compute_in_milliseconds ? 1e-3 : 1.0;
}

/// Numbers beyond this are refused: sums over a graph stay finite and keep their digits.
inline constexpr double profile_max_number = 1e18;
/// Graphs beyond this are refused.
inline constexpr int profile_max_nodes = 100'000;
inline constexpr int profile_max_edges = 1'000'000;

namespace detail {
/// An int as an index.
}  // namespace detail

}  // namespace tensorpar::core
