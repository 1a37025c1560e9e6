// tests/exec/comm/virtual_ranks.test.cpp - many ranks in one memory: the laws of collectives, and whole plans with the bits of
// comm::threads
#include <tensorpar/exec/comm/virtual_ranks.hpp>

#include <doctest/doctest.h>

#include "../../examples/far_device.hpp"
#include "support/laws/communicator.hpp"
#include "support/spine.hpp"

using namespace tests;
using far::far_compute, far::far_memory;

namespace {

using near_ranks = comm::virtual_ranks<tensorpar::exec::host_memory>;

template <class Element> std::string laws_on(int ranks, std::vector<i64> const& counts) {
  comm::threads_world h(ranks);
  std::vector<std::string> found(static_cast<std::size_t>(ranks));
  comm::run_ranks<near_ranks>(h, [&](near_ranks& c) {
    std::string& mine = found[static_cast<std::size_t>(c.rank())];
    std::vector<int> all;
    for (int i = 0; i < ranks; ++i) all.push_back(i);
    auto const g = c.make_group({all.data(), ranks});
    for (i64 n : counts) mine += broken_collective_laws<Element>(c, g, n, static_cast<u64>(n));
    mine += broken_message_laws<Element>(c, counts.back(), 5);
  });
  CHECK(h.undelivered() == 0);
  std::string r;
  for (auto const& s : found) r += s;
  return r;
}

/// One device whose memory the host cannot read; every rank computes there.
template <class Scalar> struct one_device : far_compute<Scalar> {
  one_device() : far_compute<Scalar>(exec::device_place{}) {}
};
template <class S> using on_one = executor<one_device<S>, comm::virtual_ranks<far_memory>>;

}  // namespace

TEST_CASE("collectives keep their laws for 1 to 6 ranks, in pieces of the scratch space too") {
  for (int ranks = 1; ranks <= 6; ++ranks) {
    CHECK(laws_on<float>(ranks, {0, 1, 5, 700}) == "");
    CHECK(laws_on<prime_field>(ranks, {3, 600}) == "");
  }
  CHECK(laws_on<double>(3, {200000}) == "");
  CHECK(laws_on<std::int32_t>(4, {9}) == "");
}

TEST_CASE("a plan for many devices runs on one, with the bits of a run on many") {
  std::mt19937 draw(21);
  int collectives = 0;
  for (computation_graph const& g : {residual_mlp(), small_cnn(), small_transformer()})
    for (int devices : {1, 2, 4, 6, 8}) {
      plan const p = random_plan(g, devices, draw);
      on_one<prime_field> one(differentiate(g), p);
      executor_of<prime_field> many(differentiate(g), p);
      CHECK(train(one, 2) == train(many, 2));
      CHECK(one.copies_agree());
      on_one<double> a(differentiate(g), p);
      executor_of<double> b(differentiate(g), p);
      CHECK(train(a, 2) == train(b, 2));
      for (task const& t : a.program().tasks)
        collectives += t.kind == task_kind::reshard && t.step.kind != tensorpar::ir::reshard_kind::exchange;
    }
  CHECK(collectives > 50);
}

TEST_CASE("what one rank throws, all throw; ranks that do not exist are named") {
  comm::threads_world h(3);
  CHECK_THROWS_WITH_AS(near_ranks(h, 3), doctest::Contains("no such rank: 3"), error);
  CHECK_THROWS_WITH_AS(comm::run_ranks<near_ranks>(h,
                                                   [](near_ranks& c) {
                                                     int const all[] = {0, 1, 2};
                                                     auto const g = c.make_group({all, 3});
                                                     float x[4] = {}, y[4] = {};
                                                     c.all_reduce(g, x, y, c.rank() == 1 ? 3 : 4);
                                                   }),
                       doctest::Contains("does not fit"), error);
  comm::threads_world again(2);
  CHECK_THROWS_WITH_AS(comm::run_ranks<near_ranks>(again,
                                                   [](near_ranks& c) {
                                                     float x = 0;
                                                     c.send(2, 0, &x, 1);
                                                   }),
                       doctest::Contains("no such rank: 2"), error);
}
