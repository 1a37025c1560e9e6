// tensorpar/search/solve/min_rows.hpp - the least of many rows of numbers, place by place
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/problem/problem.hpp>

namespace tensorpar::search::detail {

/// Rows of numbers that lie in a table at row[j] + place[y]: the table itself where they lie there in order,
/// else a copy.
inline double const* rows_at(double const* table, std::vector<std::size_t> const& row,
                             std::vector<std::size_t> const& place, std::vector<double>& copy) {
  std::size_t const n = place.size();
  bool in_order = true;
  for (std::size_t y = 0; y < n && in_order; ++y) in_order = place[y] == y;
  for (std::size_t j = 0; j < row.size() && in_order; ++j) in_order = row[j] == j * n;
  if (in_order) return table;
  if (copy.size() < row.size() * n) copy.resize(row.size() * n);
  // in squares that stay in the cache, as either side may be the one that lies in a row
  for (std::size_t j0 = 0; j0 < row.size(); j0 += 16)
    for (std::size_t y0 = 0; y0 < n; y0 += 16)
      for (std::size_t j = j0; j < std::min(j0 + 16, row.size()); ++j)
        for (std::size_t y = y0; y < std::min(y0 + 16, n); ++y) copy[j * n + y] = table[row[j] + place[y]];
  return copy.data();
}

/// A row of least sums that takes rows of numbers, each with a number that is added to all of it. Rows are
/// taken four at a time, so that the result is read and written once for them.
class min_rows {
  double* const to_;
  int const n_;
  int held_ = 0;
  double const* row_[4];
  double start_[4];
  std::vector<double> sum_;

  static double less(double a, double b) { return a < b ? a : b; }
  /// to[y] = value(y), four at a time: compilers take fixed numbers of steps for one instruction at -O2 too.
  template <class Value> static void fill(double* to, int n, Value const& value) {
    int y = 0;
    for (; y + 4 <= n; y += 4) {
      double const a = value(y), b = value(y + 1), c = value(y + 2), d = value(y + 3);
      to[y] = a;
      to[y + 1] = b;
      to[y + 2] = c;
      to[y + 3] = d;
    }
    for (; y < n; ++y) to[y] = value(y);
  }

 public:
  min_rows(double* to, int n) : to_(to), n_(n) {}
  void put(double const* row, double start) {
    row_[held_] = row;
    start_[held_++] = start;
    if (held_ < 4) return;
    held_ = 0;
    double* const to = to_;
    double const *const a = row_[0], *const b = row_[1], *const c = row_[2], *const d = row_[3];
    double const p = start_[0], q = start_[1], r = start_[2], s = start_[3];
    fill(to, n_, [=](int y) {
      return less(less(less(d[y] + s, c[y] + r), less(b[y] + q, a[y] + p)), to[y]);
    });
  }
  void finish() {
    for (int k = 0; k < held_; ++k) {
      double const* const row = row_[k];
      double const start = start_[k];
      double* const to = to_;
      fill(to, n_, [=](int y) { return less(row[y] + start, to[y]); });
    }
    held_ = 0;
  }
  void put(double start) {
    fill(to_, n_, [start, to = to_](int y) { return less(start, to[y]); });
  }
  void put(double const* one, double const* two, double start) {
    fill(to_, n_, [=, to = to_](int y) { return less((one[y] + two[y]) + start, to[y]); });
  }
  /// More than two rows: their sum, in the order in which they come.
  void begin_sum(double const* one, double const* two) {
    sum_.resize(idx(n_));
    fill(sum_.data(), n_, [=](int y) { return one[y] + two[y]; });
  }
  void add_to_sum(double const* row) {
    fill(sum_.data(), n_, [row, sum = sum_.data()](int y) { return sum[y] + row[y]; });
  }
  void put_sum(double start) {
    fill(to_, n_, [start, sum = sum_.data(), to = to_](int y) { return less(sum[y] + start, to[y]); });
  }
};

}  // namespace tensorpar::search::detail
