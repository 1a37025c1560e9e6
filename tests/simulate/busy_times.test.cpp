// tests/simulate/busy_times.test.cpp - when any of some lanes is busy
#include <doctest/doctest.h>
#include <tensorpar/simulate/busy_times.hpp>

#include <random>

using namespace tensorpar;
using simulation::lane_mark;

TEST_CASE("every moment from a time on is busy if one of the lanes is, and told once") {
  std::mt19937 draw(4);
  for (int trial = 0; trial < 2000; ++trial) {
    std::vector<std::vector<lane_mark>> lanes(1 + draw() % 3);
    constexpr int end = 40;
    std::vector<char> busy(end, 0);
    int const from = static_cast<int>(draw() % 30);
    for (auto& l : lanes)
      for (int now = static_cast<int>(draw() % 6); now < end;) {
        int const to = std::min(end, now + static_cast<int>(draw() % 5));        // some take no time
        l.push_back({l.size(), static_cast<double>(now), static_cast<double>(to)});
        for (int i = now; i < to; ++i) busy[static_cast<std::size_t>(i)] = i >= from;
        now = to + static_cast<int>(draw() % 4);
      }
    std::vector<char> told(end, 0);
    double last = 0;
    simulation::busy_times all(lanes.data(), lanes.size(), from);
    for (lane_mark at; all.next(at);) {
      CHECK(at.start >= last);
      CHECK(at.end >= at.start);
      last = at.end;
      for (int i = std::max(from, static_cast<int>(at.start)); i < static_cast<int>(at.end); ++i) {
        CHECK(!told[static_cast<std::size_t>(i)]);
        told[static_cast<std::size_t>(i)] = 1;
      }
    }
    CHECK(told == busy);
  }
}
