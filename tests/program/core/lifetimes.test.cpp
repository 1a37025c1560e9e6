// tests/program/core/lifetimes.test.cpp - buffers live as long as tasks use them
#include <doctest/doctest.h>
#include <tensorpar/program/core/lifetimes.hpp>

using namespace tensorpar;

TEST_CASE("from the first task that reads, writes or packs there to the last; unused ones with the first task") {
  program p;
  p.buffers.resize(5);
  for (buffer& b : p.buffers) b.first = b.last = 7;                 // of an order that is gone
  p.tasks.resize(4);
  p.tasks[0].out = {0};
  p.tasks[1].in = {0};
  p.tasks[1].out = {1};
  p.tasks[2].in = {1};
  p.tasks[2].out = {2};
  p.tasks[2].workspace = 3;
  p.tasks[3].in = {0, 2};
  passes::live_by_use(p);
  std::vector<std::pair<int, int>> lives;
  for (buffer const& b : p.buffers) lives.push_back({b.first, b.last});
  CHECK(lives == std::vector<std::pair<int, int>>{{0, 3}, {1, 2}, {2, 3}, {2, 2}, {0, 0}});
}
