// tests/search/solve/min_rows.test.cpp - rows in any number and of any kind leave the least sum in every place
#include <tensorpar/search/solve/min_rows.hpp>
#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <support/effort.hpp>

using namespace tensorpar;

TEST_CASE("the least of all that was put, place by place, to the bit") {
  std::mt19937 draw(1);
  double const none = std::numeric_limits<double>::infinity();
  int fours = 0, sums = 0;
  for (int turn = 0; turn < test_effort::cases(2000); ++turn) {
    int const n = 1 + static_cast<int>(draw() % 9), count = static_cast<int>(draw() % 11);
    auto number = [&] { return static_cast<double>(draw()) / 7; };
    auto row = [&] {
      std::vector<double> r;
      for (int y = 0; y < n; ++y) r.push_back(number());
      return r;
    };
    std::vector<std::vector<double>> kept;                    // rows stay where they are until `finish`
    kept.reserve(64);
    std::vector<double> least(static_cast<std::size_t>(n), none), want = least;
    auto offer = [&](int y, double x) { want[static_cast<std::size_t>(y)] = std::min(want[static_cast<std::size_t>(y)], x); };
    search::detail::min_rows to(least.data(), n);
    int single = 0;
    for (int k = 0; k < count; ++k) {
      double const start = number();
      int const rows = static_cast<int>(draw() % 5);
      std::vector<double const*> some;
      for (int i = 0; i < rows; ++i) some.push_back(kept.emplace_back(row()).data());
      if (rows == 0) to.put(start);
      if (rows == 1) { to.put(some[0], start); ++single; }
      if (rows == 2) to.put(some[0], some[1], start);
      if (rows > 2) {
        to.begin_sum(some[0], some[1]);
        for (int i = 2; i < rows; ++i) to.add_to_sum(some[static_cast<std::size_t>(i)]);
        to.put_sum(start);
        ++sums;
      }
      for (int y = 0; y < n; ++y) {
        double sum = rows ? some[0][y] : 0;
        for (int i = 1; i < rows; ++i) sum += some[static_cast<std::size_t>(i)][y];
        offer(y, rows ? sum + start : start);
      }
    }
    to.finish();
    CHECK(least == want);
    fours += single >= 4;
  }
  CHECK(fours > test_effort::cases(20));
  CHECK(sums > test_effort::cases(200));
}

TEST_CASE("rows that lie in a table in any order: the table itself where they are in order, else a copy of them") {
  std::mt19937 draw(2);
  std::vector<double> table;
  for (int i = 0; i < 3000; ++i) table.push_back(i);
  std::vector<double> copy;
  int same = 0;
  for (int turn = 0; turn < test_effort::cases(300); ++turn) {
    std::size_t const rows = 1 + draw() % 40, n = 1 + draw() % 40;
    bool const across = draw() % 2, shuffled = draw() % 3 == 0;
    std::vector<std::size_t> row, place;
    for (std::size_t j = 0; j < rows; ++j) row.push_back(across ? j : j * n);
    for (std::size_t y = 0; y < n; ++y) place.push_back(across ? y * rows : y);
    if (shuffled) std::shuffle(row.begin(), row.end(), draw);
    if (shuffled) std::shuffle(place.begin(), place.end(), draw);
    double const* const got = search::detail::rows_at(table.data(), row, place, copy);
    bool all = true;
    for (std::size_t j = 0; j < rows; ++j) for (std::size_t y = 0; y < n; ++y) all = all && got[j * n + y] == table[row[j] + place[y]];
    CHECK(all);
    if (!across && !shuffled) CHECK(got == table.data());
    same += got == table.data();
  }
  CHECK(same > test_effort::cases(300) / 8);
}
