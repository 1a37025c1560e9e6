// tensorpar/exec/cuda/resources.cuh - where streams, events and memory of GPUs come from: the driver, or the
// caller
#pragma once
#include <cstdint>
#include <mutex>
#include <string>
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/cuda/door.cuh>

namespace tensorpar {

/// The driver's streams, events and memory. Whoever has pools of them derives a class that overrides what it
/// hands out by itself, and gives it to a cuda_memory: all that works there, communicators included, then
/// asks that class.
/// Calls come from any thread, several at once; those that make come with the GPU current and throw `error`
/// where they cannot. All that was made is given back before the object goes, for its users share it. Calls
/// that give back say nothing: destructors make them.
class cuda_resources {
 public:
  cuda_resources() = default;
  cuda_resources(cuda_resources const&) = delete;
  cuda_resources& operator=(cuda_resources const&) = delete;
  virtual ~cuda_resources() = default;

  /// A stream that no other handle of this library works in: two that shared one might wait for each other.
  virtual cudaStream_t make_stream(int /*gpu*/) {
    cudaStream_t s = nullptr;
    cuda_check(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking), "cudaStreamCreate");
    return s;
  }
  /// What the stream was given may still be going on.
  virtual void end_stream(int /*gpu*/, cudaStream_t s) noexcept { cudaStreamDestroy(s); }

  /// `flags`: cudaEventDefault, or cudaEventDisableTiming for an event whose time nobody asks.
  virtual cudaEvent_t make_event(int /*gpu*/, unsigned flags) {
    cudaEvent_t e = nullptr;
    cuda_check(cudaEventCreateWithFlags(&e, flags), "cudaEventCreate");
    return e;
  }
  virtual void end_event(int /*gpu*/, cudaEvent_t e) noexcept { cudaEventDestroy(e); }

  /// `bytes` > 0 of the GPU's memory at a multiple of 256, for work that `stream` is given from now on.
  virtual void* allocate(int gpu, i64 bytes, cudaStream_t /*stream*/) {
    void* p = nullptr;
    if (cudaMalloc(&p, idx(bytes)) == cudaSuccess) return p;
    std::size_t unused = 0, all = 0;
    cudaGetLastError();
    cuda_check(cudaMemGetInfo(&unused, &all), "cudaMemGetInfo");
    throw error("no room for " + std::to_string(bytes) + " bytes", "GPU " + std::to_string(gpu),
                std::to_string(unused) + " of " + std::to_string(all) + " bytes are free");
  }
  /// Of what `allocate` returned for this stream, whose work may still use it; after a failure other streams'
  /// work may, too.
  // waits for what uses it
  virtual void release(int /*gpu*/, void* p, i64 /*bytes*/, cudaStream_t /*stream*/) noexcept { cudaFree(p); }
};

/// Memory from a buffer of the caller's, which is in this GPU's memory and outlives this: one thing after
/// another, and nothing returns to it. The rest is the driver's.
class cuda_buffer : public cuda_resources {
  int gpu_;
  std::uintptr_t next_, end_;
  std::mutex taking_;

 public:
  cuda_buffer(int gpu, void* at, i64 bytes)
      : gpu_(gpu),
        next_(reinterpret_cast<std::uintptr_t>(at)),
        end_(next_ + static_cast<std::uintptr_t>(bytes)) {}
  void* allocate(int gpu, i64 bytes, cudaStream_t) override {
    if (gpu != gpu_)
      throw error("GPU " + std::to_string(gpu) + " is to take memory of GPU " + std::to_string(gpu_) + "'s",
                  "cuda_buffer", "a buffer for each GPU");
    std::lock_guard const held(taking_);
    std::uintptr_t const at = (next_ + 255) / 256 * 256;
    if (at > end_ || static_cast<std::uintptr_t>(bytes) > end_ - at)
      throw error("no room for " + std::to_string(bytes) + " bytes",
                  "the buffer that GPU " + std::to_string(gpu) + "'s memory was handed",
                  std::to_string(at > end_ ? 0 : end_ - at) + " bytes are left");
    next_ = at + static_cast<std::uintptr_t>(bytes);
    return reinterpret_cast<void*>(at);
  }
  void release(int, void*, i64, cudaStream_t) noexcept override { cudaDeviceSynchronize(); }
};

}  // namespace tensorpar
