// tests/stand_in/faults.test.cpp - what the library does when a GPU, its driver or cuBLASLt fails: clear words, nothing left, nobody waits
#include <cuda_runtime.h>
#include <doctest/doctest.h>

#include "gpu.hpp"

#include "support/training.hpp"
#include <tensorpar/exec/comm/virtual_ranks.hpp>
#include <tensorpar/exec/cuda/teams.cuh>

using namespace tests;
using gpu_tests::gpus;

namespace {

struct first_gpu : compute::cuda<float> {
  first_gpu() : compute::cuda<float>(tensorpar::exec::device_place{}) {}
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
  std::set<std::string> const quiet{"cudaGetLastError", "cudaEventSynchronize", "cudaFree", "cudaFreeHost", "cudaStreamDestroy",
                                    "cudaEventDestroy", "cudaGraphDestroy", "cudaGraphExecDestroy"};   // of destructors, which say nothing
  for (auto const& [call, times] : calls) {
    if (call.starts_with("cublasLt") || quiet.count(call)) continue;
    for (int nth : {1, (times + 1) / 2, times}) {
      if (call == "cudaSetDevice" && nth == times) continue;          // a destructor's
      gpus const played;
      played.m.on_call = [&call = call, nth](std::string const& c, int k) {
        return c == call && k == nth ? cudaErrorInvalidValue : cudaSuccess;
      };
      std::string words;
      try {
        steps(g, p, 3);
      } catch (error const& e) {
        words = e.what();
      }
      INFO(call, " number ", nth, ": ", words);
      bool const an_answer = call == "cudaGetDeviceCount" || call == "cudaEventQuery" || call == "cudaMalloc";
      CHECK((an_answer || words.find("invalid argument") != std::string::npos));
      CHECK(played.m.complaints.empty());
    }
  }
}

TEST_CASE("cuBLASLt may fail, too; where it has no algorithm the library has kernels") {
  computation_graph const g = residual_mlp();
  plan const p = serial(g);
  struct once_more {                                       // whatever a check throws
    ~once_more() { cuda_stand_in::product_errors().clear(); }
  } const forget;
  auto& errors = cuda_stand_in::product_errors();
  for (char const* call : {"cublasLtCreate", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"}) {
    gpus const played;
    errors = {{call, CUBLAS_STATUS_ALLOC_FAILED}};
    CHECK_THROWS_WITH_AS(steps(g, p, 1), doctest::Contains("the resource allocation failed"), error);
    CHECK_THROWS_WITH_AS(steps(g, p, 1), doctest::Contains(call), error);
  }
  errors.clear();
  gpus const played;
  auto const trained = [&] {
    ranks e(differentiate(g), p);
    std::vector<std::vector<double>> r;
    for (auto const& x : train(e, 3)) r.emplace_back(x.begin(), x.end());
    return r;
  };
  auto const by_library = trained();
  int const products = played.m.calls["cublasLtMatmul"];
  errors = {{"cublasLtMatmulAlgoGetHeuristic", CUBLAS_STATUS_NOT_SUPPORTED}};
  CHECK(tests::distance(trained(), by_library) < 1e-5);
  CHECK(products > 0);
  CHECK(played.m.calls["cublasLtMatmul"] == products);
  errors = {{"cublasLtMatmul",
             CUBLAS_STATUS_NOT_SUPPORTED}};      // its own heuristic named the algorithm: asked for once, then never again
  CHECK(tests::distance(trained(), by_library) < 1e-5);
  int const tried = played.m.calls["cublasLtMatmul"] - products;
  CHECK(tried > 0);
  CHECK(tried < products);
}

TEST_CASE("a GPU that falls off in the midst of training: an error on every rank, none waits for ever, nothing is left") {
  std::mt19937 draw(5);
  computation_graph const g = small_transformer();
  for (int n : {1, 2, 4}) {
    plan const p = random_plan(g, n, draw);
    int launches = 0;
    {
      gpus const played;
      steps(g, p, 2);
      launches = played.m.calls["cudaLaunchKernelEx"];
    }
    for (int k : {1, launches / 2, launches}) {
      gpus const played;
      played.m.on_call = [&played, k](std::string const& call, int nth) {
        if (call == "cudaLaunchKernelEx" && nth == k) played.m.fall_off(0, cudaErrorECCUncorrectable);
        return cudaSuccess;
      };
      CHECK_THROWS_WITH_AS(steps(g, p, 2), doctest::Contains("uncorrectable ECC error"), error);
    }
  }
}

TEST_CASE("memory of a second GPU is used from a thread that was at the first, and both by turns") {
  gpus const played;
  played.m.gpus = 2;
  cuda_memory const a(0), b(1);
  std::vector<std::byte*> at;
  i64 const bytes = 4096;
  for (cuda_memory const& m : {a, b}) {
    at.push_back(m.allocate(bytes));
    CHECK(played.m.memory.owner(at.back(), static_cast<std::size_t>(bytes)) == m.gpu());
  }
  std::vector<float> x(1024, 1), y(1024);
  for (int turn = 0; turn < 3; ++turn)
    for (std::size_t k : {std::size_t{0}, std::size_t{1}}) {
      cuda_memory const& m = k ? b : a;
      m.write(at[k], x.data(), bytes);
      auto* const p = reinterpret_cast<float*>(at[k]);
      m.move_box(tensorpar::exec::line_block(512), tensorpar::exec::line_block(512), static_cast<float const*>(p),
                 tensorpar::exec::line_block(512), p + 512, true);
      m.read(y.data(), at[k], bytes);
      m.wait();
      CHECK(y[0] == 1);
      CHECK(y[1023] == 2);
    }
  a.release(at[0], bytes);
  b.release(at[1], bytes);
  CHECK(cuda_memory(tensorpar::exec::device_place{0, 1}).gpu() == 1);
  CHECK_THROWS_AS(cuda_memory(2), error);
}

TEST_CASE("no GPU is one clear error") {
  gpus const played;
  played.m.gpus = 0;
  CHECK(cuda_devices() == 0);
  CHECK_THROWS_WITH_AS(cuda_memory(tensorpar::exec::device_place{}), doctest::Contains("there is no GPU"), error);
}
