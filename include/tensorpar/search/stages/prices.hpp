// tensorpar/search/stages/prices.hpp - prefix sums of a stage model over a tree's order, and the fewest devices that meet a time
#pragma once
#include <algorithm>
#include <tensorpar/search/stages/demands.hpp>
#include <tensorpar/search/stages/tree.hpp>
#include <vector>

namespace tensorpar::detail {

/// A stage as the search sees it: up to a few intervals of operators and their border.
struct stage_piece {
  leaf_interval const* intervals;
  int count;
  stage_border const* border;
};

/// One way to run a stage found good enough.
struct stage_fit {
  int choice = -1;                   // of stage_prices::choices(); -1: none
  int devices = 0;
  bool hopeless = false;             // no larger stage fits either: operators alone are too slow on every choice
};

/// Per choice (rhythm and degrees) running sums of seconds per sample, fixed bytes and kept bytes over the operators of a tree.
/// Where the model is not uniform there are sums for every first device as well.
template <stage_model M> class stage_prices {
  M const* m_;
  stage_tree const* tree_;
  std::vector<stage_choice> choices_;
  std::vector<std::vector<int>> by_rhythm_;       // choices by ascending devices
  struct sums {
    std::vector<double> time, fixed, kept;
  };
  mutable std::vector<sums> sums_;                // by choice, then first device
  int firsts_;
  double least_rejected_ = 1e300;

  sums const& of(int q, int first) const {
    sums& s = sums_[static_cast<std::size_t>(q) * static_cast<std::size_t>(firsts_) + static_cast<std::size_t>(first)];
    if (!s.time.empty()) return s;
    auto const& order = tree_->order();
    stage_choice const& c = choices_[static_cast<std::size_t>(q)];
    std::vector<stage_work> known(static_cast<std::size_t>(m_->operators()));
    std::vector<char> have(known.size(), 0);
    s.time.assign(1, 0);
    s.fixed.assign(1, 0);
    s.kept.assign(1, 0);
    for (int v : order) {
      std::size_t const k = static_cast<std::size_t>(m_->kind(v));
      if (!have[k]) {
        known[k] = m_->work(v, c, first);
        have[k] = 1;
      }
      s.time.push_back(s.time.back() + known[k].per_sample(c.micro_batch, m_->mini_batch()));
      s.fixed.push_back(s.fixed.back() + known[k].fixed);
      s.kept.push_back(s.kept.back() + known[k].kept);
    }
    return s;
  }
  static double over(std::vector<double> const& sum, stage_piece const& p) {
    double r = 0;
    for (int i = 0; i < p.count; ++i) {
      leaf_interval const& x = p.intervals[i];
      r += x.times * (sum[static_cast<std::size_t>(x.hi)] - sum[static_cast<std::size_t>(x.lo)]);
    }
    return r;
  }

 public:
  stage_prices(M const& m, stage_tree const& tree, std::vector<stage_rhythm> const& rhythms)
      : m_(&m), tree_(&tree), firsts_(m.uniform() ? 1 : m.devices()) {
    for (stage_rhythm const& r : rhythms) {
      by_rhythm_.emplace_back();
      for (stage_choice c : m.degrees()) {
        c.micro_batch = r.micro_batch;
        c.k = r.k;
        if (c.devices() > m.devices() || !m.admits(c)) continue;
        by_rhythm_.back().push_back(static_cast<int>(choices_.size()));
        choices_.push_back(c);
      }
      std::stable_sort(by_rhythm_.back().begin(), by_rhythm_.back().end(), [this](int a, int b) {
        return choices_[static_cast<std::size_t>(a)].devices() < choices_[static_cast<std::size_t>(b)].devices();
      });
    }
    sums_.resize(choices_.size() * static_cast<std::size_t>(firsts_));
  }
  std::vector<stage_choice> const& choices() const { return choices_; }
  std::vector<int> const& of_rhythm(int r) const { return by_rhythm_[static_cast<std::size_t>(r)]; }
  M const& model() const { return *m_; }

  /// The least time per sample above the limit that was met since `forget`: below it no answer of `fit` changes.
  double least_rejected() const { return least_rejected_; }
  void forget() { least_rejected_ = 1e300; }

  /// The fewest devices on which the piece takes at most `limit` seconds per sample and fits into memory with so many samples in flight;
  /// of several such choices the first of `degrees`. At most `available` devices, the last of which is device `end` - 1. Where the model is
  /// not uniform, devices at the end may stay idle; they count. `only`: no more devices than this, and no fewer (0: any number).
  stage_fit fit(stage_piece const& p, int rhythm, i64 in_flight_samples, int available, int end, double limit, int only = 0) {
    stage_fit best = fit_here(p, rhythm, in_flight_samples, available, end, limit, only);
    if (firsts_ == 1) return best;
    for (int idle = 1; idle < available && (best.choice < 0 || idle + 1 < best.devices); ++idle) {
      stage_fit x = fit_here(p, rhythm, in_flight_samples, available - idle, end - idle, limit, only);
      best.hopeless = best.hopeless && x.hopeless;
      x.devices += idle;
      if (x.choice >= 0 && (best.choice < 0 || x.devices < best.devices)) best = x;
    }
    return best;
  }

 private:
  stage_fit fit_here(stage_piece const& p, int rhythm, i64 in_flight_samples, int available, int end, double limit, int only) {
    stage_fit r;
    r.hopeless = true;
    for (int q : by_rhythm_[static_cast<std::size_t>(rhythm)]) {
      stage_choice const& c = choices_[static_cast<std::size_t>(q)];
      int const n = c.devices();
      if (n > available) break;
      if (only > 0 && n != only) continue;
      int const first = firsts_ == 1 ? 0 : end - n;
      sums const& s = of(q, first);
      double const work = over(s.time, p);
      if (work > limit) {
        if (work < least_rejected_) least_rejected_ = work;
        continue;
      }
      r.hopeless = false;
      stage_work const t = m_->transfer(*p.border, c, first);
      double const time = work + t.per_sample(c.micro_batch, m_->mini_batch());
      if (time > limit) {
        if (time < least_rejected_) least_rejected_ = time;
        continue;
      }
      double const bytes = over(s.fixed, p) + t.fixed + (over(s.kept, p) + t.kept) * static_cast<double>(in_flight_samples);
      if (bytes > m_->capacity(first, n)) continue;
      r.choice = q;
      r.devices = n;
      return r;
    }
    return r;
  }
};

/// No pipeline over these choices has a bottleneck below this many seconds per sample: work fills at most all devices, and every operator
/// is somewhere. Transfers are left out. O(kinds * choices).
template <stage_model M> double bottleneck_bound(M const& m, std::vector<stage_rhythm> const& rhythms) {
  double total = 0, longest = 0;
  std::vector<double> least_area, least_time;
  least_area.assign(static_cast<std::size_t>(m.operators()), -1);
  least_time = least_area;
  auto const degrees = m.degrees();
  for (int v = 0; v < m.operators(); ++v) {
    std::size_t const k = static_cast<std::size_t>(m.kind(v));
    if (least_area[k] < 0) {
      double area = 1e300, time = 1e300;
      for (stage_rhythm const& r : rhythms)
        for (stage_choice c : degrees) {
          c.micro_batch = r.micro_batch;
          c.k = r.k;
          if (c.devices() > m.devices() || !m.admits(c)) continue;
          for (int first = 0; first + c.devices() <= (m.uniform() ? c.devices() : m.devices()); ++first) {
            double const t = m.work(v, c, first).per_sample(c.micro_batch, m.mini_batch());
            time = std::min(time, t);
            area = std::min(area, t * c.devices());
          }
        }
      least_area[k] = area;
      least_time[k] = time;
    }
    total += least_area[k];
    longest = std::max(longest, least_time[k]);
  }
  return std::max(longest, total / m.devices());
}

}  // namespace tensorpar::detail
