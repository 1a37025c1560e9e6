// tensorpar/exec/cpu/common/eigen_door.hpp - the only door to Eigen
#pragma once
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
// g++ 12 says it of its own header of AVX-512 (PR 105593), included here
#pragma GCC diagnostic ignored "-Wuninitialized"
// where Eigen's folder is one of -I, not of -isystem
#pragma GCC diagnostic ignored "-Wunused-variable"
#endif
// X11 defines it, and Eigen has the name; `I` is C's.
#pragma push_macro("I")
#pragma push_macro("Success")
#undef I
#undef Success
#include <Eigen/Core>
#pragma pop_macro("Success")
#pragma pop_macro("I")
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
