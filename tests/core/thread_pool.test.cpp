// tests/core/thread_pool.test.cpp - every unit is done once, by one member at a time, and what throws reaches the caller
#include <tensorpar/core/thread_pool.hpp>
#include <doctest/doctest.h>

#include <numeric>
#include <stdexcept>
#include <string>

using namespace tensorpar;

TEST_CASE("all units are done once, whatever the number of threads") {
  for (int threads : {1, 2, 3, 8}) {
    team workers(threads);
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
  CHECK(team(0).size() >= 1);
}

TEST_CASE("of units that throw, the first one's exception comes, and there is work after it") {
  for (int threads : {1, 2, 3, 8}) {
    team workers(threads);
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
  team workers(8);
  long sum = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<int> done(3, 0);
    workers.run(3, [&](int i, int) { done[static_cast<std::size_t>(i)] += round; });
    sum += std::accumulate(done.begin(), done.end(), 0L);
  }
  CHECK(sum == 3L * 3000 * 2999 / 2);
}
