// tests/support/cpu_seconds.hpp - how long work takes, as far as other processes do not matter
#pragma once
#include <ctime>

namespace tests {

/// The least processor time of five runs, in seconds.
template <class Work> double cpu_seconds(Work const& work) {
  double least = 1e9;
  for (int k = 0; k < 5; ++k) {
    std::clock_t const start = std::clock();
    work();
    double const took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (took < least) least = took;
  }
  return least;
}

}  // namespace tests
