// tests/exec/threads_hub.test.cpp - the first failure stays, groups are checked, a hub has ranks
#include <doctest/doctest.h>
#include <stdexcept>
#include <tensorpar/exec/threads_hub.hpp>
#include <thread>

using namespace tensorpar;

TEST_CASE("of several failures the first one counts, with its rank") {
  comm::threads_hub hub(3);
  CHECK(hub.size() == 3);
  CHECK(hub.failure() == nullptr);
  CHECK(hub.failed_rank() == -1);
  hub.fail(std::make_exception_ptr(std::runtime_error("first")), 2);
  hub.fail(std::make_exception_ptr(std::runtime_error("second")), 1);
  CHECK(hub.failed_rank() == 2);
  CHECK_THROWS_WITH_AS(std::rethrow_exception(hub.failure()), "first", std::runtime_error);
  CHECK(hub.undelivered() == 0);
}

TEST_CASE("a hub that recovers has forgotten the failure, messages on their way and operations half begun") {
  comm::threads_hub hub(2);
  std::vector<int> const both{0, 1};
  auto& g = hub.group_of({both.data(), 2}, 0);
  for (int again = 0; again < 3; ++again) {
    hub.post(1, {0, 5, 0, 1, {}});
    std::thread left([&] { CHECK_THROWS_WITH_AS(hub.open(g, 0, {"barrier"}), "stop", std::runtime_error); });
    hub.fail(std::make_exception_ptr(std::runtime_error("stop")), 1);
    left.join();
    CHECK_THROWS_WITH_AS(hub.open(g, 1, {"barrier"}), "stop", std::runtime_error);
    hub.recover();
    CHECK(hub.failure() == nullptr);
    CHECK(hub.failed_rank() == -1);
    CHECK(hub.undelivered() == 0);
    std::thread first([&] { hub.open(g, 0, {"barrier"}); });
    hub.open(g, 1, {"barrier"});
    first.join();
    CHECK(g.sequence[0] == g.sequence[1]);
  }
}

TEST_CASE("a hub without ranks and groups that are none are refused") {
  CHECK_THROWS_WITH_AS(comm::threads_hub(0), doctest::Contains("at least one rank"), error);
  comm::threads_hub hub(4);
  auto refuses = [&](std::vector<int> const& members, int rank, char const* why) {
    CHECK_THROWS_WITH_AS(hub.group_of({members.data(), static_cast<int>(members.size())}, rank), doctest::Contains(why), error);
  };
  refuses({1, 0}, 0, "ascending");
  refuses({0, 0}, 0, "ascending");
  refuses({0, 4}, 0, "ascending");
  refuses({-1, 0}, 0, "ascending");
  refuses({0, 1}, 2, "must be a member");
  std::vector<int> const good{1, 3};
  auto const& g = hub.group_of({good.data(), 2}, 3);
  CHECK(g.members == good);
  CHECK(&g == &hub.group_of({good.data(), 2}, 1));  // both ranks meet in one
}
