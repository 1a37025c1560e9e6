// tests/headers/processors.cpp - kernels of Eigen's packets, optimised for one kind of processor, as a program of a user's has them
#include <immintrin.h>                     // the compiler's own header of instructions first: its false warnings must stay away then too
#include <tensorpar/exec/cpu/common/eigen_packed.hpp>
#include <tensorpar/exec/cpu/eigen.hpp>

template class tensorpar::exec::detail::packed_product<float>;
template class tensorpar::exec::detail::packed_product<double>;
#ifdef __AVX512F__
template class tensorpar::compute::eigen<float>;
#endif
