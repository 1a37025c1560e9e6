// tests/support/spine.hpp - training runs by compute::eigen on threads, on small graphs under random shardings
#pragma once
#include "executors_once.hpp"
#include "training.hpp"

namespace tests {

template <class S, class Comm = comm::threads> using executor_of = executor<compute::eigen<S>, Comm>;

}  // namespace tests
