// tensorpar/search/pipeline/stages/in_flight_needs.hpp - how many samples the stages that follow make their
// predecessors keep in flight
#pragma once
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/pipeline/schedules/in_flight.hpp>
#include <utility>
#include <vector>

namespace tensorpar::search::detail {

/// How a stage cuts the mini-batch.
struct stage_batching {
  i64 micro_batch;
  int k;
  friend bool operator==(stage_batching const&, stage_batching const&) = default;
};

/// A need says, for each batching that a predecessor may have, how many samples it keeps in flight. Needs
/// are numbered: equal numbers, equal needs, so that sub-problems are looked up by number. No stage keeps
/// more than the mini-batch.
class in_flight_needs {
  std::vector<stage_batching> batchings_;
  i64 mini_batch_;
  std::vector<std::vector<i64>> values_;
  std::map<std::vector<i64>, int> numbers_;
  std::map<std::pair<int, i64>, int> after_;
  std::map<std::pair<int, int>, int> joined_;

  int number(std::vector<i64> v) {
    auto const [it, fresh] = numbers_.try_emplace(v, static_cast<int>(values_.size()));
    if (fresh) values_.push_back(std::move(v));
    return it->second;
  }

 public:
  in_flight_needs(std::vector<stage_batching> batchings, i64 mini_batch)
      : batchings_(std::move(batchings)), mini_batch_(mini_batch) {
    number(std::vector<i64>(batchings_.size(), 0));
  }
  std::vector<stage_batching> const& batchings() const { return batchings_; }
  /// Nothing is asked for.
  int none() const { return 0; }
  /// Nothing follows: every stage keeps k micro-batches.
  int nothing_follows() {
    std::vector<i64> v;
    for (stage_batching const& r : batchings_) v.push_back(r.k * r.micro_batch);
    return number(std::move(v));
  }
  /// Samples in flight of a stage with batching r, of which this is asked.
  i64 of(int need, int r) const {
    return values_[idx(need)][idx(r)];
  }
  /// What a stage of batching r with so many samples in flight asks of its predecessors.
  int after(int r, i64 in_flight_samples) {
    auto const [it, fresh] = after_.try_emplace({r, in_flight_samples}, 0);
    if (fresh) {
      stage_batching const& y = batchings_[idx(r)];
      std::vector<i64> v;
      for (stage_batching const& x : batchings_) {
        i64 const own = x.k * x.micro_batch,
                  i = in_flight_grouped(x.k, x.micro_batch, y.k, y.micro_batch, in_flight_samples);
        i64 const most = i > own ? i : own;
        v.push_back(most < mini_batch_ ? most : mini_batch_);
      }
      it->second = number(std::move(v));
    }
    return it->second;
  }
  /// Both must be met.
  int joined(int a, int b) {
    if (a == b || b == none()) return a;
    if (a == none()) return b;
    if (a > b) std::swap(a, b);
    auto const [it, fresh] = joined_.try_emplace({a, b}, 0);
    if (fresh) {
      std::vector<i64> v = values_[idx(a)];
      std::vector<i64> const& w = values_[idx(b)];
      for (std::size_t i = 0; i < v.size(); ++i) v[i] = v[i] > w[i] ? v[i] : w[i];
      it->second = number(std::move(v));
    }
    return it->second;
  }
  /// Does a ask for no more than b?
  bool within(int a, int b) const {
    if (a == b) return true;
    std::vector<i64> const &v = values_[idx(a)],
                           &w = values_[idx(b)];
    for (std::size_t i = 0; i < v.size(); ++i)
      if (v[i] > w[i]) return false;
    return true;
  }
};

}  // namespace tensorpar::search::detail
