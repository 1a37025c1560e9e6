// tensorpar/search/pipeline/stages/prices.hpp - running sums of a stage model over a tree's order, and the
// fewest devices that meet a time
#pragma once
#include <algorithm>
#include <bit>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/search/pipeline/stages/in_flight_needs.hpp>
#include <tensorpar/search/pipeline/stages/partial_pipelines.hpp>
#include <tensorpar/search/pipeline/stages/tree.hpp>
#include <vector>

namespace tensorpar::search::detail {

/// A stage as the search sees it: up to a few intervals of operators and their border.
struct stage_piece {
  leaf_interval const* intervals;
  int count;
  stage_border const* border;
};

/// One way to run a stage found good enough.
struct stage_fit {
  int choice = -1;  // of stage_prices::choices(); -1: none
  int devices = 0;
  double area = 0;        // of the piece
  bool hopeless = false;  // no larger stage fits either: operators alone are too slow on every choice
};

/// The least seconds per sample times devices, and the least seconds per sample, that an operator takes on
/// any choice; by kind.
struct min_work {
  std::vector<double> area, time;
};
template <stage_model M> min_work min_work_of(M const& m, std::vector<stage_batching> const& batchings) {
  min_work r;
  r.area.assign(idx(m.operators()), -1);
  r.time = r.area;
  auto const degrees = m.degrees();
  for (int v = 0; v < m.operators(); ++v) {
    std::size_t const k = idx(m.kind(v));
    if (r.area[k] >= 0) continue;
    r.area[k] = r.time[k] = infinity;
    for (stage_batching const& x : batchings)
      for (stage_choice c : degrees) {
        c.micro_batch = x.micro_batch;
        c.k = x.k;
        if (c.devices() > m.devices() || !m.admits(c)) continue;
        for (int first = 0; first + c.devices() <= (m.uniform() ? c.devices() : m.devices()); ++first) {
          double const t = m.work(v, c, first).per_sample(c.micro_batch, m.mini_batch());
          r.time[k] = std::min(r.time[k], t);
          r.area[k] = std::min(r.area[k], t * c.devices());
        }
      }
  }
  return r;
}

/// No pipeline over these choices has a bottleneck below this many seconds per sample: work fills at most all
/// devices, and every operator is somewhere. Transfers are left out. O(kinds * choices).
template <stage_model M> double bottleneck_bound(M const& m, std::vector<stage_batching> const& batchings) {
  min_work const l = min_work_of(m, batchings);
  double total = 0, longest = 0;
  for (int v = 0; v < m.operators(); ++v) {
    total += l.area[idx(m.kind(v))];
    longest = std::max(longest, l.time[idx(m.kind(v))]);
  }
  return std::max(longest, total / m.devices());
}

/// Per choice (batching and degrees) running sums of seconds per sample, fixed bytes and kept bytes over the
/// operators of a tree. Where the model is not uniform there are sums for every first device as well.
template <stage_model M> class stage_prices {
  struct sums {
    double time = 0, fixed = 0, kept = 0;
  };
  struct per_choice {
    std::vector<sums> at;               // by place in the tree's order, from 0
    // the most over 1, 2, 4 ... operators from a place on; none: nobody has any
    std::vector<std::vector<double>> scratch;
    double time[4], fixed[4], kept[4];  // of a border: a byte in, a byte out, a tensor in, a tensor out
    double capacity = 0;

    /// Fills `scratch` from what each operator has.
    void have_scratch(std::vector<double> each) {
      if (std::all_of(each.begin(), each.end(), [](double x) { return x == 0; })) return;
      scratch.push_back(std::move(each));
      for (std::size_t n = 1; 2 * n <= scratch.front().size(); n *= 2) {
        std::vector<double> const& half = scratch.back();
        std::vector<double> both;
        for (std::size_t i = 0; i + n < half.size(); ++i) both.push_back(std::max(half[i], half[i + n]));
        scratch.push_back(std::move(both));
      }
    }
    double max_scratch(std::size_t lo, std::size_t hi) const {
      if (scratch.empty() || lo >= hi) return 0;
      std::size_t const level = idx(std::bit_width(hi - lo)) - 1;
      return std::max(scratch[level][lo], scratch[level][hi - (std::size_t{1} << level)]);
    }
  };
  M const* m_;
  stage_tree const* tree_;
  std::vector<stage_choice> choices_;
  std::vector<std::vector<int>> by_batching_;  // choices by ascending devices
  std::vector<per_choice> prices_;           // by choice, then first device
  std::vector<double> area_;                 // running sums of the least area
  int firsts_, devices_;
  double min_rejected_ = infinity, limit_ = 0;

  per_choice const& of(int q, int first) {
    per_choice& p = prices_[idx(q) * idx(firsts_) + idx(first)];
    if (p.at.empty()) price(p, q, first);
    return p;
  }
  [[gnu::noinline]] void price(per_choice& p, int q, int first) {
    stage_choice const& c = choices_[idx(q)];
    std::vector<stage_work> known(idx(m_->operators()));
    std::vector<char> have(known.size(), 0);
    p.at.assign(1, {});
    p.at.reserve(tree_->order().size() + 1);
    std::vector<double> scratch;
    for (int v : tree_->order()) {
      std::size_t const k = idx(m_->kind(v));
      if (!have[k]) known[k] = m_->work(v, c, first);
      have[k] = 1;
      sums const& s = p.at.back();
      p.at.push_back({s.time + known[k].per_sample(c.micro_batch, m_->mini_batch()), s.fixed + known[k].fixed,
                      s.kept + known[k].kept});
      scratch.push_back(known[k].scratch);
    }
    p.have_scratch(std::move(scratch));
    for (int i = 0; i < 4; ++i) {
      stage_work const t = m_->transfer({i == 0 ? 1.0 : 0, i == 1 ? 1.0 : 0, i == 2, i == 3}, c, first);
      p.time[i] = t.per_sample(c.micro_batch, m_->mini_batch());
      p.fixed[i] = t.fixed;
      p.kept[i] = t.kept;
    }
    p.capacity = m_->capacity(first, c.devices());
  }
  void reject(double time) {
    if (time < min_rejected_) min_rejected_ = time;
  }
  /// It takes area / n at least.
  bool too_large(double area, int n) {
    if (!(area > n * limit_ * (1 + 1e-9))) return false;
    if (area < min_rejected_ * n) min_rejected_ = area / n;
    return true;
  }
  double area(core::slice<leaf_interval> piece) const {
    double r = 0;
    for (leaf_interval const& x : piece)
      r += x.times * (area_[idx(x.hi)] - area_[idx(x.lo)]);
    return r;
  }

 public:
  stage_prices(M const& m, stage_tree const& tree, std::vector<stage_batching> const& batchings)
      : m_(&m), tree_(&tree), firsts_(m.uniform() ? 1 : m.devices()), devices_(m.devices()) {
    for (stage_batching const& r : batchings) {
      by_batching_.emplace_back();
      for (stage_choice c : m.degrees()) {
        c.micro_batch = r.micro_batch;
        c.k = r.k;
        if (c.devices() > m.devices() || !m.admits(c)) continue;
        by_batching_.back().push_back(static_cast<int>(choices_.size()));
        choices_.push_back(c);
      }
      std::stable_sort(by_batching_.back().begin(), by_batching_.back().end(), [this](int a, int b) {
        return choices_[idx(a)].devices() <
               choices_[idx(b)].devices();
      });
    }
    prices_.resize(choices_.size() * idx(firsts_));
    min_work const least = min_work_of(m, batchings);
    area_.assign(1, 0);
    for (int v : tree.order())
      area_.push_back(area_.back() + least.area[idx(m.kind(v))]);
  }
  std::vector<stage_choice> const& choices() const { return choices_; }
  std::vector<int> const& of_batching(int r) const { return by_batching_[idx(r)]; }
  M const& model() const { return *m_; }

  /// What follows is asked at this limit, in seconds per sample.
  void set_limit(double limit) {
    limit_ = limit;
    min_rejected_ = infinity;
  }
  /// The least limit above the present one at which some answer since `set_limit` would have been another.
  double min_rejected() const { return min_rejected_; }

  /// Are there devices for the rest? Operators that are not done yet, in area, need as many as they fill at
  /// the limit.
  bool room(int devices, double area_done) {
    double const rest = area_.back() - area_done;
    if (devices <= devices_ && rest <= (devices_ - devices + 1e-6) * limit_) return true;
    if (devices < devices_ && rest < min_rejected_ * (devices_ - devices))
      min_rejected_ = rest / (devices_ - devices);
    return false;
  }

  /// No choice of fewer devices is fast enough for the piece, by what its operators take at least; 0: no
  /// choice is, of at
  /// most `most`. Equal devices only. `start` as in `fit`.
  int at_least(core::slice<leaf_interval> piece, int batching, int most, int* start) {
    double const a = area(piece);
    auto const& choices = by_batching_[idx(batching)];
    for (; *start < static_cast<int>(choices.size()); ++*start) {
      int const n = choices_[idx(choices[idx(*start)])].devices();
      if (n > most) break;
      if (!too_large(a, n)) return n;
    }
    return 0;
  }

  /// The fewest devices on which the piece, put before the stages of `after`, meets the limit and fits into
  /// memory with that many samples in flight. Of several such choices the first of `degrees`; none where too
  /// few devices would be left for the rest. The last device is device `end` - 1; at most `most`. Where the
  /// model is not uniform, devices at the end may stay idle; they count. `only`: exactly so many (0: any
  /// number). `start`: choices to leave out; those that are too slow for any larger piece are added.
  stage_fit fit(stage_piece const& p, int batching, i64 in_flight_samples, partial_pipeline const& after,
                int most, int end, int only = 0, int* start = nullptr) {
    stage_fit best = fit_here(p, batching, in_flight_samples, after, most, end, only, start);
    if (firsts_ == 1) return best;
    for (int idle = 1; idle < most && (best.choice < 0 || idle + 1 < best.devices); ++idle) {
      partial_pipeline later = after;
      later.devices += idle;
      stage_fit x = fit_here(p, batching, in_flight_samples, later, most - idle, end - idle, only, nullptr);
      best.hopeless = best.hopeless && x.hopeless;
      x.devices += idle;
      if (x.choice >= 0 && (best.choice < 0 || x.devices < best.devices)) best = x;
    }
    return best;
  }

 private:
  stage_fit fit_here(stage_piece const& p, int batching, i64 in_flight_samples, partial_pipeline const& after,
                     int most, int end, int only, int* start) {
    stage_fit r;
    r.hopeless = true;
    r.area = area({p.intervals, p.count});
    auto const& choices = by_batching_[idx(batching)];
    int const from = start && firsts_ == 1 ? *start : 0;
    bool all_slow = true;
    for (int k = from; k < static_cast<int>(choices.size()); ++k) {
      int const q = choices[idx(k)];
      stage_choice const& c = choices_[idx(q)];
      int const n = c.devices();
      if (n > most) break;
      if (only > 0 && n != only) continue;
      if (too_large(r.area, n)) {
        if (all_slow && start) *start = k + 1;
        continue;
      }
      if (!room(after.devices + n, after.area + r.area)) {
        r.hopeless = false;  // a larger piece leaves less undone
        return r;
      }
      per_choice const& x = of(q, firsts_ == 1 ? 0 : end - n);
      double own = 0;
      for (int i = 0; i < p.count; ++i) {
        leaf_interval const& y = p.intervals[i];
        own += y.times * (x.at[idx(y.hi)].time - x.at[idx(y.lo)].time);
      }
      if (own > limit_) {
        reject(own);
        if (all_slow && start) *start = k + 1;
        continue;
      }
      all_slow = r.hopeless = false;
      stage_border const& b = *p.border;
      auto sum = [&](double const* each) {
        return b.in * each[0] + b.out * each[1] + b.tensors_in * each[2] + b.tensors_out * each[3];
      };
      double const time = own + sum(x.time);
      if (time > limit_) {
        reject(time);
        continue;
      }
      double fixed = 0, kept = 0, scratch = 0;
      for (int i = 0; i < p.count; ++i) {
        leaf_interval const& y = p.intervals[i];
        sums const &lo = x.at[idx(y.lo)], &hi = x.at[idx(y.hi)];
        fixed += y.times * (hi.fixed - lo.fixed);
        kept += y.times * (hi.kept - lo.kept);
        scratch = std::max(scratch, x.max_scratch(idx(y.lo), idx(y.hi)));
      }
      if (fixed + sum(x.fixed) + (kept + sum(x.kept)) * static_cast<double>(in_flight_samples) + scratch >
          x.capacity)
        continue;
      r.choice = q;
      r.devices = n;
      return r;
    }
    return r;
  }
};

}  // namespace tensorpar::search::detail
