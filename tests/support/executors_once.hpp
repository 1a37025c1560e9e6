// tests/support/executors_once.hpp - executors of compute::eigen on threads, compiled once (support/executors_once.cpp)
#pragma once
#include "eigen_once.hpp"
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/executor.hpp>

extern template class tensorpar::executor<tensorpar::compute::eigen<float>, tensorpar::comm::threads>;
extern template class tensorpar::executor<tensorpar::compute::eigen<double>, tensorpar::comm::threads>;
extern template class tensorpar::executor<tensorpar::compute::eigen<tensorpar::prime_field>, tensorpar::comm::threads>;
