// tests/exec/comm/threads_world.test.cpp - the first failure stays, groups are checked, a world has ranks
#include <doctest/doctest.h>
#include <stdexcept>
#include <tensorpar/exec/comm/threads_world.hpp>
#include <thread>

using namespace tensorpar;

TEST_CASE("of several failures the first one counts, with its rank") {
  comm::threads_world world(3);
  CHECK(world.size() == 3);
  CHECK(world.failure() == nullptr);
  CHECK(world.failed_rank() == -1);
  world.fail(std::make_exception_ptr(std::runtime_error("first")), 2);
  world.fail(std::make_exception_ptr(std::runtime_error("second")), 1);
  CHECK(world.failed_rank() == 2);
  CHECK_THROWS_WITH_AS(std::rethrow_exception(world.failure()), "first", std::runtime_error);
  CHECK(world.undelivered() == 0);
}

TEST_CASE("a world that recovers has forgotten the failure, messages on their way and operations half begun") {
  comm::threads_world world(2);
  std::vector<int> const both{0, 1};
  auto& g = world.group_of({both.data(), 2}, 0);
  for (int again = 0; again < 3; ++again) {
    world.post(1, {0, 5, 0, 1, {}});
    std::thread left([&] { CHECK_THROWS_WITH_AS(world.open(g, 0, {"barrier"}), "stop", std::runtime_error); });
    world.fail(std::make_exception_ptr(std::runtime_error("stop")), 1);
    left.join();
    CHECK_THROWS_WITH_AS(world.open(g, 1, {"barrier"}), "stop", std::runtime_error);
    world.recover();
    CHECK(world.failure() == nullptr);
    CHECK(world.failed_rank() == -1);
    CHECK(world.undelivered() == 0);
    std::thread first([&] { world.open(g, 0, {"barrier"}); });
    world.open(g, 1, {"barrier"});
    first.join();
    CHECK(g.sequence[0] == g.sequence[1]);
  }
}

TEST_CASE("a world without ranks and groups that are none are refused") {
  CHECK_THROWS_WITH_AS(comm::threads_world(0), doctest::Contains("at least one rank"), error);
  comm::threads_world world(4);
  auto refuses = [&](std::vector<int> const& members, int rank, char const* why) {
    CHECK_THROWS_WITH_AS(world.group_of({members.data(), static_cast<int>(members.size())}, rank), doctest::Contains(why), error);
  };
  refuses({1, 0}, 0, "ascending");
  refuses({0, 0}, 0, "ascending");
  refuses({0, 4}, 0, "ascending");
  refuses({-1, 0}, 0, "ascending");
  refuses({0, 1}, 2, "must be a member");
  std::vector<int> const good{1, 3};
  auto const& g = world.group_of({good.data(), 2}, 3);
  CHECK(g.members == good);
  CHECK(&g == &world.group_of({good.data(), 2}, 1));  // both ranks meet in one
}
