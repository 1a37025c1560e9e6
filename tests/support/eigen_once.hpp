// tests/support/eigen_once.hpp - the kernels of compute::eigen, compiled once (support/eigen_once.cpp)
#pragma once
#include <tensorpar/exec/cpu/eigen.hpp>
#include <tensorpar/core/prime_field.hpp>

extern template class tensorpar::compute::eigen<float>;
extern template class tensorpar::compute::eigen<double>;
extern template class tensorpar::compute::eigen<tensorpar::prime_field>;
