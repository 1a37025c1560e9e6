// tensorpar/search/problem/flow_lines.hpp - a table of what two operators exchange, from prices between the
// different layouts of each value
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/problem/evaluate.hpp>
#include <tensorpar/search/problem/layout_prices.hpp>
#include <vector>

namespace tensorpar::search {

/// Lists of layouts by choice, at one or several slots.
using layout_columns = std::vector<std::vector<int> const*>;

/// The different layouts of a choice, in the order of the slots.
inline void different(layout_columns const& at, std::size_t choice, std::vector<int>& ids) {
  ids.clear();
  for (std::vector<int> const* l : at)
    if (int const id = (*l)[choice]; std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
}

/// One side of a flow: which layouts there are, each combination once, and which of them every choice has.
class flow_end {
  std::vector<int> ids_, first_, number_;
  std::vector<int> some_;
  int fresh(std::size_t n) {
    if (n + 1 == first_.size()) {
      ids_.insert(ids_.end(), some_.begin(), some_.end());
      first_.push_back(static_cast<int>(ids_.size()));
      least.push_back(infinity);
    }
    return static_cast<int>(n);
  }

 public:
  std::vector<int> of;                                   // by choice, numbered in order of first occurrence
  std::vector<double> least;                             // by number: the least excess of such choices

  void read(layout_columns const& at, std::vector<int> const& choices, std::vector<double> const& excess) {
    ids_.clear();
    first_.assign(1, 0);
    of.clear();
    least.clear();
    interner many;
    for (std::size_t k = 0; k < choices.size(); ++k) {
      different(at, idx(choices[k]), some_);
      if (at.size() == 1) {                              // most often: layouts are small numbers
        if (idx(some_[0]) >= number_.size()) number_.resize(idx(some_[0]) + 1, -1);
        int& n = number_[idx(some_[0])];
        if (n < 0) n = size();
        of.push_back(fresh(idx(n)));
      } else {
        of.push_back(fresh(idx(many({some_.begin(), some_.end()}))));
      }
      double& x = least[idx(of.back())];
      x = std::min(x, excess[k]);
    }
    if (at.size() == 1) for (int id : ids_) number_[idx(id)] = -1;
  }
  int size() const { return static_cast<int>(least.size()); }
  /// Of the combination with this number.
  int const* begin(int n) const { return ids_.data() + first_[idx(n)]; }
  int const* end(int n) const { return ids_.data() + first_[idx(n) + 1]; }
  /// Of all numbers. Precondition: combinations of one.
  std::vector<int> const& layouts() const { return ids_; }
};

/// A flow between choices of two operators: for every combination of layouts at the first one a line of
/// seconds, by the choice of the second one.
class flow_lines {
  std::vector<double> price_, lines_;

 public:
  flow_end first, second;

  /// `add(to, sum)`: adds what it takes to bring the value from each layout of the sender to combination `to`
  /// of the receiver.
  template <class Add> void price(bool from_first, double times, Add const& add) {
    flow_end const &from = from_first ? first : second, &to = from_first ? second : first;
    auto const n = idx(from.size()), cols = second.of.size();
    lines_.resize(idx(first.size()) * cols);
    price_.resize(from_first ? n * idx(to.size()) : 0);
    std::vector<double> sum;
    for (int t = 0; t < to.size(); ++t) {
      sum.assign(n, 0);
      add(t, sum);
      for (double& x : sum) x *= times;
      if (from_first)
        std::copy(sum.begin(), sum.end(), price_.begin() + static_cast<std::ptrdiff_t>(idx(t) * n));
      else
        for (std::size_t y = 0; y < cols; ++y)
          lines_[idx(t) * cols + y] = sum[idx(second.of[y])];
    }
    if (!from_first) return;
    for (std::size_t y0 = 0; y0 < cols; y0 += 8)         // turned round in blocks that stay in the cache
      for (std::size_t i = 0; i < n; ++i)
        for (std::size_t y = y0; y < std::min(y0 + 8, cols); ++y)
          lines_[i * cols + y] = price_[idx(second.of[y]) * n + i];
  }
  double const* line(std::size_t choice) const {
    return lines_.data() + idx(first.of[choice]) * second.of.size();
  }
};

/// The sum of `flows` flows, by the choices of both; each row is written in one go. Precondition: all were
/// priced for these choices.
inline std::vector<double> sum_of(std::vector<flow_lines> const& all, std::size_t flows, std::size_t rows,
                                  std::size_t cols) {
  std::vector<double> r;
  r.reserve(rows * cols);
  for (std::size_t x = 0; x < rows; ++x) {
    if (flows == 0) r.resize(r.size() + cols, 0);
    else r.insert(r.end(), all[0].line(x), all[0].line(x) + cols);
    double* const row = r.data() + x * cols;
    for (std::size_t k = 1; k < flows; ++k) {
      double const* const line = all[k].line(x);
      for (std::size_t y = 0; y < cols; ++y) row[y] += line[y];
    }
  }
  return r;
}

}  // namespace tensorpar::search
