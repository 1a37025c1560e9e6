// tests/support/cuda_stand_in/nvtx3/nvToolsExt.h - ranges that nobody looks at; only that each ends
#pragma once

namespace cuda_stand_in {
inline thread_local int nvtx_depth = 0;
}
inline int nvtxRangePushA(char const*) { return cuda_stand_in::nvtx_depth++; }
inline int nvtxRangePop() { return --cuda_stand_in::nvtx_depth; }
