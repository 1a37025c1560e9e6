// tests/search/problem/flow_lines.test.cpp - tables of flows against sums cell by cell
#include <tensorpar/search/problem/flow_lines.hpp>
#include <doctest/doctest.h>

#include <random>
#include <support/effort.hpp>

using namespace tensorpar;
using namespace tensorpar::search;

TEST_CASE("a table is the sum of its flows, to the bit, and every pair of different layouts is asked for once") {
  std::mt19937 draw(3);
  auto const below = [&](int n) { return static_cast<int>(draw() % static_cast<unsigned>(n)); };
  std::vector<flow_lines> all(4);
  for (int turn = 0; turn < test_effort::cases(300); ++turn) {
    std::size_t const rows = 1 + draw() % 30, cols = 1 + draw() % 30, flows = draw() % 4;
    std::vector<double> want(rows * cols, 0);
    // choices 0 .. 2 n of which every other one stands for its class
    auto const some = [&](std::size_t n, int slots) {
      std::vector<std::vector<int>> lists(static_cast<std::size_t>(slots));
      for (auto& l : lists) for (std::size_t i = 0; i < 2 * n; ++i) l.push_back(below(6));
      return lists;
    };
    auto const columns = [](std::vector<std::vector<int>> const& lists) {
      layout_columns r;
      for (auto const& l : lists) r.push_back(&l);
      return r;
    };
    auto const choices = [](std::size_t n) {
      std::vector<int> r;
      for (std::size_t i = 0; i < n; ++i) r.push_back(static_cast<int>(2 * i));
      return r;
    };
    std::vector<double> above_a, above_b;
    for (std::size_t i = 0; i < rows; ++i) above_a.push_back(below(9));
    for (std::size_t i = 0; i < cols; ++i) above_b.push_back(below(9));
    for (std::size_t k = 0; k < flows; ++k) {
      bool const from_first = draw() % 2;
      double const times = 1 + below(3);
      auto const price = [&](int a, int b) { return (a * 7 + b) / 3.0 + static_cast<double>(k); };
      auto const first = some(rows, from_first ? 1 : 1 + below(3)), second = some(cols, from_first ? 1 + below(3) : 1);
      flow_lines& f = all[k];
      f.first.read(columns(first), choices(rows), above_a);
      f.second.read(columns(second), choices(cols), above_b);
      flow_end const &from = from_first ? f.first : f.second, &to = from_first ? f.second : f.first;
      int asked = 0;
      f.price(from_first, times, [&](int t, std::vector<double>& sum) {
        ++asked;
        for (int const* w = to.begin(t); w != to.end(t); ++w)
          for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += price(from.layouts()[i], *w);
      });
      CHECK(asked == to.size());
      for (std::size_t x = 0; x < rows; ++x)
        for (std::size_t y = 0; y < cols; ++y) {
          std::vector<int> wanted;
          different(columns(from_first ? second : first), 2 * (from_first ? y : x), wanted);
          double moved = 0;
          for (int w : wanted) moved += price((from_first ? first : second)[0][2 * (from_first ? x : y)], w);
          want[x * cols + y] += moved * times;
        }
      // the least excess of each combination
      std::vector<double> least(static_cast<std::size_t>(f.first.size()), infinity);
      for (std::size_t x = 0; x < rows; ++x) {
        double& l = least[static_cast<std::size_t>(f.first.of[x])];
        l = std::min(l, above_a[x]);
      }
      CHECK(f.first.least == least);
    }
    CHECK(sum_of(all, flows, rows, cols) == want);
  }
}
