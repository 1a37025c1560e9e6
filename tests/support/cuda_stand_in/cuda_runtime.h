// tests/support/cuda_stand_in/cuda_runtime.h - the CUDA runtime without a GPU: found before the toolkit's, for tests on the processor
#pragma once
#include "calls.hpp"
#include "graphs.hpp"
#include "launch.hpp"
#include <cstdio>

// --- GPUs
inline cudaError_t cudaGetLastError() {
  cudaError_t const s = cuda_stand_in::last_error, stays = cuda_stand_in::the_machine::get().state(cuda_stand_in::current_gpu);
  cuda_stand_in::last_error = cudaSuccess;
  return stays != cudaSuccess ? stays : s;
}
inline cudaError_t cudaGetDeviceCount(int* n) {
  *n = 0;
  return cuda_stand_in::called("cudaGetDeviceCount", cuda_stand_in::kind::plain, [&] {
    *n = cuda_stand_in::the_machine::get().gpus;
    return cudaSuccess;
  });
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int gpu) {
  return cuda_stand_in::called("cudaDeviceGetAttribute", cuda_stand_in::kind::plain, [&] {
    if (gpu < 0 || gpu >= cuda_stand_in::the_machine::get().gpus) return cudaErrorInvalidDevice;
    if (!value || what != cudaDevAttrComputeCapabilityMajor) return cudaErrorInvalidValue;
    *value = cuda_stand_in::the_machine::get().capability;
    return cudaSuccess;
  });
}
inline cudaError_t cudaSetDevice(int gpu) {
  return cuda_stand_in::called("cudaSetDevice", cuda_stand_in::kind::gives_back, [&] {
    if (gpu < 0 || gpu >= cuda_stand_in::the_machine::get().gpus) return cudaErrorInvalidDevice;
    cuda_stand_in::current_gpu = gpu;
    return cudaSuccess;
  });
}
inline cudaError_t cudaGetDevice(int* gpu) {
  *gpu = cuda_stand_in::current_gpu;
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() {
  return cuda_stand_in::called("cudaDeviceSynchronize", cuda_stand_in::kind::unsafe, [] {
    auto& all = cuda_stand_in::scheduler::get();
    if (all.capturing_on(cuda_stand_in::current_gpu)) return cudaErrorStreamCaptureUnsupported;
    all.wait_for_all(cuda_stand_in::current_gpu);
    return cudaSuccess;
  });
}

// --- memory
inline cudaError_t cudaMemGetInfo(std::size_t* unused, std::size_t* all) {
  return cuda_stand_in::called("cudaMemGetInfo", cuda_stand_in::kind::plain, [&] {
    auto& m = cuda_stand_in::the_machine::get();
    *all = m.memory_bytes;
    *unused = m.memory_bytes - m.memory.used[cuda_stand_in::current_gpu];
    return cudaSuccess;
  });
}
inline cudaError_t cudaMalloc(void** p, std::size_t n) {
  return cuda_stand_in::called("cudaMalloc", cuda_stand_in::kind::unsafe, [&] {
    auto& m = cuda_stand_in::the_machine::get();
    *p = n ? m.memory.allocate(cuda_stand_in::current_gpu, n, m.memory_bytes) : nullptr;
    return *p || !n ? cudaSuccess : cudaErrorMemoryAllocation;
  });
}
inline cudaError_t cudaFree(void* p) {
  return cuda_stand_in::called("cudaFree", cuda_stand_in::kind::unsafely_gives_back, [&] {
    auto& m = cuda_stand_in::the_machine::get();
    if (!p) return cudaSuccess;
    int const gpu = m.memory.owner(p, 1);
    if (gpu >= 0 && m.free_waits) cuda_stand_in::scheduler::get().finish_all(gpu);
    return m.memory.release(p) ? cudaSuccess : cudaErrorInvalidValue;
  });
}
inline cudaError_t cudaHostAlloc(void** p, std::size_t n, unsigned) {
  return cuda_stand_in::called("cudaHostAlloc", cuda_stand_in::kind::unsafe, [&] {
    *p = n ? cuda_stand_in::the_machine::get().pinned.allocate(0, n, std::size_t{1} << 40) : nullptr;
    return cudaSuccess;
  });
}
inline cudaError_t cudaFreeHost(void* p) {
  return cuda_stand_in::called("cudaFreeHost", cuda_stand_in::kind::unsafely_gives_back, [&] {
    return p && !cuda_stand_in::the_machine::get().pinned.release(p) ? cudaErrorInvalidValue : cudaSuccess;
  });
}

namespace cuda_stand_in {
/// Is this what the direction says: all of one GPU's, or no GPU's?
inline bool fits(void const* p, std::size_t n, bool device) {
  int const owner = the_machine::get().memory.owner(p, n);
  return device ? owner >= 0 : owner == -1;
}
inline cudaError_t copy(void* to, void const* from, std::size_t n, cudaMemcpyKind k, std::uintptr_t held) {
  the_machine& m = the_machine::get();
  bool const in = k == cudaMemcpyDeviceToHost || k == cudaMemcpyDeviceToDevice;
  bool const out = k == cudaMemcpyHostToDevice || k == cudaMemcpyDeviceToDevice;
  if (!fits(from, n, in) || !fits(to, n, out) || (held && !m.pinned.piece_of(reinterpret_cast<void const*>(held)))) {
    m.complain("a copy of " + std::to_string(n) + " bytes from or to memory that is not there any more");
    return cudaErrorIllegalAddress;
  }
  int const here = scheduler::get().opened(), other[] = {m.memory.owner(from, n), m.memory.owner(to, n)};
  for (int g : other) if (g >= 0 && g != here) m.memory.allow(g, true);
  std::memcpy(to, from, n);
  for (int g : other) if (g >= 0 && g != here) m.memory.allow(g, false);
  return cudaSuccess;
}
}  // namespace cuda_stand_in

/// Later than any GPU: numbers of the host's are read, and written, when the copy's turn has come, pinned or not.
inline cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t n, cudaMemcpyKind k, cudaStream_t s = nullptr) {
  return cuda_stand_in::called("cudaMemcpyAsync", cuda_stand_in::kind::plain, [&]() -> cudaError_t {
    cuda_stand_in::queue* const q = cuda_stand_in::queue_of(s);
    if (!q) return cudaErrorInvalidResourceHandle;
    if (n == 0) return cudaSuccess;
    bool const in = k == cudaMemcpyDeviceToHost || k == cudaMemcpyDeviceToDevice,
               out = k == cudaMemcpyHostToDevice || k == cudaMemcpyDeviceToDevice;
    if (k == cudaMemcpyDefault || !cuda_stand_in::fits(from, n, in) || !cuda_stand_in::fits(to, n, out)) return cudaErrorInvalidValue;
    std::uintptr_t const held = cuda_stand_in::the_machine::get().pinned.piece_of(in ? to : from);      // must live until then
    return cuda_stand_in::scheduler::get().ask(*q, [=] { return cuda_stand_in::copy(to, from, n, k, held); });
  });
}
inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t n, cudaStream_t s = nullptr) {
  return cuda_stand_in::called("cudaMemsetAsync", cuda_stand_in::kind::plain, [&]() -> cudaError_t {
    cuda_stand_in::queue* const q = cuda_stand_in::queue_of(s);
    if (!q) return cudaErrorInvalidResourceHandle;
    if (!cuda_stand_in::fits(to, n, true)) return cudaErrorInvalidValue;
    return cuda_stand_in::scheduler::get().ask(*q, [=]() -> cudaError_t {
      if (!cuda_stand_in::fits(to, n, true)) {
        cuda_stand_in::the_machine::get().complain("memory is set that is not there any more");
        return cudaErrorIllegalAddress;
      }
      cuda_stand_in::device_memory::set(to, value, n);
      return cudaSuccess;
    });
  });
}

// --- kernels
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(cudaLaunchConfig_t const* c, void (*kernel)(Parameters...), Arguments&&... a) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "a GPU gets the bytes of a kernel's arguments");
  auto const call = [kernel, ... x = static_cast<Parameters>(a)] { kernel(x...); };
  using body = decltype(call);
  static_assert(alignof(body) <= alignof(std::max_align_t));
  return cuda_stand_in::launch(*c, (sizeof(Parameters) + ... + 0), &call, sizeof call, [](void const* f) { (*static_cast<body*>(f))(); });
}
