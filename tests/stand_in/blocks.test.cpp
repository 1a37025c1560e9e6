// tests/stand_in/blocks.test.cpp - the GPU that is played: lanes, barriers, warps; what is wrong in a kernel is seen
#include <cuda_runtime.h>
#include <doctest/doctest.h>
#include <numeric>
#include <vector>

#include "gpu.hpp"

using namespace gpu_tests;

namespace {

/// Every lane gives its number, and takes its neighbours'. Barrier: whether it is waited in between.
template <bool Barrier> __global__ void neighbours(int* out) {
  int* const room = out + blockDim.x * gridDim.x + blockIdx.x * blockDim.x;
  int const i = static_cast<int>(threadIdx.x), n = static_cast<int>(blockDim.x);
  room[i] = i;
  if (Barrier) __syncthreads();
  out[static_cast<int>(blockIdx.x) * n + i] = room[(i + 1) % n] + room[(i + n - 1) % n];
}
/// A sum by a tree, of what every lane has in shared memory. Barrier: whether it is waited before the next level.
template <bool Barrier> __device__ void tree(int* room, int n) {
  for (int half = n / 2; half > 0; half /= 2) {
    if (static_cast<int>(threadIdx.x) < half) room[threadIdx.x] += room[threadIdx.x + static_cast<unsigned>(half)];
    if (Barrier) __syncthreads();
  }
}
template <bool Barrier> __global__ void sum_of_lanes(int* out) {
  int* const room = out + gridDim.x + blockIdx.x * blockDim.x;
  room[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  tree<Barrier>(room, static_cast<int>(blockDim.x));
  if (threadIdx.x == 0) out[blockIdx.x] = room[0];
}
template <class T> __device__ T* room_of_a_template() {
  __shared__ T room[4];
  return room;
}
__global__ void what_shared_memory_held(unsigned* out) {
  alignas(16) __shared__ unsigned room[4];
  out[blockIdx.x * blockDim.x + threadIdx.x] = room[threadIdx.x];
  out[16 + blockIdx.x * blockDim.x + threadIdx.x] = room_of_a_template<unsigned>()[threadIdx.x];
  room[threadIdx.x] = room_of_a_template<unsigned>()[threadIdx.x] = 7;
}
__global__ void half_meets(int*) {
  if (threadIdx.x < 17) __syncthreads();
}
__global__ void half_of_a_warp_gives(int* out) {
  if (threadIdx.x % 32 < 16) out[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1, 1);
}
__global__ void warp_and_block(int* out) {
  if (threadIdx.x < 32) __syncwarp();
  else __syncthreads();
  out[threadIdx.x] = 1;
}
__global__ void reaches(int* out, long at) { out[at + threadIdx.x] = 1; }
struct three { int a, b, c; };
__global__ void by_number(int* out, three x) {
  out[((blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x) * blockDim.x * blockDim.y + threadIdx.y * blockDim.x + threadIdx.x] =
      x.a * static_cast<int>(threadIdx.x) + x.b * static_cast<int>(threadIdx.y) + x.c * static_cast<int>(blockIdx.y);
}
template <class T> __global__ void sums_by_warps(T* out) {
  T x = static_cast<T>(threadIdx.x);
  for (unsigned by = 16; by > 0; by /= 2) x += __shfl_down_sync(0xffffffffu, x, by);
  T y = static_cast<T>(threadIdx.x);
  for (int bits = 16; bits > 0; bits /= 2) y += __shfl_xor_sync(0xffffffffu, y, bits);
  T const first = __shfl_sync(0xffffffffu, x, 0);
  out[threadIdx.x] = first == y ? y : T(-1);
}
/// In a part of a warp: groups of 8, and lanes that do not take part.
__global__ void part_of_a_warp(int* out) {
  int x = static_cast<int>(threadIdx.x);
  if (threadIdx.x < 24) {
    x = __shfl_down_sync(0x00ffffffu, x, 4, 8);
    __syncwarp(0x00ffffffu);
  }
  out[threadIdx.x] = x;
}

/// What 4 blocks of n lanes write, in this order of lanes.
std::vector<int> under(lane_order order, void (*kernel)(int*), unsigned n, std::size_t results) {
  gpus const g;
  g.m.lanes = order;
  g.m.minds_races = false;
  numbers<int> out(results + 4 * n);
  REQUIRE(ask(kernel, 4, n, out.at()) == cudaSuccess);
  auto all = out.read();
  all.resize(results);
  return all;
}
constexpr lane_order orders[] = {lane_order::forward, lane_order::backward, lane_order::shuffled};

}  // namespace

TEST_CASE("lanes see what others wrote before a barrier, in any order; without the barrier they do not in some") {
  std::vector<int> want(4 * 96);
  for (int i = 0; i < 4 * 96; ++i) want[static_cast<std::size_t>(i)] = (i % 96 + 1) % 96 + (i % 96 + 95) % 96;
  for (lane_order o : orders) {
    CHECK(under(o, neighbours<true>, 96, 4 * 96) == want);
    CHECK(under(o, neighbours<false>, 96, 4 * 96) != want);
    CHECK(under(o, sum_of_lanes<true>, 128, 4) == std::vector<int>(4, 127 * 64));
  }
  CHECK(under(lane_order::forward, sum_of_lanes<false>, 128, 4) != std::vector<int>(4, 127 * 64));
  CHECK(under(lane_order::shuffled, sum_of_lanes<false>, 128, 4) != std::vector<int>(4, 127 * 64));
}

TEST_CASE("launches of one kernel after another have different orders, the same ones every time") {
  auto const thrice = [] {
    gpus const g;
    g.m.minds_races = false;
    std::vector<std::vector<int>> r;
    for (int k = 0; k < 3; ++k) {
      numbers<int> out(1024);
      REQUIRE(ask(neighbours<false>, 1, 256, out.at()) == cudaSuccess);
      r.push_back(out.read());
    }
    return r;
  };
  auto const a = thrice();
  CHECK(a[0] != a[1]);
  CHECK(a[1] != a[2]);
  CHECK(a == thrice());
}

TEST_CASE("shared memory holds nothing that is of use before a block writes it") {
  gpus const g;
  numbers<unsigned> out(32);
  REQUIRE(ask(what_shared_memory_held, 4, 4, out.at()) == cudaSuccess);
  CHECK(out.read() == std::vector<unsigned>(32, ~0u));
}

TEST_CASE("a barrier that not all lanes reach ends the launch, in words, and the GPU is of no use from then on") {
  gpus g;
  numbers<int> out(64);
  for (auto kernel : {half_meets, half_of_a_warp_gives, warp_and_block}) {
    g.again();
    REQUIRE(ask(kernel, 1, 64, out.at()) == cudaSuccess);
    if (kernel == warp_and_block) {                        // a warp that is through waits for nobody; the others would wait for ever
      CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
      CHECK(g.complained("32 (32, 33, 34, 35, ...) wait at it"));
      continue;
    }
    CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
    CHECK(g.complained("a barrier that not all lanes of a block reach"));
    CHECK(ask(reaches, 1, 1, out.at(), 0l) == cudaErrorLaunchFailure);
    CHECK(cudaGetLastError() == cudaErrorLaunchFailure);
    CHECK(cudaGetLastError() == cudaErrorLaunchFailure);   // stays
  }
  g.again();
  REQUIRE(ask(reaches, 1, 64, out.at(), 0l) == cudaSuccess);
  CHECK(out.read() == std::vector<int>(64, 1));            // lanes that were given up are forgotten
}

TEST_CASE("a kernel that leaves its memory, or goes to another GPU's, has touched an illegal address") {
  gpus g;
  g.m.gpus = 2;
  numbers<int> out(64);
  std::vector<void*> freed(1);
  REQUIRE(cudaMalloc(&freed[0], 4096) == cudaSuccess);
  REQUIRE(cudaFree(freed[0]) == cudaSuccess);
  REQUIRE(cudaSetDevice(1) == cudaSuccess);
  numbers<int> foreign(64);
  REQUIRE(cudaSetDevice(0) == cudaSuccess);
  for (int* p : {out.at() + 4096, static_cast<int*>(freed[0]), foreign.at()}) {
    g.again();
    REQUIRE(ask(reaches, 1, 32, p, 0l) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    CHECK(g.complained("which is no memory of its GPU"));
  }
  g.again();
}

TEST_CASE("numbers of lanes and blocks, in three dimensions; arguments are those of the launch") {
  gpus const g;
  numbers<int> out(2 * 3 * 4 * 6);
  cudaLaunchConfig_t c{};
  c.gridDim = dim3(2, 3, 4);
  c.blockDim = dim3(3, 2);
  three x{1, 10, 100};
  REQUIRE(cudaLaunchKernelEx(&c, by_number, out.at(), x) == cudaSuccess);
  x = {};
  auto const got = out.read();
  for (int k = 0; k < 2 * 3 * 4 * 6; ++k) CHECK(got[static_cast<std::size_t>(k)] == k % 3 + 10 * (k / 3 % 2) + 100 * (k / 12 % 3));
}

TEST_CASE("warps add up by shuffles, of 4 bytes and of 8, under every order; parts of a warp too") {
  for (lane_order o : orders) {
    gpus const g;
    g.m.lanes = o;
    auto const check = [&]<class T>(T) {
      numbers<T> out(96);
      REQUIRE(ask(sums_by_warps<T>, 1, 96, out.at()) == cudaSuccess);
      auto const got = out.read();
      for (int k = 0; k < 96; ++k) CHECK(got[static_cast<std::size_t>(k)] == static_cast<T>(496 + k / 32 * 1024));
    };
    check(int{});
    check(float{});
    check(double{});
    numbers<int> out(32);
    REQUIRE(ask(part_of_a_warp, 1, 32, out.at()) == cudaSuccess);
    auto const got = out.read();
    for (int k = 0; k < 32; ++k) CHECK(got[static_cast<std::size_t>(k)] == (k < 24 && k % 8 < 4 ? k + 4 : k));
  }
}

TEST_CASE("launches that no GPU takes are refused when they are asked for") {
  gpus const g;
  CHECK(ask(reaches, 1, 1025, static_cast<int*>(nullptr), 0l) == cudaErrorInvalidConfiguration);
  CHECK(ask(reaches, 0, 32, static_cast<int*>(nullptr), 0l) == cudaErrorInvalidConfiguration);
  CHECK(ask(reaches, 1, 0, static_cast<int*>(nullptr), 0l) == cudaErrorInvalidConfiguration);
  cudaLaunchConfig_t c{};
  c.gridDim = dim3(1, 65536);
  CHECK(cudaLaunchKernelEx(&c, reaches, static_cast<int*>(nullptr), 0l) == cudaErrorInvalidConfiguration);
  c.gridDim = dim3(1);
  c.dynamicSmemBytes = std::size_t{1} << 20;
  CHECK(cudaLaunchKernelEx(&c, reaches, static_cast<int*>(nullptr), 0l) == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaGetLastError() == cudaSuccess);
}
