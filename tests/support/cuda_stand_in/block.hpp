// tests/support/cuda_stand_in/block.hpp - what kernels are written in: which lane this is, barriers, shuffles; and how a launch is run
#pragma once
#include "machine.hpp"
#include <cstring>
#include <functional>
#include <string>
#include <type_traits>

inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

namespace cuda_stand_in {

/// All blocks of a launch, one at a time, in this thread (blocks.cpp). What went wrong is told in words, too.
cudaError_t run_blocks(dim3 grid, dim3 threads, lane_order order, std::uint64_t launch, std::function<void()> const& body,
                       std::string& words);
/// Is a lane of a kernel running in this thread? Calls below are a programmer's error where none is.
bool in_kernel();
/// The launch ends here, in this lane. Nothing on its stack is destroyed.
void fail_kernel(cudaError_t status, char const* what);
unsigned lane_in_warp();
void block_barrier();
/// A number of another lane's; only where asked for is what lanes of the mask wrote before there for all of them after it.
std::uint64_t warp_exchange(unsigned mask, unsigned from, std::uint64_t x, bool in_order = false);

template <class T> std::uint64_t as_word(T x) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8), "shuffles take 4 or 8 bytes");
  std::uint64_t w = 0;
  std::memcpy(&w, &x, sizeof x);
  return w;
}
template <class T> T shuffled(unsigned mask, unsigned from, T x) {
  std::uint64_t const w = warp_exchange(mask, from, as_word(x));
  std::memcpy(&x, &w, sizeof x);
  return x;
}

}  // namespace cuda_stand_in

inline void __syncthreads() { cuda_stand_in::block_barrier(); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { cuda_stand_in::warp_exchange(mask, cuda_stand_in::lane_in_warp(), 0, true); }
template <class T> T __shfl_sync(unsigned mask, T x, int from, int width = 32) {
  int const l = static_cast<int>(cuda_stand_in::lane_in_warp());
  return cuda_stand_in::shuffled(mask, static_cast<unsigned>(l / width * width + from % width), x);
}
/// As on a GPU: who looks past the end of its part of the warp gets its own.
template <class T> T __shfl_down_sync(unsigned mask, T x, unsigned by, int width = 32) {
  int const l = static_cast<int>(cuda_stand_in::lane_in_warp()), to = l + static_cast<int>(by);
  return cuda_stand_in::shuffled(mask, static_cast<unsigned>(to / width == l / width ? to : l), x);
}
template <class T> T __shfl_xor_sync(unsigned mask, T x, int bits, int width = 32) {
  int const l = static_cast<int>(cuda_stand_in::lane_in_warp()), to = l ^ bits;
  return cuda_stand_in::shuffled(mask, static_cast<unsigned>(to < (l / width + 1) * width ? to : l), x);
}
