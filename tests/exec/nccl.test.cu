// tests/exec/nccl.test.cu - NCCL itself, with as many ranks as there are GPUs; what needs one says that it is skipped where there is none
#include <tensorpar/exec/nccl/nccl.cuh>

#include <doctest/doctest.h>

#include "support/training.hpp"
#include <tensorpar/exec/comm/threads.hpp>
#include <tensorpar/exec/cuda/teams.cuh>

using namespace tests;

static_assert(exec::collective_library<nccl_library, cuda_memory>);
static_assert(exec::shrinking_library<nccl_library> || NCCL_VERSION_CODE < NCCL_VERSION(2, 28, 9));
static_assert(exec::full_communicator<comm::nccl, float> && exec::full_communicator<comm::nccl, prime_field>);
static_assert(exec::require_same_memory<compute::cuda<float>, comm::nccl>());

namespace {
bool no_gpu() {
  if (cuda_devices()) return false;
  MESSAGE("skipped: there is no GPU");
  return true;
}
}  // namespace

TEST_CASE("without a GPU: elements whose sums NCCL knows, and words for what it says") {
  CHECK(nccl_library::code_of<float>() == ncclFloat32);
  CHECK(nccl_library::code_of<double>() == ncclFloat64);
  CHECK(!nccl_library::code_of<prime_field>());
  CHECK(nccl_library::words(ncclInvalidUsage).find("invalid") != std::string::npos);
  int version = 0;
  CHECK(ncclGetVersion(&version) == ncclSuccess);
  CHECK(version >= NCCL_VERSION(2, 18, 0));
}

TEST_CASE("NCCL's own communicator of one rank") {
  if (no_gpu()) return;
  ncclComm_t one = nullptr;
  REQUIRE(ncclCommInitAll(&one, 1, nullptr) == ncclSuccess);
  int ranks = 0;
  CHECK(ncclCommCount(one, &ranks) == ncclSuccess);
  CHECK(ranks == 1);
  CHECK(ncclCommDestroy(one) == ncclSuccess);
}

TEST_CASE("plans on all GPUs by NCCL: the processor's numbers, and the arenas of the plan") {
  if (no_gpu()) return;
  std::mt19937 draw(17);
  int const all = cuda_devices();
  for (computation_graph const& g : {residual_mlp(), small_transformer()})
    for (int ranks = 1; ranks <= all; ranks *= 2) {
      plan const p = random_plan(g, ranks, draw);
      // [quoted: nccl]
      executor<compute::cuda<double>, comm::nccl> gpus(differentiate(g), p);       // a GPU per rank of the plan
      // [end]
      executor<compute::teams<double>, comm::threads> host(differentiate(g), p);
      CHECK(gpus.allocated_bytes() == gpus.program().arena);
      CHECK(tests::distance(train(gpus, 3), train(host, 3)) < 1e-9);
      CHECK(gpus.copies_agree());
    }
}

TEST_CASE("after a failure GPUs go on in a world that is made from the old one: all of them, or without the last") {
  if (no_gpu()) return;
  if (!exec::shrinking_library<nccl_library>) {
    MESSAGE("skipped: this NCCL cannot revoke and shrink communicators");
    return;
  }
  computation_graph const g = residual_mlp();
  std::mt19937 draw(18);
  int const all = cuda_devices() < 4 ? cuda_devices() : 4;
  for (int lose = 0; lose <= (all > 1); ++lose) {
    std::optional<executor<compute::cuda<double>, comm::nccl>> gpus;
    plan const p = random_plan(g, all, draw), smaller = random_plan(g, all - lose, draw);
    gpus.emplace(differentiate(g), p);
    train(*gpus, 2);
    gpus->world().fail(std::make_exception_ptr(error("a rank is lost", "a test", "")), all - 1);
    CHECK_THROWS_WITH_AS(gpus->step(random_batch(g, p.micro_batches, 2), 0.125), doctest::Contains("a rank is lost"), error);
    auto left = gpus->world().survivors(lose ? std::vector{all - 1} : std::vector<int>{});
    CHECK(left.size() == all - lose);
    gpus.reset();
    gpus.emplace(differentiate(g), smaller, [&](int) { return comm::nccl::world(std::move(left)); });
    executor<compute::teams<double>, comm::threads> host(differentiate(g), smaller);
    CHECK(tests::distance(train(*gpus, 3), train(host, 3)) < 1e-9);
  }
}
