// bench/cuda/operation.cuh - what the benchmarks of one GPU share: an operator on tensors of its own, the GPU's clock, a line of results
#pragma once
#include <algorithm>
#include <cstdio>
#include <functional>
#include <random>
#include <string>
#include <tensorpar/exec/cuda/teams.cuh>
#include <tensorpar/exec/device/arena_memory.hpp>
#include <vector>

namespace bench {

using namespace tensorpar;

/// Median of 5 of the seconds that one of 10 calls takes, by the GPU's own clock; as they are done in a step, from a CUDA graph, so that no
/// call waits for the host.
inline double seconds(cudaStream_t stream, std::function<void()> const& call) {
  cudaEvent_t from = nullptr, to = nullptr;
  cuda_check(cudaEventCreate(&from), "cudaEventCreate");
  cuda_check(cudaEventCreate(&to), "cudaEventCreate");
  for (int i = 0; i < 3; ++i) call();          // libraries choose their algorithms
  cudaGraph_t calls = nullptr;
  cudaGraphExec_t ten = nullptr;
  cuda_check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (int i = 0; i < 10; ++i) call();
  cuda_check(cudaStreamEndCapture(stream, &calls), "cudaStreamEndCapture");
  cuda_check(cudaGraphInstantiate(&ten, calls, 0), "cudaGraphInstantiate");
  cuda_check(cudaGraphLaunch(ten, stream), "cudaGraphLaunch");
  std::vector<double> took;
  for (int k = 0; k < 5; ++k) {
    cuda_check(cudaEventRecord(from, stream), "cudaEventRecord");
    cuda_check(cudaGraphLaunch(ten, stream), "cudaGraphLaunch");
    cuda_check(cudaEventRecord(to, stream), "cudaEventRecord");
    cuda_check(cudaEventSynchronize(to), "cudaEventSynchronize");
    float ms = 0;
    cuda_check(cudaEventElapsedTime(&ms, from, to), "cudaEventElapsedTime");
    took.push_back(ms / 1e4);
  }
  cudaGraphExecDestroy(ten);
  cudaGraphDestroy(calls);
  cudaEventDestroy(from);
  cudaEventDestroy(to);
  std::nth_element(took.begin(), took.begin() + 2, took.end());
  return took[2];
}

/// Random numbers of bf16 from [-1, 1), whose pairs are floats: products of zeros take less power, and less time.
inline void fill(cuda_memory const& memory, std::byte* p, i64 bytes) {
  static std::vector<bfloat16> const some = [] {
    std::mt19937 draw(1);
    std::vector<bfloat16> r(std::size_t{1} << 20);
    for (bfloat16& x : r) x = std::uniform_real_distribution<float>(-1, 1)(draw);
    return r;
  }();
  i64 const part = static_cast<i64>(some.size() * sizeof(bfloat16));
  for (i64 at = 0; at < bytes; at += part) memory.write(p + at, some.data(), std::min(part, bytes - at));
}

inline void row(std::string const& name, char const* metric, double value, char const* unit, double reference) {
  std::printf(R"({"bench":"cuda","case":"%s","metric":"%s","value":%.6g,"unit":"%s","reference":%.6g,"ratio":%.4f})" "\n", name.c_str(),
              metric, value, unit, reference, reference > 0 ? value / reference : 0);
  std::fflush(stdout);
}

/// One operator on whole tensors in the GPU's memory.
template <class Policy> class operation {
  Policy const& policy_;
  op::any_op op_;
  std::vector<op::tensor_block> in_, out_;
  std::vector<exec::detail::arena_memory<cuda_memory>> room_;
  std::vector<void const*> from_;
  std::vector<void*> to_;
  exec::kernel_call call_;

  std::byte* place(i64 bytes) {
    room_.emplace_back(std::max<i64>(bytes, 1), policy_.device_memory());
    fill(policy_.device_memory(), room_.back().data(), bytes);
    return room_.back().data();
  }
  static op::tensor_block whole(shape const& s) {
    op::tensor_block b;
    b.rank = s.rank;
    b.type = s.type;
    for (int i = 0; i < s.rank; ++i) b.local[i] = b.global[i] = s.d[i].n;
    return b;
  }

 public:
  /// `wide`: results are f32, also of bf16 operands.
  operation(Policy const& policy, op::any_op const& op, std::vector<shape> const& in, bool wide = false) : policy_(policy), op_(op) {
    int const activations = op.op->arity < 0 ? static_cast<int>(in.size()) : op.op->arity;
    op::inference const r = op.op->infer(op.attr, {in.data(), activations});
    if (!r.ok()) throw error(r.rule, std::string(op.op->name), "operands that fit");
    std::vector<shape> out(r.out, r.out + r.n);
    if (wide) for (shape& s : out) s.type = dtype::f32;
    for (shape const& s : in) in_.push_back(whole(s));
    for (shape const& s : out) out_.push_back(whole(s));
    for (op::tensor_block const& b : in_) from_.push_back(place(b.elements() * bytes_of(b.type, 4)));
    for (op::tensor_block const& b : out_) to_.push_back(place(b.elements() * bytes_of(b.type, 4)));
    call_.op = &op_;
    call_.inputs = static_cast<int>(in.size());
    call_.outputs = static_cast<int>(out.size());
    call_.in = from_.data();
    call_.in_block = in_.data();
    call_.out = to_.data();
    call_.out_block = out_.data();
    call_.workspace = place(4 * policy.workspace(op_, {in.data(), call_.inputs}, {out.data(), call_.outputs}));
    call_.state.learning_rate = 1e-3;
  }
  void run() const { policy_.run(call_); }
  double bytes() const {
    i64 n = 0;
    for (auto const* side : {&in_, &out_}) for (op::tensor_block const& b : *side) n += b.elements() * bytes_of(b.type, 4);
    return static_cast<double>(n);
  }
};

}  // namespace bench
