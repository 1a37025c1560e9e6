// tests/stand_in/blocks.test.cpp - the GPU that is played: lanes, barriers, warps; what is wrong in a kernel is seen
#include <cuda_runtime.h>
#include <doctest/doctest.h>
#include <vector>

using namespace cuda_stand_in;

namespace {

template <class... P, class... A> cudaError_t launch(void (*kernel)(P...), unsigned blocks, unsigned lanes, A... a) {
  cudaLaunchConfig_t c{};
  c.gridDim = dim3(blocks);
  c.blockDim = dim3(lanes);
  return cudaLaunchKernelEx(&c, kernel, a...);
}

__global__ void neighbours(int* out) {
  __shared__ int room[256];
  int const i = static_cast<int>(threadIdx.x);
  room[i] = i;
  __syncthreads();
  out[i] = room[(i + 1) % 256] + room[(i + 255) % 256];
}

}  // namespace

TEST_CASE("lanes of a block see what others wrote before a barrier") {
  int* p = nullptr;
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&p), 1024) == cudaSuccess);
  REQUIRE(launch(neighbours, 1, 256, p) == cudaSuccess);
  std::vector<int> got(256);
  REQUIRE(cudaMemcpyAsync(got.data(), p, 1024, cudaMemcpyDeviceToHost) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(nullptr) == cudaSuccess);
  for (int i = 0; i < 256; ++i) CHECK(got[static_cast<std::size_t>(i)] == (i + 1) % 256 + (i + 255) % 256);
  REQUIRE(cudaFree(p) == cudaSuccess);
}
