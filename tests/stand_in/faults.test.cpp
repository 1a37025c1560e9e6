// tests/stand_in/faults.test.cpp - what the library does when a GPU, its driver or cuBLASLt fails: clear words, nothing left, nobody waits
#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include "gpu.hpp"

#include "../support/training.hpp"
#include <tensorpar/exec/cuda/teams.cuh>
#include <tensorpar/exec/virtual_ranks.hpp>

using namespace tests;
using gpu_tests::gpus;

namespace {

struct first_gpu : compute::cuda<float> {
  first_gpu() : compute::cuda<float>(device_place{}) {}
};
using ranks = executor<first_gpu, comm::virtual_ranks<cuda_memory>>;

plan serial(computation_graph const& g) { return serial_plan(g); }
void steps(computation_graph const& g, plan const& p, int n) {
  ranks e(differentiate(g), p);
  train(e, n);
}
/// Calls that training makes, and how often.
std::map<std::string, int> calls_of(computation_graph const& g, plan const& p, int n) {
  gpus const played;
  steps(g, p, n);
  return played.m.calls;
}

}  // namespace

TEST_CASE("every call of the toolkit that training makes may fail: one error names it, and nothing is left") {
  computation_graph const g = residual_mlp();
  plan const p = serial(g);
  auto const calls = calls_of(g, p, 3);
  CHECK(calls.count("cudaStreamBeginCapture"));
  CHECK(calls.count("cublasLtMatmul"));
  std::set<std::string> const quiet{"cudaGetLastError", "cudaFree", "cudaFreeHost", "cudaStreamDestroy", "cudaEventDestroy",
                                    "cudaGraphDestroy", "cudaGraphExecDestroy", "cublasLtDestroy"};      // destructors say nothing
  for (auto const& [call, times] : calls) {
    if (call.starts_with("cublasLt") || quiet.count(call)) continue;
    for (int nth : {1, (times + 1) / 2, times}) {
      gpus const played;
      played.m.on_call = [&call = call, nth](std::string const& c, int k) { return c == call && k == nth ? cudaErrorInvalidValue : cudaSuccess; };
      std::string words;
      try {
        steps(g, p, 3);
      } catch (error const& e) {
        words = e.what();
      }
      INFO(call, " number ", nth, ": ", words);
      bool const an_answer = call == "cudaGetDeviceCount" || call == "cudaEventQuery" || call == "cudaMalloc" || call == "cudaSetDevice";
      CHECK((an_answer || words.find("invalid argument") != std::string::npos));
      CHECK(played.m.complaints.empty());
    }
  }
}
