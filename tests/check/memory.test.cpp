// tests/check/memory.test.cpp - buffers that meet in an arena are found, exactly those; lifetimes, arenas and predictions
#include <tensorpar/check/memory.hpp>
#include <doctest/doctest.h>

#include <check/check_subject.hpp>
#include <support/effort.hpp>
#include <vector>

using namespace tensorpar;
using tests::subject;

namespace {
std::vector<finding> memory_of(subject const& s) {
  findings out(1000);
  detail::check::check_memory(s.t.graph, s.p, s.q, out);
  return out.take();
}
bool has(std::vector<finding> const& all, fault code, int device = -1) {
  for (finding const& f : all)
    if (f.code == code && (device < 0 || f.device == device)) return true;
  return false;
}
/// Do two buffers share a byte of a device at one time? Pair by pair. A buffer that takes over another's bytes is there a task later.
bool meet(program const& q) {
  for (std::size_t i = 0; i < q.buffers.size(); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      buffer const &a = q.buffers[i], &b = q.buffers[j];
      if (a.first + (a.in_place_of >= 0) > b.last || b.first + (b.in_place_of >= 0) > a.last) continue;
      for (std::size_t k = 0; k < a.devices.size(); ++k)
        for (std::size_t l = 0; l < b.devices.size(); ++l)
          if (a.devices[k] == b.devices[l] && a.bytes && b.bytes && a.offset[k] < b.offset[l] + b.bytes && b.offset[l] < a.offset[k] + a.bytes)
            return true;
    }
  return false;
}
}  // namespace

TEST_CASE("buffers that are moved about meet others exactly when the checker says so") {
  std::mt19937 draw(1);
  int met = 0, apart = 0;
  for (int turn = 0; turn < test_effort::cases(300); ++turn) {
    subject s = tests::checked_step(turn % 30, draw);
    REQUIRE(memory_of(s).empty());
    REQUIRE(!meet(s.q));
    buffer& b = s.q.buffers[draw() % s.q.buffers.size()];
    if (b.in_place_of >= 0 || b.offset.empty()) continue;
    std::size_t const k = draw() % b.offset.size();
    i64 const places = (s.q.arena[idx(b.devices[k])] - b.bytes) / 64 + 1;
    b.offset[k] = 64 * static_cast<i64>(draw() % static_cast<u64>(places));
    bool taken_over = false;  // whoever takes over its bytes says more
    for (buffer const& c : s.q.buffers) taken_over = taken_over || (c.in_place_of >= 0 && &s.q.buffers[idx(c.in_place_of)] == &b);
    if (taken_over) continue;
    REQUIRE(has(memory_of(s), fault::overlap) == meet(s.q));
    (meet(s.q) ? met : apart) += 1;
  }
  CHECK(met > test_effort::cases(50));
  CHECK(apart > test_effort::cases(20));
}

TEST_CASE("lifetimes, alignment, arenas, devices and predictions") {
  std::mt19937 draw(2);
  subject const good = tests::checked_step(3, draw);
  int const d = 2;
  {
    subject s = good;
    s.q.buffers[0].offset[0] += 4;
    CHECK(has(memory_of(s), fault::arena));
  }
  {
    subject s = good;
    s.q.arena[d] -= 64;
    auto const all = memory_of(s);
    CHECK(has(all, fault::arena, d));
    CHECK(has(all, fault::peak, d));
    CHECK(!has(all, fault::peak, 1));
  }
  {
    subject s = good;
    s.p.cluster.kinds[0].memory = s.q.arena[d] - 1;
    CHECK(has(memory_of(s), fault::memory, d));
    s.p.cluster.kinds[0].memory = s.q.arena[d];
    CHECK(!has(memory_of(s), fault::memory, d));
  }
  {
    subject s = good;
    s.p.peak_bytes.clear();  // predicts nothing
    CHECK(memory_of(s).empty());
    s.p.peak_bytes = {s.q.arena[0]};
    CHECK(has(memory_of(s), fault::peak, 1));
    CHECK(!has(memory_of(s), fault::peak, 0));
  }
  int persistent = 0, used = 0;
  for (std::size_t b = 0; b < good.q.buffers.size(); ++b) {
    subject s = good;
    buffer& x = s.q.buffers[b];
    if (x.persistent) {
      ++persistent;
      ++x.first;
      CHECK(has(memory_of(s), fault::lifetime));
    } else if (x.last > x.first) {
      task const& last = good.q.tasks[idx(x.last)];
      auto in = [&](std::vector<int> const& v) { return std::find(v.begin(), v.end(), static_cast<int>(b)) != v.end(); };
      if (!in(last.in) && !in(last.out) && last.workspace != static_cast<int>(b)) continue;  // kept for longer than it is used
      ++used;
      --x.last;
      CHECK(has(memory_of(s), fault::lifetime));
    }
  }
  CHECK(persistent > 3);
  CHECK(used > 10);
}

TEST_CASE("a workspace is on all devices of its task") {
  std::mt19937 draw(4);
  int tried = 0;
  for (int turn = 0; turn < 30 && tried < 5; ++turn) {
    subject s = tests::checked_step(turn, draw);
    for (task const& t : s.q.tasks)
      if (t.workspace >= 0 && t.devices.size() > 1) {
        buffer& w = s.q.buffers[idx(t.workspace)];
        w.devices.pop_back();
        w.offset.pop_back();
        CHECK(has(memory_of(s), fault::devices));
        ++tried;
        break;
      }
  }
  CHECK(tried == 5);
}
