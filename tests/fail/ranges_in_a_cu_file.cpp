// expect: nvcc cannot read range-v3
#ifdef TENSORPAR_FAIL
#ifndef __CUDACC__
#define __CUDACC__
#endif
#endif
#include <tensorpar/ranges/ranges.hpp>

static_assert(ranges::viewable_range<ranges::iota_view<int, int>>);
