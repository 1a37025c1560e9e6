// tests/core/thread_pool.test.cpp - every unit is done once, by one member at a time, and what throws reaches the caller
#include <tensorpar/core/thread_pool.hpp>
#include <doctest/doctest.h>

#include <numeric>
#include <set>
#include <stdexcept>
#include <string>

using namespace tensorpar;

TEST_CASE("all units are done once, whatever the number of threads") {
  for (int threads : {1, 2, 3, 8}) {
    core::thread_pool workers(threads);
    CHECK(workers.size() == threads);
    for (int units : {0, 1, 2, 7, 1000}) {
      std::vector<int> done(static_cast<std::size_t>(units), 0), by(8, 0);
      std::vector<int> at_once(8, 0);
      bool alone = true;
      workers.run(units, [&](int i, int member) {
        auto const m = static_cast<std::size_t>(member);
        if (++at_once[m] != 1) alone = false;
        ++done[static_cast<std::size_t>(i)];
        ++by[m];
        --at_once[m];
      });
      CHECK(alone);
      CHECK(done == std::vector<int>(static_cast<std::size_t>(units), 1));
      CHECK(std::accumulate(by.begin(), by.end(), 0) == units);
    }
    std::vector<int> seen(1003, 0);
    workers.run_blocks(seen.size(), 100, [&](std::size_t first, std::size_t last, int) {
      for (std::size_t i = first; i < last; ++i) ++seen[i];
    });
    CHECK(seen == std::vector<int>(1003, 1));
  }
  CHECK(core::thread_pool(0).size() >= 1);
}

TEST_CASE("of units that throw, the first one's exception comes, and there is work after it") {
  for (int threads : {1, 2, 3, 8}) {
    core::thread_pool workers(threads);
    for (int round = 0; round < 50; ++round) {
      std::string what;
      try {
        workers.run(100, [](int i, int) { if (i % 7 == 5) throw std::runtime_error(std::to_string(i)); });
      } catch (std::runtime_error const& e) {
        what = e.what();
      }
      CHECK(what == "5");
      std::vector<int> done(10, 0);
      workers.run(10, [&](int i, int) { done[static_cast<std::size_t>(i)] = i; });
      CHECK(done[9] == 9);
    }
  }
}

TEST_CASE("round after round, with more threads than units: who comes late neither works nor is waited for") {
  core::thread_pool workers(8);
  long sum = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<int> done(3, 0);
    workers.run(3, [&](int i, int) { done[static_cast<std::size_t>(i)] += round; });
    sum += std::accumulate(done.begin(), done.end(), 0L);
  }
  CHECK(sum == 3L * 3000 * 2999 / 2);
}

TEST_CASE("rounds follow each other, each worker once, always on the same thread") {
  for (int n : {1, 2, 5}) {
    core::thread_pool pool(n, core::pool_start::now);
    std::vector<int> runs(static_cast<std::size_t>(n), 0);
    std::vector<std::thread::id> thread(static_cast<std::size_t>(n));
    for (int round = 1; round <= 200; ++round) {
      auto work = [&](int i) {
        std::size_t const k = static_cast<std::size_t>(i);
        if (round > 1 && thread[k] != std::this_thread::get_id()) runs[k] = -1000;
        thread[k] = std::this_thread::get_id();
        ++runs[k];
      };
      pool.run_each(work);
      CHECK(runs == std::vector<int>(static_cast<std::size_t>(n), round));  // no lock: run() has waited for all
    }
    CHECK(std::set<std::thread::id>(thread.begin(), thread.end()).size() == static_cast<std::size_t>(n));
  }
}

TEST_CASE("a pool without workers has nothing to wait for, and one that never ran ends") {
  core::thread_pool none(0, core::pool_start::now), idle(3, core::pool_start::now);
  int runs = 0;
  auto work = [&](int) { ++runs; };
  none.run_each(work);
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
  using scarce_pool = core::basic_thread_pool<scarce_thread>;
  CHECK_THROWS_WITH_AS(scarce_pool(5, core::pool_start::now), doctest::Contains("started 3 of 5 threads"), error);
}

TEST_CASE("both kinds of work on the same threads, in any order; those of run_each may wait for one another") {
  core::thread_pool pool(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<int> done(20, 0);
    pool.run(20, [&](int i, int member) { done[static_cast<std::size_t>(i)] = member < 3 ? 1 : 1000; });
    CHECK(std::accumulate(done.begin(), done.end(), 0) == 20);
    std::atomic<int> here{0};
    pool.run_each([&](int) {
      ++here;
      while (here.load() < 3) std::this_thread::yield();           // all three at the same time
    });
    CHECK(here.load() == 3);
  }
}
