// tensorpar/exec/cuda/cuda.cuh - a GPU's memory, and the stream in which everything that concerns it happens
#pragma once
#include <algorithm>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/exec/comm/launch.hpp>
#include <tensorpar/exec/cuda/resources.cuh>
#include <tensorpar/exec/device/memory.hpp>
#include <tensorpar/exec/teams/kernels/device.hpp>
#include <type_traits>

namespace tensorpar {

namespace detail {
/// What all handles of one logical device share.
struct cuda_state {
  int gpu;
  std::shared_ptr<cuda_resources> resources;
  cudaStream_t stream;
  bool owned;
  exec::index_fault* fault = nullptr;                // in host memory that the GPU may write
  struct piece {
    std::byte* at = nullptr;
    cudaEvent_t free = nullptr;
  };
  static constexpr std::size_t piece_bytes = std::size_t{4} << 20, max_pieces = 256;
  std::deque<piece> staged;                    // on their way to the GPU, the oldest first
  std::mutex staging;

  cuda_state(int g, std::shared_ptr<cuda_resources> r, cudaStream_t s, bool own)
      : gpu(g), resources(std::move(r)), stream(s), owned(own) {
    enter();
    if (own) stream = resources->make_stream(gpu);
    cudaError_t const status = cudaHostAlloc(reinterpret_cast<void**>(&fault), sizeof(exec::index_fault),
                                             cudaHostAllocMapped | cudaHostAllocPortable);
    if (status != cudaSuccess && own) resources->end_stream(gpu, stream);
    cuda_check(status, "cudaHostAlloc");
    *fault = {};
  }
  cuda_state(cuda_state const&) = delete;
  cuda_state& operator=(cuda_state const&) = delete;
  ~cuda_state() {
    cudaSetDevice(gpu);
    cudaFreeHost(fault);
    for (piece const& p : staged) {
      cudaEventSynchronize(p.free);
      resources->end_event(gpu, p.free);
      cudaFreeHost(p.at);
    }
    if (owned) resources->end_stream(gpu, stream);
  }
  /// The host's bytes are copied to memory that the GPU reads by itself when its stream has come there:
  /// nobody waits for the stream, unless 1 GiB is on its way. The driver's own copies would wait.
  void write(void* to, void const* from, std::size_t n) {
    enter();
    std::lock_guard const held(staging);
    for (std::size_t at = 0; at < n; at += piece_bytes) {
      std::size_t const part = std::min(piece_bytes, n - at);
      piece p = free_piece();
      std::memcpy(p.at, static_cast<std::byte const*>(from) + at, part);
      cuda_check(
          cudaMemcpyAsync(static_cast<std::byte*>(to) + at, p.at, part, cudaMemcpyHostToDevice, stream),
          "cudaMemcpy");
      cuda_check(cudaEventRecord(p.free, stream), "cudaEventRecord");
    }
  }
  /// The oldest, if it has arrived or there are many, else a new one; last in line from now on.
  piece free_piece() {
    piece p;
    if (!staged.empty() &&
        (staged.size() >= max_pieces || cudaEventQuery(staged.front().free) == cudaSuccess)) {
      p = staged.front();
      cuda_check(cudaEventSynchronize(p.free), "cudaEventSynchronize");
      staged.pop_front();
      staged.push_back(p);
      return p;
    }
    cudaGetLastError();                        // "not ready" is an answer
    p.free = resources->make_event(gpu, cudaEventDisableTiming);
    cudaError_t const status =
        cudaHostAlloc(reinterpret_cast<void**>(&p.at), piece_bytes, cudaHostAllocDefault);
    if (status != cudaSuccess) resources->end_event(gpu, p.free);
    cuda_check(status, "cudaHostAlloc");
    staged.push_back(p);
    return p;
  }
  /// The driver's current GPU belongs to the thread, so every entry says it.
  void enter() const { cuda_check(cudaSetDevice(gpu), "cudaSetDevice"); }
};

template <class F> __global__ void each_kernel(i64 n, F f) {
  i64 const step = static_cast<i64>(gridDim.x) * blockDim.x;
  for (i64 i = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) f(i);
}
inline constexpr int each_lanes = 256;
/// Enough blocks to fill any GPU; each walks on from there.
constexpr unsigned blocks_of(i64 n, i64 most = 1 << 16) {
  i64 const b = (n + each_lanes - 1) / each_lanes;
  return static_cast<unsigned>(b < most ? b : most);
}
/// Plain C++, without <<<>>>, so that any compiler may be asked to read this.
template <class... Parameters>
void launch(cuda_state const& s, void (*kernel)(Parameters...), unsigned blocks, int lanes,
            std::type_identity_t<Parameters> const&... a) {
  s.enter();
  cudaLaunchConfig_t how{};
  how.gridDim = dim3(blocks);
  how.blockDim = dim3(static_cast<unsigned>(lanes));
  how.stream = s.stream;
  cuda_check(cudaLaunchKernelEx(&how, kernel, a...), "launching a kernel");
}
template <class F> void launch_each(cuda_state const& s, i64 n, F const& f) {
  if (n > 0) launch(s, each_kernel<F>, blocks_of(n), each_lanes, n, f);
}

/// One element of a box, from one block to another.
template <class S> struct move_box_at {
  op::tensor_block box, from, to;
  S const* src;
  S* dst;
  bool adds;
  constexpr void operator()(i64 i) const {
    i64 p = 0, q = 0, ps = 1, qs = 1;
    for (int d = box.rank - 1; d >= 0; --d) {
      i64 const at = i % box.local[d] + box.offset[d];
      i /= box.local[d];
      p += (at - from.offset[d]) * ps;
      q += (at - to.offset[d]) * qs;
      ps *= from.local[d];
      qs *= to.local[d];
    }
    dst[q] = adds ? dst[q] + src[p] : src[p];
  }
};
}  // namespace detail

/// A GPU's memory, and the stream in which everything that concerns it happens in order. Models
/// `queued_memory`, `recording_memory`. Copies share the stream.
/// Every call throws `error` with the driver's words; so does `wait` for an index out of range that a kernel
/// met.
class cuda_memory {
  std::shared_ptr<detail::cuda_state> state_;

 public:
  /// A stream of its own on the GPU that this device of the process gets (exec/comm/launch.hpp).
  explicit cuda_memory(exec::device_place at)
      : cuda_memory(accelerator_of(read_launch(), at.nth, at_least_one())) {}
  /// Streams, events and memory from `from`: the driver, or what is the caller's.
  explicit cuda_memory(int gpu, std::shared_ptr<cuda_resources> from = std::make_shared<cuda_resources>())
      : state_(std::make_shared<detail::cuda_state>(gpu, std::move(from), nullptr, true)) {}
  /// The caller's stream, which must outlive all copies. What `beside` returns has another stream, of
  /// `from`'s.
  cuda_memory(int gpu, cudaStream_t stream,
              std::shared_ptr<cuda_resources> from = std::make_shared<cuda_resources>())
      : state_(std::make_shared<detail::cuda_state>(gpu, std::move(from), stream, false)) {}

  /// A place in a stream that other streams can wait for: an event.
  class mark {
    struct give_back {
      std::shared_ptr<cuda_resources> to;
      int gpu;
      void operator()(CUevent_st* e) const { to->end_event(gpu, e); }
    };
    std::unique_ptr<CUevent_st, give_back> event_;

   public:
    mark(std::shared_ptr<cuda_resources> const& from, int gpu, unsigned flags)
        : event_(from->make_event(gpu, flags), give_back{from, gpu}) {}
    cudaEvent_t event() const { return event_.get(); }
  };
  /// An NVTX range of the calling thread, which Nsight shows beside the kernels that were launched within it.
  class nvtx_range {
   public:
    explicit nvtx_range(char const* name) { nvtxRangePushA(name); }
    nvtx_range(nvtx_range const&) = delete;
    nvtx_range& operator=(nvtx_range const&) = delete;
    ~nvtx_range() { nvtxRangePop(); }
  };
  nvtx_range range(char const* name) const { return nvtx_range(name); }
  cuda_memory beside() const { return cuda_memory(gpu(), state_->resources); }
  mark make_mark() const { return make_event(cudaEventDisableTiming); }
  mark make_timed_mark() const { return make_event(cudaEventDefault); }
  double seconds(mark const& from, mark const& to) const {
    state_->enter();
    float milliseconds = 0;
    cuda_check(cudaEventElapsedTime(&milliseconds, from.event(), to.event()), "cudaEventElapsedTime");
    return milliseconds * 1e-3;
  }
  void set(mark& k) const {
    state_->enter();
    cuda_check(cudaEventRecord(k.event(), stream()), "cudaEventRecord");
  }
  void follow(mark const& k) const {
    state_->enter();
    cuda_check(cudaStreamWaitEvent(stream(), k.event(), 0), "cudaStreamWaitEvent");
  }
  bool reached(mark const& k) const {
    state_->enter();
    cudaError_t const status = cudaEventQuery(k.event());
    if (status == cudaErrorNotReady) {
      cudaGetLastError();                      // an answer, no error
      return false;
    }
    cuda_check(status, "cudaEventQuery");
    return true;
  }

  /// What a stream was asked for, as a CUDA graph.
  class recording {
    struct destroy {
      void operator()(CUgraphExec_st* g) const { cudaGraphExecDestroy(g); }
    };
    std::unique_ptr<CUgraphExec_st, destroy> graph_;

   public:
    explicit recording(cudaGraphExec_t g) : graph_(g) {}
    cudaGraphExec_t graph() const { return graph_.get(); }
  };
  void begin_recording() const {
    state_->enter();
    cuda_check(cudaStreamBeginCapture(stream(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  }
  recording end_recording() const {
    state_->enter();
    cudaGraph_t all = nullptr;
    cuda_check(cudaStreamEndCapture(stream(), &all), "cudaStreamEndCapture");
    cudaGraphExec_t made = nullptr;
    cudaError_t const status = cudaGraphInstantiate(&made, all, 0);
    cudaGraphDestroy(all);
    cuda_check(status, "cudaGraphInstantiate");
    return recording(made);
  }
  void replay(recording const& r) const {
    state_->enter();
    cuda_check(cudaGraphLaunch(r.graph(), stream()), "cudaGraphLaunch");
  }

  int gpu() const { return state_->gpu; }
  cudaStream_t stream() const { return state_->stream; }
  detail::cuda_state const& state() const { return *state_; }

  std::byte* allocate(i64 n) const {
    state_->enter();
    void* const p = state_->resources->allocate(gpu(), n, stream());
    cudaError_t const status = cudaMemsetAsync(p, 0, idx(n), stream());
    if (status != cudaSuccess) state_->resources->release(gpu(), p, n, stream());
    cuda_check(status, "cudaMemset");
    return static_cast<std::byte*>(p);
  }
  /// Says nothing, for destructors call it.
  void release(std::byte* p, i64 n) const {
    cudaSetDevice(gpu());
    state_->resources->release(gpu(), p, n, stream());
  }
  /// Does not wait for what the stream was given before.
  void write(void* p, void const* h, i64 n) const { state_->write(p, h, idx(n)); }
  void read(void* h, void const* p, i64 n) const {
    if (n <= 0) return;
    state_->enter();
    cuda_check(cudaMemcpyAsync(h, p, idx(n), cudaMemcpyDeviceToHost, stream()),
               "cudaMemcpy");
    cuda_check(cudaStreamSynchronize(stream()), "waiting for cudaMemcpy");
  }
  template <class S>
  void move_box(op::tensor_block const& box, op::tensor_block const& from, S const* src,
                op::tensor_block const& to, S* dst, bool adds) const {
    detail::launch_each(*state_, box.elements(), detail::move_box_at<S>{box, from, to, src, dst, adds});
  }
  void wait() const {
    state_->enter();
    cuda_check(cudaStreamSynchronize(stream()), "waiting for the GPU");
    exec::detail::throw_if_fault(*state_->fault);
  }

 private:
  mark make_event(unsigned flags) const {
    state_->enter();
    return {state_->resources, gpu(), flags};
  }
  static int at_least_one() {
    int const n = cuda_devices();
    if (n == 0)
      throw error("there is no GPU, or no driver for it", "cuda_memory", "a machine with an NVIDIA GPU");
    return n;
  }
};

}  // namespace tensorpar
