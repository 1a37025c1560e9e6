// tests/stand_in/gpu.hpp - what tests of the GPU that is played share: a machine that is whole, and numbers in its memory
#pragma once
#include <cuda_runtime.h>
#include <doctest/doctest.h>
#include <string>
#include <vector>

namespace gpu_tests {

using namespace cuda_stand_in;

/// A machine with one GPU that is whole; when it goes, nothing may be left that was made since.
class gpus {
  std::string before_ = the_machine::get().alive();
  schedule const when_ = the_machine::get().when;
  bool const free_waits_ = the_machine::get().free_waits;

 public:
  the_machine& m = the_machine::get();
  gpus() {
    again();
    m.when = schedule::late;
    m.free_waits = m.minds_races = true;
    m.launches = 0;
    m.draw = 1;
  }
  gpus(gpus const&) = delete;
  gpus& operator=(gpus const&) = delete;
  ~gpus() {
    again();
    CHECK(m.alive() == before_);
    m.gpus = 1;
    m.memory_bytes = std::size_t{1} << 30;
    m.when = when_;
    m.lanes = lane_order::mixed;
    m.free_waits = free_waits_;
    m.minds_races = true;
  }
  /// Whatever went wrong has not.
  void again() const {
    m.on_call = nullptr;
    m.calls.clear();
    last_error = cudaSuccess;
    current_gpu = 0;
    for (int g = 0; g < m.gpus; ++g) {
      m.fall_off(g);                           // what was asked for and not waited for is not done any more
      scheduler::get().finish_all(g);
    }
    m.broken.clear();
    m.complaints.clear();
  }
  bool complained(std::string const& words) const {
    for (std::string const& s : m.complaints) if (s.find(words) != std::string::npos) return true;
    return false;
  }
};

/// So many in the current GPU's memory.
template <class T> class numbers {
  T* at_ = nullptr;
  std::size_t n_;

 public:
  explicit numbers(std::size_t n) : n_(n) { REQUIRE(cudaMalloc(reinterpret_cast<void**>(&at_), n * sizeof(T)) == cudaSuccess); }
  numbers(numbers const&) = delete;
  numbers& operator=(numbers const&) = delete;
  ~numbers() { cudaFree(at_); }
  T* at() const { return at_; }
  void write(std::vector<T> const& all, cudaStream_t s = nullptr) const {
    REQUIRE(cudaMemcpyAsync(at_, all.data(), all.size() * sizeof(T), cudaMemcpyHostToDevice, s) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(s) == cudaSuccess);
  }
  std::vector<T> read(cudaStream_t s = nullptr) const {
    std::vector<T> r(n_);
    REQUIRE(cudaMemcpyAsync(r.data(), at_, n_ * sizeof(T), cudaMemcpyDeviceToHost, s) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(s) == cudaSuccess);
    return r;
  }
};

struct stream {
  cudaStream_t s = nullptr;
  explicit stream(unsigned flags = cudaStreamNonBlocking) { REQUIRE(cudaStreamCreateWithFlags(&s, flags) == cudaSuccess); }
  stream(stream const&) = delete;
  stream& operator=(stream const&) = delete;
  ~stream() { cudaStreamDestroy(s); }
  operator cudaStream_t() const { return s; }
};
struct event {
  cudaEvent_t e = nullptr;
  explicit event(unsigned flags = cudaEventDisableTiming) { REQUIRE(cudaEventCreateWithFlags(&e, flags) == cudaSuccess); }
  event(event const&) = delete;
  event& operator=(event const&) = delete;
  ~event() { cudaEventDestroy(e); }
  operator cudaEvent_t() const { return e; }
};

template <class... P, class... A> cudaError_t ask_in(cudaStream_t s, void (*kernel)(P...), unsigned blocks, unsigned lanes, A... a) {
  cudaLaunchConfig_t c{};
  c.gridDim = dim3(blocks);
  c.blockDim = dim3(lanes);
  c.stream = s;
  return cudaLaunchKernelEx(&c, kernel, a...);
}
template <class... P, class... A> cudaError_t ask(void (*kernel)(P...), unsigned blocks, unsigned lanes, A... a) {
  return ask_in(nullptr, kernel, blocks, lanes, a...);
}

}  // namespace gpu_tests
