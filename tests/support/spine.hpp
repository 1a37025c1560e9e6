// tests/support/spine.hpp - training runs by compute::eigen on threads, compiled once, on small graphs under random spreads
#pragma once
#include "support/eigen_once.hpp"
#include "training.hpp"
#include <tensorpar/exec/threads.hpp>

namespace tests {

template <class S, class Comm = comm::threads> using executor_of = executor<compute::eigen<S>, Comm>;

}  // namespace tests

// compiled once for all tests (support/spine.cpp)
extern template class tensorpar::executor<tensorpar::compute::eigen<float>, tensorpar::comm::threads>;
extern template class tensorpar::executor<tensorpar::compute::eigen<double>, tensorpar::comm::threads>;
extern template class tensorpar::executor<tensorpar::compute::eigen<tensorpar::prime_field>, tensorpar::comm::threads>;
