// tests/ir/axis_list.test.cpp - a short list does what std::vector does, on both sides of its own room
#include <doctest/doctest.h>

#include <random>
#include <support/effort.hpp>
#include <tensorpar/ir/axis_list.hpp>
#include <utility>
#include <vector>

using namespace tensorpar;

namespace {

using listed = ir::axis_list<int, 3>;

bool same(listed const& a, std::vector<int> const& b) {
  bool equal = a.size() == b.size() && a.empty() == b.empty() && a == listed(b);
  for (std::size_t i = 0; i < b.size() && equal; ++i) equal = a[i] == b[i] && a.data()[i] == b[i];
  return equal && (b.empty() || (a.front() == b.front() && a.back() == b.back()));
}

}  // namespace

TEST_CASE("random changes, copies and moves: as std::vector, and what was copied stays as it was") {
  std::mt19937 draw(3);
  auto const below = [&](std::size_t n) { return static_cast<std::size_t>(draw()) % n; };
  for (int turn = 0; turn < test_effort::cases(300); ++turn) {
    listed a;
    std::vector<int> b;
    std::vector<std::pair<listed, std::vector<int>>> kept;
    for (int step = 0; step < 40; ++step) {
      int const x = static_cast<int>(draw() % 100);
      switch (draw() % 12) {
        case 0: case 1: case 2: a.push_back(x), b.push_back(x); break;
        case 3: if (!b.empty()) a.push_back(a.front()), b.push_back(int{b.front()}); break;      // one of its own
        case 4: if (!b.empty()) a.pop_back(), b.pop_back(); break;
        case 5: {
          std::size_t const at = below(b.size() + 1);
          CHECK(*a.insert(a.begin() + at, x) == x);
          b.insert(b.begin() + static_cast<std::ptrdiff_t>(at), x);
          break;
        }
        case 6:
          if (b.empty()) break;
          else {
            std::size_t const at = below(b.size());
            a.erase(a.begin() + at);
            b.erase(b.begin() + static_cast<std::ptrdiff_t>(at));
          }
          break;
        case 7: {
          std::size_t const n = below(8);
          a.resize(n, x), b.resize(n, x);
          break;
        }
        case 8: a.assign(below(6) + 1, x), b.assign(a.size(), x); break;
        case 9: kept.push_back({a, b}); break;
        case 10:
          if (kept.empty()) break;
          if (draw() % 2) a = kept.back().first;
          else a = std::move(kept.back().first);
          b = kept.back().second;
          kept.pop_back();
          break;
        default: {
          listed moved(std::move(a));
          CHECK(a.empty());
          a = std::move(moved);
          a.reserve(below(10));
        }
      }
      REQUIRE(same(a, b));
      for (auto const& [l, v] : kept) REQUIRE(same(l, v));
    }
    a.clear();
    CHECK(same(a, {}));
  }
  CHECK(listed{1, 2} == listed{1, 2});
  CHECK_FALSE(listed{1, 2} == listed{1, 2, 3});
  CHECK_FALSE(listed{1, 2} == listed{2, 1});
}
