// tests/exec/step/queue_lanes.test.cpp - which queue waits for which mark, and no more than that
#include <tensorpar/exec/step/queue_lanes.hpp>

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

using namespace tensorpar;

namespace {

/// Writes down what it is asked for.
struct noting : exec::host_memory {
  std::shared_ptr<std::vector<std::string>> log = std::make_shared<std::vector<std::string>>();
  std::shared_ptr<int> marks = std::make_shared<int>(0);
  std::string name = "a";
  using mark = int;
  void note(std::string what) const { log->push_back(name + what); }
  noting beside() const {
    noting r = *this;
    r.name = "b";
    return r;
  }
  mark make_mark() const { return (*marks)++; }
  void set(mark& k) const { note(" sets " + std::to_string(k)); }
  void follow(mark const& k) const { note(" follows " + std::to_string(k)); }
  bool reached(mark const&) const { return true; }
  mark make_timed_mark() const { return make_mark(); }
  double seconds(mark const&, mark const&) const { return 0; }
};
static_assert(exec::queued_memory<noting>);

}  // namespace

TEST_CASE("tasks that are awaited get marks, and a lane follows each at most once") {
  noting const a;
  exec::queue_lanes<noting> lanes({a, a.beside()});
  // program order: (lane, how many of the other lane's tasks must have ended)
  std::vector<std::pair<int, int>> const tasks{{0, 0}, {0, 0}, {1, 1}, {1, 1}, {0, 1}, {0, 0}, {1, 4}, {0, 1}, {0, 3}};
  auto const waits = [](int own, int n) { return own ? std::array{n, 0} : std::array{0, n}; };
  for (auto const& [own, n] : tasks) lanes.plan({waits(own, n).data(), 2});
  CHECK(*a.marks == 4);
  for (int step = 0; step < 2; ++step) {
    a.log->clear();
    lanes.restart();
    for (auto const& [own, n] : tasks) {
      CHECK(lanes.await(own, {waits(own, n).data(), 2}));
      a.note(own ? " does b" : " does a");
      lanes.ended(own);
    }
    CHECK(*a.log == std::vector<std::string>{"a does a", "a sets 0", "a does a", "b follows 0", "a does b", "b sets 1", "a does b",
                                             "a follows 1", "a does a", "a does a", "a sets 2", "b follows 2", "a does b", "b sets 3",
                                             "a does a", "a follows 3", "a does a"});
  }
}

TEST_CASE("three lanes follow one another, each what it waits for") {
  noting const a;
  noting c = a.beside();
  c.name = "c";
  exec::queue_lanes<noting> lanes({a, a.beside(), c});
  // program order: lane, and how many tasks of every lane must have ended
  std::vector<std::pair<int, std::array<int, 3>>> const tasks{
      {0, {0, 0, 0}}, {1, {1, 0, 0}}, {2, {1, 0, 0}}, {2, {1, 1, 0}}, {0, {0, 1, 2}}, {1, {0, 0, 1}}};
  for (auto const& [own, n] : tasks) lanes.plan({n.data(), 3});
  CHECK(*a.marks == 4);
  CHECK(lanes.awaited(0, 0));
  CHECK(!lanes.awaited(0, 1));
  CHECK(lanes.awaited(2, 0));
  for (auto const& [own, n] : tasks) {
    CHECK(lanes.await(own, {n.data(), 3}));
    a.note(own == 0 ? " does a" : own == 1 ? " does b" : " does c");
    lanes.ended(own);
  }
  CHECK(*a.log == std::vector<std::string>{"a does a", "a sets 0", "b follows 0", "a does b", "b sets 1", "c follows 0", "a does c", "c sets 3",
                                           "c follows 1", "a does c", "c sets 2", "a follows 1", "a follows 2", "a does a", "b follows 3", "a does b"});
}
