// tests/search/solve/branch_points.test.cpp - what is kept of many points, against looking at all of them
#include <tensorpar/search/solve/branch_points.hpp>
#include <doctest/doctest.h>

#include <random>
#include <support/effort.hpp>
#include <tuple>

using namespace tensorpar;
using namespace tensorpar::search;
using search::detail::branch_frontier;
using search::detail::branch_points;

namespace {
/// Nothing else is better: in order, each with less p than all before.
branch_points simple(std::vector<branch_frontier::draft> all, std::vector<std::pair<int, int>>& traces) {
  std::erase_if(all, [](auto const& d) { return !(d.t + d.p < infinity); });
  std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) {
    return std::tie(a.t, a.p, a.choice, a.left, a.right) < std::tie(b.t, b.p, b.choice, b.left, b.right);
  });
  branch_points r;
  for (auto const& d : all) {
    if (!r.empty() && !(d.p < r.back().p)) continue;
    r.push_back({d.t, d.p, -1});
    traces.push_back({d.left, d.right});
  }
  return r;
}
bool same(branch_points const& a, branch_points const& b) {
  bool r = a.size() == b.size();
  for (std::size_t i = 0; i < a.size() && r; ++i) r = a[i].t == b[i].t && a[i].p == b[i].p;
  return r;
}
}  // namespace

TEST_CASE("drafts and compositions leave what nothing else is better than, ties as documented") {
  std::mt19937 draw(4);
  auto const number = [&] { return draw() % 40 == 0 ? infinity : static_cast<double>(draw() % 30); };
  int kept = 0;
  for (int turn = 0; turn < test_effort::cases(500); ++turn) {
    branch_frontier f;
    int op = 0;
    // leaves: every point is a decision of an operator of its own, so that what is read back tells which point it was
    auto const leaf = [&](std::vector<int>& traces) {
      std::vector<branch_frontier::draft> all;
      for (auto n = draw() % 12; n-- > 0;) all.push_back({number(), number(), -1, -1, static_cast<int>(draw() % 5)});
      std::vector<std::pair<int, int>> ignored;
      auto const want = simple(all, ignored);
      auto const got = f.best_of(all, op++);
      CHECK(same(got, want));
      CHECK(all.empty());
      for (auto const& x : got) traces.push_back(x.trace);
      return got;
    };
    std::vector<branch_points> leaves;
    std::vector<int> traces;
    for (int k = 0; k < 6; ++k) leaves.push_back(leaf(traces));
    std::vector<branch_frontier::composition> some;
    std::vector<branch_frontier::draft> all;
    for (int k = 0; k < 6; k += 2) {
      auto const &a = leaves[static_cast<std::size_t>(k)], &b = leaves[static_cast<std::size_t>(k + 1)];
      bool const side = draw() % 2;
      some.push_back({&a, &b, side});
      for (auto const& x : a)
        for (auto const& y : b) all.push_back({side ? std::max(x.t, y.t) : x.t + y.t, x.p + y.p, x.trace, y.trace, -1});
    }
    std::vector<std::pair<int, int>> from;
    auto const want = simple(all, from);
    auto const got = f.best_of(some);
    REQUIRE(same(got, want));
    for (std::size_t i = 0; i < got.size(); ++i) {
      assignment read(6, -1), expected(6, -1);
      f.read(got[i].trace, read);
      f.read(from[i].first, expected);
      f.read(from[i].second, expected);
      CHECK(read == expected);
      ++kept;
    }
  }
  CHECK(kept > test_effort::cases(500));
}
