// tests/support/cuda_stand_in/calls.hpp - what every call of the toolkit begins and ends with
#pragma once
#include "streams.hpp"

namespace cuda_stand_in {

enum class kind {
  plain,
  unsafe,     // may wait for work that a capture does not see
  gives_back, // is done whatever the GPU says
  unsafely_gives_back
};

/// One at a time; errors that tests want; those that stay; what captures refuse.
template <class F> cudaError_t called(char const* name, kind k, F&& f) {
  the_machine& m = the_machine::get();
  std::lock_guard const held(m.lock);
  int const nth = ++m.calls[name];
  auto const all = [&]() -> cudaError_t {
    if (m.on_call)
      if (cudaError_t const s = m.on_call(name, nth); s != cudaSuccess) {
        bool const waits = std::strstr(name, "Synchronize") || std::strstr(name, "Query");
        if (waits && s != cudaErrorNotReady) m.broken[current_gpu] = s;      // what went wrong in the GPU, and stays
        return s;
      }
    if (m.gpus == 0) return cudaErrorNoDevice;
    cudaError_t const before = m.state(current_gpu);
    if (before != cudaSuccess && (k == kind::plain || k == kind::unsafe)) return before;
    if ((k == kind::unsafe || k == kind::unsafely_gives_back) && scheduler::get().refuse_unsafe()) return cudaErrorStreamCaptureUnsupported;
    cudaError_t const s = f();
    m.complain_of_races(current_gpu);          // of the host's, too
    if (s != cudaSuccess) return s;
    return m.state(current_gpu);               // what was done may have failed
  };
  cudaError_t const s = all();
  if (s != cudaSuccess) last_error = s;
  return s;
}

/// For ever, since what is static in a test may end later than what it made first while it ran.
inline std::set<CUstream_st*>& known_streams() {
  static auto& all = *new std::set<CUstream_st*>;
  return all;
}
inline std::set<CUevent_st*>& known_events() {
  static auto& all = *new std::set<CUevent_st*>;
  return all;
}
/// Null: there is no such stream.
inline queue* queue_of(cudaStream_t s) {
  if (!s) return &scheduler::get().default_of(current_gpu);
  return known_streams().count(s) ? s->q.get() : nullptr;
}
inline bool known(cudaEvent_t e) { return known_events().count(e) > 0; }

}  // namespace cuda_stand_in
