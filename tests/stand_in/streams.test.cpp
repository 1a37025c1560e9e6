// tests/stand_in/streams.test.cpp - the GPU that is played: streams that wait for nobody, captures with their rules, errors that are wanted
#include <cuda_runtime.h>
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "gpu.hpp"

using namespace gpu_tests;

namespace {

__global__ void add_one(int* p) { p[threadIdx.x] += 1; }
__global__ void copy_over(int* to, int const* from) { to[threadIdx.x] = from[threadIdx.x]; }
__global__ void store(int* p, int value) { p[threadIdx.x] = value; }
constexpr unsigned n = 64;

constexpr schedule schedules[] = {schedule::late, schedule::early, schedule::shuffled};

/// One stream fills, another copies, the first fills with something else. Which waits there are.
std::vector<int> handed_over(schedule when, bool copy_waits, bool fill_waits) {
  gpus const g;
  g.m.when = when;
  g.m.minds_races = false;
  stream const a, b;
  event const filled, copied;
  numbers<int> from(n), to(n);
  from.write(std::vector<int>(n, 0));
  CHECK(ask_in(a, store, 1, n, from.at(), 7) == cudaSuccess);
  CHECK(cudaEventRecord(filled, a) == cudaSuccess);
  if (copy_waits) CHECK(cudaStreamWaitEvent(b, filled) == cudaSuccess);
  CHECK(ask_in(b, copy_over, 1, n, to.at(), static_cast<int const*>(from.at())) == cudaSuccess);
  CHECK(cudaEventRecord(copied, b) == cudaSuccess);
  if (fill_waits) CHECK(cudaStreamWaitEvent(a, copied) == cudaSuccess);
  CHECK(ask_in(a, store, 1, n, from.at(), 8) == cudaSuccess);
  if (copy_waits) CHECK(cudaStreamSynchronize(a) == cudaSuccess);
  return to.read(b);
}
cudaError_t end(cudaStream_t s, cudaGraphExec_t* made = nullptr) {
  cudaGraph_t g = nullptr;
  cudaError_t const status = cudaStreamEndCapture(s, &g);
  CHECK((g != nullptr) == (status == cudaSuccess));
  if (g && made) CHECK(cudaGraphInstantiate(made, g) == cudaSuccess);
  if (g) CHECK(cudaGraphDestroy(g) == cudaSuccess);
  return status;
}

}  // namespace

TEST_CASE("a missing wait for an event shows, whichever of two streams lacks it") {
  std::vector<int> const seven(n, 7);
  for (schedule when : schedules) CHECK(handed_over(when, true, true) == seven);
  CHECK(handed_over(schedule::late, false, true) != seven);            // what it should have waited for has not happened
  CHECK(handed_over(schedule::late, true, false) != seven);            // it was overtaken
  CHECK(handed_over(schedule::early, false, false) == seven);
}

TEST_CASE("nothing is done before somebody waits for it; who asks often enough is answered") {
  gpus const g;
  stream const s;
  event const e;
  numbers<int> at(n);
  at.write(std::vector<int>(n, 1));
  CHECK(cudaEventQuery(e) == cudaSuccess);                             // never recorded
  for (int k = 0; k < 3; ++k) CHECK(ask_in(s, add_one, 1, n, at.at()) == cudaSuccess);
  CHECK(cudaEventRecord(e, s) == cudaSuccess);
  int asked = 0;
  while (cudaEventQuery(e) == cudaErrorNotReady) ++asked;
  CHECK(asked == 4);
  CHECK(cudaStreamQuery(s) == cudaSuccess);
  CHECK(at.read(s) == std::vector<int>(n, 4));
}

TEST_CASE("copies take the host's numbers late, and from memory that must still be there") {
  gpus const g;
  g.m.minds_races = false;
  stream const s;
  numbers<int> at(n);
  int* here = nullptr;
  REQUIRE(cudaHostAlloc(reinterpret_cast<void**>(&here), n * sizeof(int), cudaHostAllocDefault) == cudaSuccess);
  std::fill(here, here + n, 3);
  CHECK(cudaMemcpyAsync(at.at(), here, n * sizeof(int), cudaMemcpyHostToDevice, s) == cudaSuccess);
  std::fill(here, here + n, 4);                                        // too early: the copy has not been waited for
  CHECK(at.read(s) == std::vector<int>(n, 4));
  CHECK(cudaMemcpyAsync(at.at(), here, n * sizeof(int), cudaMemcpyHostToDevice, s) == cudaSuccess);
  CHECK(cudaFreeHost(here) == cudaSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaErrorIllegalAddress);
  CHECK(g.complained("not there any more"));
  g.again();
  CHECK(cudaMemcpyAsync(at.at(), at.at() + n, 4, cudaMemcpyDeviceToDevice, s) == cudaErrorInvalidValue);
  std::vector<int> mine(n);
  CHECK(cudaMemcpyAsync(mine.data(), at.at(), n * 4, cudaMemcpyHostToDevice, s) == cudaErrorInvalidValue);
}

TEST_CASE("memory that is freed while a stream still uses it: waited for by the driver, or not") {
  for (bool waits : {true, false}) {
    gpus const g;
    g.m.free_waits = waits;
    stream const s;
    int* p = nullptr;
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&p), n * sizeof(int)) == cudaSuccess);
    CHECK(ask_in(s, store, 1, n, p, 1) == cudaSuccess);
    CHECK(cudaFree(p) == cudaSuccess);
    CHECK(cudaStreamSynchronize(s) == (waits ? cudaSuccess : cudaErrorIllegalAddress));
  }
}

TEST_CASE("the host cannot touch a GPU's memory") {
  gpus const g;
  numbers<int> at(n);
  pid_t const child = ::fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    ::close(2);
    ::_exit(*static_cast<int volatile*>(at.at()) == 12345);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFSIGNALED(status));
}

TEST_CASE("there is so much memory and no more; what is new holds no zeroes") {
  gpus const g;
  g.m.gpus = 2;
  REQUIRE(cudaSetDevice(1) == cudaSuccess);                            // of the first, others may hold some
  g.m.memory_bytes = std::size_t{64} << 20;
  std::size_t unused = 0, all = 0;
  void *p = nullptr, *q = nullptr;
  CHECK(cudaMalloc(&p, std::size_t{48} << 20) == cudaSuccess);
  CHECK(cudaMalloc(&q, std::size_t{17} << 20) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaMemGetInfo(&unused, &all) == cudaSuccess);
  CHECK(unused == std::size_t{16} << 20);
  CHECK(cudaFree(p) == cudaSuccess);
  CHECK(cudaFree(p) == cudaErrorInvalidValue);
  CHECK(numbers<int>(n).read() == std::vector<int>(n, -1));
}

TEST_CASE("the default stream and streams that block wait for each other; others do not") {
  for (unsigned flags : {cudaStreamDefault, cudaStreamNonBlocking}) {
    gpus const g;
    g.m.minds_races = false;
    stream const s(flags);
    numbers<int> from(n), to(n);
    from.write(std::vector<int>(n, 0));
    CHECK(ask_in(s, store, 1, n, from.at(), 7) == cudaSuccess);
    CHECK(ask(copy_over, 1, n, to.at(), static_cast<int const*>(from.at())) == cudaSuccess);
    CHECK(to.read() == std::vector<int>(n, flags == cudaStreamDefault ? 7 : 0));
  }
}

TEST_CASE("a capture is a graph that can be launched again, of the work of all streams that joined it") {
  for (schedule when : schedules) {
    gpus const g;
    g.m.when = when;
    stream const a, b;
    event const fork, join;
    numbers<int> x(n), y(n);
    x.write(std::vector<int>(n, 0));
    y.write(std::vector<int>(n, 0));
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    CHECK(ask_in(a, add_one, 1, n, x.at()) == cudaSuccess);
    CHECK(cudaEventRecord(fork, a) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(b, fork) == cudaSuccess);
    CHECK(ask_in(b, copy_over, 1, n, y.at(), static_cast<int const*>(x.at())) == cudaSuccess);
    CHECK(cudaEventRecord(join, b) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(a, join) == cudaSuccess);
    CHECK(ask_in(a, add_one, 1, n, x.at()) == cudaSuccess);
    cudaGraphExec_t made = nullptr;
    CHECK(end(a, &made) == cudaSuccess);
    CHECK(x.read(a) == std::vector<int>(n, 0));                        // written down, not done
    for (int k = 0; k < 3; ++k) CHECK(cudaGraphLaunch(made, b) == cudaSuccess);
    CHECK(y.read(b) == std::vector<int>(n, 5));
    CHECK(x.read(b) == std::vector<int>(n, 6));
    CHECK(cudaGraphExecDestroy(made) == cudaSuccess);
  }
}

TEST_CASE("calls that a capture forbids say so, and end it") {
  gpus const g;
  stream const s, other;
  event const before, inside;
  numbers<int> at(n);
  CHECK(cudaEventRecord(before, other) == cudaSuccess);
  void* p = nullptr;
  std::vector<std::pair<cudaError_t, std::function<cudaError_t()>>> const forbidden{
      {cudaErrorStreamCaptureUnsupported, [&] { return cudaMalloc(&p, 8); }},
      {cudaErrorStreamCaptureUnsupported, [&] { return cudaFree(at.at()); }},
      {cudaErrorStreamCaptureUnsupported, [&] { return cudaHostAlloc(&p, 8, 0); }},
      {cudaErrorStreamCaptureUnsupported, [&] { return cudaStreamSynchronize(s); }},
      {cudaErrorStreamCaptureUnsupported, [&] { return cudaStreamQuery(s); }},
      {cudaErrorStreamCaptureUnsupported, [&] { return cudaDeviceSynchronize(); }},
      {cudaErrorStreamCaptureUnsupported, [&] { return cudaEventQuery(before); }},
      {cudaErrorStreamCaptureUnsupported, [&] { return cudaEventSynchronize(before); }},
      {cudaErrorStreamCaptureIsolation, [&] { return cudaStreamWaitEvent(s, before); }},
  };
  for (auto const& [status, call] : forbidden) {
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    CHECK(ask_in(s, add_one, 1, n, at.at()) == cudaSuccess);
    CHECK(call() == status);
    CHECK(ask_in(s, add_one, 1, n, at.at()) == cudaErrorStreamCaptureInvalidated);
    CHECK(end(s) == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamQuery(s) == cudaSuccess);                          // of use again
  }
  // in relaxed mode the same are allowed, but for those that cannot be
  CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(cudaEventQuery(before) != cudaErrorStreamCaptureUnsupported);
  CHECK(cudaEventRecord(inside, s) == cudaSuccess);
  CHECK(cudaEventQuery(inside) == cudaErrorCapturedEvent);
  CHECK(end(s) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaStreamWaitEvent(other, inside) == cudaErrorCapturedEvent);
}

TEST_CASE("forks must be joined, captures stay apart, and who begins one ends it") {
  gpus const g;
  stream const a, b;
  event const fork;
  numbers<int> at(n);
  auto const forked = [&] {
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    CHECK(ask_in(a, add_one, 1, n, at.at()) == cudaSuccess);
    CHECK(cudaEventRecord(fork, a) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(b, fork) == cudaSuccess);
    CHECK(ask_in(b, add_one, 1, n, at.at()) == cudaSuccess);
  };
  forked();
  CHECK(end(a) == cudaErrorStreamCaptureUnjoined);
  forked();
  CHECK(end(b) == cudaErrorStreamCaptureUnmatched);
  CHECK(end(a) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK(cudaStreamBeginCapture(b, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK(cudaEventRecord(fork, a) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(b, fork) == cudaErrorStreamCaptureMerge);
  CHECK(end(a) == cudaErrorStreamCaptureInvalidated);
  CHECK(end(b) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  std::thread([&] { CHECK(end(a) == cudaErrorStreamCaptureWrongThread); }).join();
  void* p = nullptr;
  std::thread([&] {                                                    // another thread's calls are its own affair
    CHECK(cudaMalloc(&p, 8) == cudaSuccess);
    CHECK(cudaFree(p) == cudaSuccess);
  }).join();
  cudaGraphExec_t made = nullptr;
  CHECK(end(a, &made) == cudaSuccess);
  CHECK(cudaGraphExecDestroy(made) == cudaSuccess);
  CHECK(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeThreadLocal) == cudaErrorStreamCaptureUnsupported);
}

TEST_CASE("a GPU that falls off fails everything and hangs nothing; another goes on") {
  gpus const g;
  g.m.gpus = 2;
  stream const s;
  event const e;
  numbers<int> at(n);
  CHECK(ask_in(s, add_one, 1, n, at.at()) == cudaSuccess);
  CHECK(cudaEventRecord(e, s) == cudaSuccess);
  g.m.fall_off(0);
  CHECK(cudaEventQuery(e) == cudaErrorUnknown);
  CHECK(cudaStreamSynchronize(s) == cudaErrorUnknown);
  CHECK(ask_in(s, add_one, 1, n, at.at()) == cudaErrorUnknown);
  CHECK(cudaSetDevice(1) == cudaSuccess);
  {
    numbers<int> there(n);
    there.write(std::vector<int>(n, 2));
    CHECK(ask(add_one, 1, n, there.at()) == cudaSuccess);
    CHECK(there.read() == std::vector<int>(n, 3));
    CHECK(ask_in(s, add_one, 1, n, there.at()) == cudaErrorInvalidResourceHandle);      // a stream of the other's
  }
}

TEST_CASE("a call that a test wants to fail fails, once") {
  gpus const g;
  g.m.on_call = [](std::string const& call, int nth) { return call == "cudaMalloc" && nth == 2 ? cudaErrorMemoryAllocation : cudaSuccess; };
  void *p = nullptr, *q = nullptr;
  CHECK(cudaMalloc(&p, 8) == cudaSuccess);
  CHECK(cudaMalloc(&q, 8) == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&q, 8) == cudaSuccess);
  CHECK(cudaFree(p) == cudaSuccess);
  CHECK(cudaFree(q) == cudaSuccess);
}

TEST_CASE("timed events know when; others do not") {
  gpus const g;
  stream const s;
  event const from(cudaEventDefault), to(cudaEventDefault), untimed;
  numbers<int> at(n);
  float ms = -1;
  CHECK(cudaEventElapsedTime(&ms, from, to) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventRecord(from, s) == cudaSuccess);
  CHECK(ask_in(s, add_one, 1, n, at.at()) == cudaSuccess);
  CHECK(cudaEventRecord(to, s) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, from, to) == cudaErrorNotReady);
  CHECK(cudaEventSynchronize(to) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, from, to) == cudaSuccess);
  CHECK(ms > 0);
  CHECK(cudaEventRecord(untimed, s) == cudaSuccess);
  CHECK(cudaStreamSynchronize(s) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&ms, from, untimed) == cudaErrorInvalidResourceHandle);
}
