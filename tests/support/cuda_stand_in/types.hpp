// tests/support/cuda_stand_in/types.hpp - the words of CUDA: keywords as macros, statuses, flags, sizes; numbers are the toolkit's
#pragma once
#include <cstddef>
#include <cstdint>

// Device code is host code here. __CUDACC__ stays undefined: nothing is compiled by nvcc.
#define __CUDA_ARCH__ 900
#define __launch_bounds__(...)
#define __global__
#define __device__
#define __host__
/// One for all lanes, which are fibers of one thread; attributes such as alignas stand before it. What is of a thread lies together, so
/// that all of it can be poisoned (shared.hpp).
#define __shared__ static thread_local

#define CUDA_STAND_IN_STATUSES(X)                                                                                                        \
  X(cudaSuccess, 0, "no error")                                                                                                          \
  X(cudaErrorInvalidValue, 1, "invalid argument")                                                                                        \
  X(cudaErrorMemoryAllocation, 2, "out of memory")                                                                                       \
  X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                                                                  \
  X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected")                                                                        \
  X(cudaErrorInvalidDevice, 101, "invalid device ordinal")                                                                               \
  X(cudaErrorECCUncorrectable, 214, "uncorrectable ECC error encountered")                                                               \
  X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle")                                                                      \
  X(cudaErrorNotReady, 600, "device not ready")                                                                                          \
  X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered")                                                            \
  X(cudaErrorLaunchOutOfResources, 701, "too many resources requested for launch")                                                       \
  X(cudaErrorMisalignedAddress, 716, "misaligned address")                                                                               \
  X(cudaErrorLaunchFailure, 719, "unspecified launch failure")                                                                           \
  X(cudaErrorNotSupported, 801, "operation not supported")                                                                               \
  X(cudaErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing")                                          \
  X(cudaErrorStreamCaptureInvalidated, 901, "operation failed due to a previous error during capture")                                   \
  X(cudaErrorStreamCaptureMerge, 902, "operation would result in a merge of separate capture sequences")                                 \
  X(cudaErrorStreamCaptureUnmatched, 903, "capture was not ended in the same stream as it began")                                        \
  X(cudaErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work")                                                           \
  X(cudaErrorStreamCaptureIsolation, 905, "dependency created on uncaptured work in another stream")                                     \
  X(cudaErrorStreamCaptureImplicit, 906, "operation would make the legacy stream depend on a capturing blocking stream")                 \
  X(cudaErrorCapturedEvent, 907, "operation not permitted on an event last recorded in a capturing stream")                              \
  X(cudaErrorStreamCaptureWrongThread, 908, "attempt to terminate a thread-local capture sequence from another thread")                  \
  X(cudaErrorUnknown, 999, "unknown error")

enum cudaError {
#define X(name, number, words) name = number,
  CUDA_STAND_IN_STATUSES(X)
#undef X
};
using cudaError_t = cudaError;
inline char const* cudaGetErrorName(cudaError_t s) {
  switch (s) {
#define X(name, number, words) case name: return #name;
    CUDA_STAND_IN_STATUSES(X)
#undef X
  }
  return "unrecognized error code";
}
inline char const* cudaGetErrorString(cudaError_t s) {
  switch (s) {
#define X(name, number, words) case name: return words;
    CUDA_STAND_IN_STATUSES(X)
#undef X
  }
  return "unrecognized error code";
}

struct uint3 { unsigned x, y, z; };
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
using cudaGraph_t = CUgraph_st*;
using cudaGraphExec_t = CUgraphExec_st*;

inline constexpr unsigned cudaStreamDefault = 0, cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2,
                          cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2;
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};
enum cudaDeviceAttr { cudaDevAttrComputeCapabilityMajor = 75 };
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed };
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive, cudaStreamCaptureStatusInvalidated };
struct cudaLaunchAttribute;
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};
enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 };
using cudaDataType = cudaDataType_t;
