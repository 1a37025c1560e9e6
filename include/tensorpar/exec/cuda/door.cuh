// tensorpar/exec/cuda/door.cuh - the door to the CUDA toolkit: its headers, and its statuses as errors
#pragma once
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>
#include <string>
#include <tensorpar/core/error.hpp>

namespace tensorpar {

/// Throws `error` unless the call succeeded: every call of the toolkit goes through here.
inline void cuda_check(cudaError_t status, char const* what) {
  if (status != cudaSuccess)
    throw error(std::string(cudaGetErrorString(status)) + " (" + cudaGetErrorName(status) + ")", what,
                "cudaSuccess");
}
inline void cuda_check(cublasStatus_t status, char const* what) {
  if (status != CUBLAS_STATUS_SUCCESS)
    throw error(cublasLtGetStatusString(status), what, "CUBLAS_STATUS_SUCCESS");
}

/// GPUs of this process; 0 where there is no driver.
inline int cuda_devices() {
  int n = 0;
  if (cudaGetDeviceCount(&n) == cudaSuccess) return n;
  cudaGetLastError();                          // forgotten: having none is an answer
  return 0;
}

}  // namespace tensorpar
