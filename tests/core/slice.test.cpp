// tests/core/slice.test.cpp - pool against std::vector over random operations, in constant evaluation too
#include <doctest/doctest.h>

#include <random>
#include <tensorpar/core/slice.hpp>
#include <type_traits>
#include <utility>
#include <vector>

using namespace tensorpar;

static_assert(!std::is_copy_constructible_v<core::pool<int>> && !std::is_copy_assignable_v<core::pool<int>>);
static_assert(std::is_nothrow_move_constructible_v<core::pool<int>> && std::is_nothrow_move_assignable_v<core::pool<int>>);

namespace {

constexpr int sum_of_squares(int n) {
  core::pool<int> p;
  for (int i = 0; i < n; ++i)
    if (p.push(i * i) != i) return -1;
  int sum = 0;
  for (int x : p.view()) sum += x;
  return sum;
}

constexpr int count_to(int n) {
  core::pool<int> p;
  for (int i = 0; i < n; ++i) p.push(1);
  core::pool<int> q = static_cast<core::pool<int>&&>(p);
  for (int i = 0; i < 3; ++i) { p.push(-1); q.push(1); q.pop(); }  // one moved from, and one moved to, grow on
  int sum = 0;
  for (int x : q) sum += x;
  return p.size() == 3 && p.back() == -1 ? sum : -1;
}

constexpr bool moves_leave_nothing() {
  core::pool<int> a(3, 7);
  core::pool<int> b = static_cast<core::pool<int>&&>(a);
  core::pool<int> c(1, 1);
  c = static_cast<core::pool<int>&&>(b);
  return a.empty() && b.empty() && c.size() == 3 && c.back() == 7;
}

}  // namespace

static_assert(sum_of_squares(0) == 0);
static_assert(sum_of_squares(200) == 199 * 200 * 399 / 6);
static_assert(count_to(4096) == 4096 && count_to(4097) == 4097 && count_to(16385) == 16385);  // grows past its room, and again
static_assert(moves_leave_nothing());

TEST_CASE("pool does what std::vector does, over random operations") {
  for (unsigned seed = 0; seed < 50; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    int const n = static_cast<int>(random() % 5);
    core::pool<int> p(n, 42);
    std::vector<int> v(static_cast<std::size_t>(n), 42);
    for (int step = 0; step < 1500; ++step) {
      switch (random() % 8) {
        case 0:
          if (!v.empty()) {
            p.pop();
            v.pop_back();
          }
          break;
        case 1:
          if (random() % 100 == 0) {
            p.clear();
            v.clear();
          }
          break;
        case 2:
          if (!v.empty()) {
            auto const i = random() % v.size();
            p[static_cast<int>(i)] = v[i] = step;
          }
          break;
        case 3: {
          core::pool<int> moved = std::move(p);
          p = std::move(moved);
          break;
        }
        default:
          REQUIRE(p.push(step) == static_cast<int>(v.size()));
          v.push_back(step);
      }
      REQUIRE(p.size() == static_cast<int>(v.size()));
      REQUIRE(p.empty() == v.empty());
      if (!v.empty()) REQUIRE(p.back() == v.back());
    }
    CHECK(std::vector<int>(p.begin(), p.end()) == v);
    core::slice<int> const s = p.view();
    CHECK(std::vector<int>(s.begin(), s.end()) == v);
    CHECK(s.data() == p.begin());
    for (int i = 0; i < s.size(); ++i) REQUIRE(s[i] == v[static_cast<std::size_t>(i)]);
  }
}

TEST_CASE("a pool that moves onto itself keeps its elements") {
  core::pool<int> p(4, 9);
  core::pool<int>& same = p;
  p = std::move(same);
  CHECK(p.size() == 4);
  CHECK(p[3] == 9);
}

TEST_CASE("an empty slice iterates over nothing") {
  core::slice<int> const s{nullptr, 0};
  CHECK(s.empty());
  CHECK(s.begin() == s.end());
}
