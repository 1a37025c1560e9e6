// tests/support/cuda_stand_in/launch.hpp - a launch of a kernel: its limits, its arguments now, addresses that it may not touch
#pragma once
#include "block.hpp"
#include "calls.hpp"
#include <csignal>
#include <cstddef>

namespace cuda_stand_in {

/// While it lives, an address that a kernel may not touch ends the launch and not the program.
class guarded {
  struct sigaction before_{};
  static void handle(int number, siginfo_t* what, void*) {
    if (!in_kernel()) {
      std::signal(number, SIG_DFL);            // the host touched it: come again, and end
      return;
    }
    char words[80];
    std::snprintf(words, sizeof words, "a kernel touches %p, which is no memory of its GPU", what->si_addr);
    fail_kernel(cudaErrorIllegalAddress, words);
  }

 public:
  guarded() {
    struct sigaction a{};
    a.sa_sigaction = handle;
    a.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &a, &before_);
  }
  guarded(guarded const&) = delete;
  guarded& operator=(guarded const&) = delete;
  ~guarded() { sigaction(SIGSEGV, &before_, nullptr); }
};

inline cudaError_t run_launch(dim3 grid, dim3 threads, std::function<void()> const& body) {
  the_machine& m = the_machine::get();
  guarded const g;
  std::string words;
  cudaError_t const s = run_blocks(grid, threads, m.lanes, m.launches++, body, words);
  if (s != cudaSuccess) m.complain(words);
  return s;
}

/// What a launch may ask for on any GPU since Volta, without more shared memory than is there by itself.
inline cudaError_t check_launch(cudaLaunchConfig_t const& c, std::size_t arguments) {
  std::uint64_t const threads = std::uint64_t{c.blockDim.x} * c.blockDim.y * c.blockDim.z;
  bool const grid = c.gridDim.x && c.gridDim.y && c.gridDim.z && c.gridDim.x <= 2147483647u && c.gridDim.y <= 65535 && c.gridDim.z <= 65535;
  if (!grid || threads == 0 || threads > 1024 || c.blockDim.z > 64) return cudaErrorInvalidConfiguration;
  if (c.dynamicSmemBytes > 48 << 10 || arguments > 32764) return cudaErrorInvalidValue;
  if (c.dynamicSmemBytes || c.numAttrs) return cudaErrorNotSupported;          // the stand-in has neither
  return cudaSuccess;
}

/// Of whatever kernel: its arguments are so many bytes, that are copied now, and `run` knows what they are.
inline cudaError_t launch(cudaLaunchConfig_t const& c, std::size_t arguments, void const* body, std::size_t bytes, void (*run)(void const*)) {
  return called("cudaLaunchKernelEx", kind::plain, [&]() -> cudaError_t {
    queue* const q = queue_of(c.stream);
    if (!q || q->gpu != current_gpu) return cudaErrorInvalidResourceHandle;
    if (cudaError_t const s = check_launch(c, arguments); s != cudaSuccess) return s;
    std::vector<std::max_align_t> held((bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t));
    std::memcpy(held.data(), body, bytes);
    return scheduler::get().ask(*q, [grid = c.gridDim, threads = c.blockDim, held = std::move(held), run] {
      return run_launch(grid, threads, [&] { run(held.data()); });
    });
  });
}

}  // namespace cuda_stand_in
