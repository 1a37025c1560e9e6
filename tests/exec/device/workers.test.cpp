// tests/exec/device/workers.test.cpp - every worker runs once per round, and a round ends when all have
#include <doctest/doctest.h>
#include <set>
#include <tensorpar/exec/device/workers.hpp>

using tensorpar::detail::worker_pool;

TEST_CASE("rounds follow each other, each worker once, always on the same thread") {
  for (int n : {1, 2, 5}) {
    worker_pool pool(n);
    std::vector<int> runs(static_cast<std::size_t>(n), 0);
    std::vector<std::thread::id> thread(static_cast<std::size_t>(n));
    for (int round = 1; round <= 200; ++round) {
      auto work = [&](int i) {
        std::size_t const k = static_cast<std::size_t>(i);
        if (round > 1 && thread[k] != std::this_thread::get_id()) runs[k] = -1000;
        thread[k] = std::this_thread::get_id();
        ++runs[k];
      };
      pool.run(work);
      CHECK(runs == std::vector<int>(static_cast<std::size_t>(n), round));  // no lock: run() has waited for all
    }
    CHECK(std::set<std::thread::id>(thread.begin(), thread.end()).size() == static_cast<std::size_t>(n));
  }
}

TEST_CASE("a pool without workers has nothing to wait for, and one that never ran ends") {
  worker_pool none(0), idle(3);
  int runs = 0;
  auto work = [&](int) { ++runs; };
  none.run(work);
  CHECK(runs == 0);
}

namespace {
/// The system starts three of them at a time.
struct scarce_thread : std::thread {
  static inline int started = 0;
  template <class F> explicit scarce_thread(F f) : std::thread(room(f)) {}
  scarce_thread(scarce_thread&&) = default;
  ~scarce_thread() { CHECK(!joinable()); }

 private:
  template <class F> static std::thread room(F f) {
    if (++started > 3) throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again));
    return std::thread(f);
  }
};
}  // namespace

TEST_CASE("threads that the system does not start are an error, and those that it did start have ended") {
  using scarce_pool = tensorpar::detail::basic_worker_pool<scarce_thread>;
  CHECK_THROWS_WITH_AS(scarce_pool(5), doctest::Contains("started 3 of 5 threads"), tensorpar::error);
}
