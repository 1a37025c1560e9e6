// src/kernels.cpp - compiled once for tensorpar::compiled: the processor's kernels, in float and bf16
#include <tensorpar/exec/cpu/eigen.hpp>

template class tensorpar::compute::eigen<float>;
