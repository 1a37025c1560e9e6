// tests/stand_in/races.test.cpp - the GPU that is played: numbers that two touch, one of whom has not waited for the other
#include <cuda_runtime.h>
#include <doctest/doctest.h>
#include <string>
#include <vector>

#include "gpu.hpp"

using namespace gpu_tests;

namespace {

enum class wait { none, warp, block };
template <wait W> __device__ void waited() {
  if (W == wait::warp) __syncwarp();
  if (W == wait::block) __syncthreads();
}
/// Lanes read what the next has written, in shared memory or the GPU's.
template <wait W, bool Shared> __global__ void gives_on(int* out) {
  __shared__ int room[64];
  int* const at = Shared ? room : out + 64;
  at[threadIdx.x] = static_cast<int>(threadIdx.x);
  waited<W>();
  out[threadIdx.x] = at[(threadIdx.x + 1) % blockDim.x];
}
/// A room is used again at once, or when all have read.
template <wait W> __global__ void twice(int* out) {
  __shared__ int room[64];
  for (int k = 0; k < 2; ++k) {
    room[threadIdx.x] = k;
    __syncthreads();
    out[threadIdx.x] += room[threadIdx.x ^ 1];
    waited<W>();
  }
}
/// All lanes of a warp have come to the same place, but no memory is in order.
__global__ void gives_on_by_shuffles(int* out) {
  out[threadIdx.x] = 1;
  int const x = __shfl_xor_sync(0xffffffffu, 1, 1);
  if (threadIdx.x == 0) out[1] = x;
}
/// The first eight lanes wait for each other, and one of `from` reads what the first wrote.
__global__ void parts_of_a_warp(int* out, unsigned from) {
  if (threadIdx.x == 0) out[64] = 1;
  if (threadIdx.x < 8) __syncwarp(0xffu);
  if (threadIdx.x == from) out[0] = out[64];
}
/// What of the warp is waited for goes on to whom one of them waits with.
__global__ void by_another_lane(int* out) {
  if (threadIdx.x == 0) out[64] = 1;
  if (threadIdx.x < 2) __syncwarp(0x3u);
  if (threadIdx.x == 1 || threadIdx.x == 2) __syncwarp(0x6u);
  if (threadIdx.x == 2) out[0] = out[64];
}
template <bool Apart> __global__ void of_all_blocks(int* out) {
  if (threadIdx.x == 0) out[Apart ? blockIdx.x : 0] = 1;
}
/// Two bytes are nobody else's; one byte is half of them.
template <class T> __global__ void neighbours_of(T* out) { out[threadIdx.x] = 1; }
__global__ void reads(int* out) { out[threadIdx.x] += out[64]; }
__global__ void whole_words(int* out) { *const_cast<int volatile*>(out) = static_cast<int>(threadIdx.x); }
struct five { int x[5]; };
/// More bytes than a register has: the last of lane 0's is the first of lane 1's.
__global__ void long_writes(int* out) { *reinterpret_cast<five*>(out + 4 * threadIdx.x) = five{{1, 2, 3, 4, 5}}; }
__global__ void store(int* p, int value) { p[threadIdx.x] = value; }
__global__ void copy_over(int* to, int const* from) { to[threadIdx.x] = from[threadIdx.x]; }

/// Were accesses out of order?
template <class... P> bool unordered(void (*kernel)(P...), unsigned blocks, unsigned lanes) {
  bool seen = false;
  for (lane_order o : {lane_order::forward, lane_order::backward, lane_order::shuffled}) {
    gpus const g;
    g.m.lanes = o;
    g.m.minds_races = false;
    numbers<int> out(256);
    out.write(std::vector<int>(256, 0));
    REQUIRE(ask(kernel, blocks, lanes, reinterpret_cast<std::tuple_element_t<0, std::tuple<P...>>>(out.at())) == cudaSuccess);
    REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
    bool const now = g.complained("not in order");
    CHECK((o == lane_order::forward || now == seen));                  // whatever the order
    seen = now;
  }
  return seen;
}
bool unordered_by(unsigned from) {
  gpus const g;
  g.m.minds_races = false;
  numbers<int> out(256);
  REQUIRE(ask(parts_of_a_warp, 1, 32, out.at(), from) == cudaSuccess);
  REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
  return g.complained("not in order");
}
bool skipped() {
  if (!cuda_stand_in::races::all_is_seen()) MESSAGE("skipped: accesses are not told by this compiler, or sanitizers of its own look at them");
  return !cuda_stand_in::races::all_is_seen();
}
constexpr schedule schedules[] = {schedule::late, schedule::early, schedule::shuffled};

}  // namespace

TEST_CASE("lanes that have not waited for each other are seen, in shared memory and in the GPU's") {
  if (skipped()) return;
  CHECK(unordered(gives_on<wait::none, true>, 1, 32));
  CHECK(unordered(gives_on<wait::none, false>, 1, 32));
  CHECK_FALSE(unordered(gives_on<wait::warp, true>, 1, 32));
  CHECK_FALSE(unordered(gives_on<wait::warp, false>, 1, 32));
  CHECK(unordered(gives_on<wait::warp, true>, 1, 64));                     // of another warp
  CHECK_FALSE(unordered(gives_on<wait::block, true>, 1, 64));
  CHECK(unordered(twice<wait::none>, 1, 64));
  CHECK_FALSE(unordered(twice<wait::block>, 1, 64));
  CHECK_FALSE(unordered(twice<wait::warp>, 1, 64));                        // who reads is in the same warp
  CHECK(unordered(gives_on_by_shuffles, 1, 32));
  CHECK(unordered(long_writes, 1, 2));
  CHECK_FALSE(unordered(long_writes, 1, 1));
  CHECK_FALSE(unordered(whole_words, 2, 64));
}

TEST_CASE("lanes of a part of a warp wait for the lanes of that part, and hand on what they know") {
  if (skipped()) return;
  for (unsigned from : {0u, 1u, 7u}) CHECK_FALSE(unordered_by(from));
  for (unsigned from : {8u, 31u}) CHECK(unordered_by(from));
  CHECK_FALSE(unordered(by_another_lane, 1, 32));
}

TEST_CASE("blocks of a launch wait for nobody; numbers of two bytes lie apart") {
  if (skipped()) return;
  CHECK(unordered(of_all_blocks<false>, 2, 32));
  CHECK_FALSE(unordered(of_all_blocks<true>, 2, 32));
  CHECK_FALSE(unordered(of_all_blocks<false>, 1, 32));
  CHECK_FALSE(unordered(neighbours_of<std::uint16_t>, 1, 64));
  CHECK(unordered(neighbours_of<std::uint16_t>, 2, 64));
  CHECK_FALSE(unordered(reads, 1, 64));                                    // all read what nobody writes
}

TEST_CASE("streams are in order by events that were written after the work, whatever is done first") {
  if (skipped()) return;
  for (schedule when : schedules)
    for (int how = 0; how < 4; ++how) {
      gpus const g;
      g.m.when = when;
      g.m.minds_races = false;
      stream const a, b;
      event const e;
      numbers<int> from(64), to(64);
      from.write(std::vector<int>(64, 0), a);
      if (how == 1) CHECK(cudaEventRecord(e, a) == cudaSuccess);       // too early
      CHECK(ask_in(a, store, 1, 64, from.at(), 7) == cudaSuccess);
      if (how == 2) CHECK(cudaEventRecord(e, a) == cudaSuccess);
      if (how == 3) CHECK(cudaStreamSynchronize(a) == cudaSuccess);
      else CHECK(cudaStreamWaitEvent(b, e) == cudaSuccess);
      CHECK(ask_in(b, copy_over, 1, 64, to.at(), static_cast<int const*>(from.at())) == cudaSuccess);
      CHECK(cudaDeviceSynchronize() == cudaSuccess);
      CHECK(g.complained("not in order") == (how < 2));
    }
}

TEST_CASE("what lies beside a piece of memory is nobody's, from its first byte to its last") {
  if (skipped()) return;
  struct {
    int from;
    unsigned lanes;
    bool outside;
  } const cases[] = {{0, 60, false}, {0, 61, true}, {-1, 1, true}, {59, 1, false}, {60, 1, true}};
  for (auto const& c : cases) {
    gpus g;
    numbers<int> out(60);
    REQUIRE(ask(store, 1, c.lanes, out.at() + c.from, 1) == cudaSuccess);
    CHECK(cudaDeviceSynchronize() == (c.outside ? cudaErrorIllegalAddress : cudaSuccess));
    CHECK(g.complained("outside of what is allocated, 4 bytes") == c.outside);
    CHECK(g.complained("lane " + std::to_string(c.lanes - 1) + " writes in ") == c.outside);
    g.again();
  }
}

TEST_CASE("a race is a failed launch, in words that name who and where") {
  if (skipped()) return;
  gpus g;
  numbers<int> out(256);
  REQUIRE(ask(of_all_blocks<false>, 2, 32, out.at()) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaErrorLaunchFailure);
  CHECK(g.complained("block 0, lane 0 writes in "));
  CHECK(g.complained("block 1, lane 0 writes in "));
  g.again();
}

TEST_CASE("nodes of a graph are in order along its edges; replays follow each other") {
  if (skipped()) return;
  for (bool joined : {true, false}) {
    gpus const g;
    g.m.minds_races = false;
    stream const a, b;
    event const fork, join;
    numbers<int> x(64), y(64);
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    CHECK(ask_in(a, store, 1, 64, x.at(), 1) == cudaSuccess);
    CHECK(cudaEventRecord(fork, a) == cudaSuccess);
    CHECK(cudaStreamWaitEvent(b, fork) == cudaSuccess);
    CHECK(ask_in(b, copy_over, 1, 64, y.at(), static_cast<int const*>(x.at())) == cudaSuccess);
    CHECK(cudaEventRecord(join, b) == cudaSuccess);
    if (joined) CHECK(cudaStreamWaitEvent(a, join) == cudaSuccess);
    CHECK(ask_in(a, store, 1, 64, x.at(), 2) == cudaSuccess);          // what b reads
    if (!joined) CHECK(cudaStreamWaitEvent(a, join) == cudaSuccess);
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    REQUIRE(cudaStreamEndCapture(a, &graph) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&made, graph) == cudaSuccess);
    for (int k = 0; k < 3; ++k) CHECK(cudaGraphLaunch(made, a) == cudaSuccess);
    CHECK(ask_in(a, store, 1, 64, y.at(), 3) == cudaSuccess);          // after all of it
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(g.complained("not in order") == !joined);
    CHECK(cudaGraphLaunch(made, a) == cudaSuccess);
    CHECK(ask_in(b, store, 1, 64, y.at(), 4) == cudaSuccess);          // beside it
    g.m.complaints.clear();
    CHECK(cudaDeviceSynchronize() == cudaSuccess);
    CHECK(g.complained("not in order"));
    CHECK(cudaGraphDestroy(graph) == cudaSuccess);
    CHECK(cudaGraphExecDestroy(made) == cudaSuccess);
  }
}

TEST_CASE("the host and copies from its pinned memory: who writes has waited, or heard that they are done") {
  if (skipped()) return;
  for (schedule when : schedules)
    for (int how = 0; how < 3; ++how) {
      gpus const g;
      g.m.when = when;
      g.m.minds_races = false;
      stream const s;
      event const e;
      numbers<int> at(64);
      int* here = nullptr;
      REQUIRE(cudaHostAlloc(reinterpret_cast<void**>(&here), 256, cudaHostAllocDefault) == cudaSuccess);
      std::fill(here, here + 64, 3);
      CHECK(cudaMemcpyAsync(at.at(), here, 256, cudaMemcpyHostToDevice, s) == cudaSuccess);
      CHECK(cudaEventRecord(e, s) == cudaSuccess);
      if (how == 1) CHECK(cudaStreamSynchronize(s) == cudaSuccess);
      if (how == 2) while (cudaEventQuery(e) == cudaErrorNotReady) {}
      std::fill(here, here + 64, 4);
      CHECK(cudaDeviceSynchronize() == cudaSuccess);
      CHECK(g.complained("not in order") == (how == 0));
      CHECK(cudaFreeHost(here) == cudaSuccess);
    }
}
