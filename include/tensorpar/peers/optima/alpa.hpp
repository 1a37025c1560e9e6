// tensorpar/peers/optima/alpa.hpp - Alpa's inter-operator optimum: runs of layers on submeshes, sum plus (B -
// 1) times the slowest
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/peers/profiles/alpa_price.hpp>
#include <utility>
#include <vector>

namespace tensorpar::peers {

/// An optimal pipeline, or the answer that none fits.
struct alpa_optimum {
  bool feasible = false;
  double seconds = infinity;
  std::vector<alpa_stage> stages;
  int programs = 0;  ///< how many limits on the slowest stage were solved exactly
};

namespace detail {

/// Least sums of stage times under a limit on each.
class alpa_search {
  alpa_table const& t_;
  int n_, devices_;
  struct item {
    double seconds;
    int last, submesh, candidate, max_later;
  };
  std::vector<std::vector<item>> from_;  // by first layer: all stages, by rising time

  std::size_t cell(int first, int used) const { return idx(first) * idx(devices_ + 1) + idx(used); }

 public:
  std::vector<double> times;  // every distinct stage time, ascending

  alpa_search(alpa_table const& t, int devices)
      : t_(t), n_(t.layers), devices_(devices), from_(idx(t.layers)) {
    for (int i = 0; i < n_; ++i) {
      for (int j = i; j < n_; ++j)
        for (int m = 0; m < static_cast<int>(t.submeshes.size()); ++m) {
          auto const& list = t.at(i, j, m);
          for (int c = 0; c < static_cast<int>(list.size()) && t.submeshes[idx(m)] <= devices; ++c) {
            from_[idx(i)].push_back({list[idx(c)].seconds, j, m, c, list[idx(c)].max_later});
            times.push_back(list[idx(c)].seconds);
          }
        }
      std::stable_sort(from_[idx(i)].begin(), from_[idx(i)].end(),
                       [](item const& a, item const& b) { return a.seconds < b.seconds; });
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
  }

  /// The least sum without regard to memory: a lower bound. `chain` gets the stages. O(stages * devices).
  double relaxed(double limit, std::vector<alpa_stage>* chain) const {
    std::vector<double> best(idx(n_ + 1) * idx(devices_ + 1), infinity);
    std::vector<item const*> how(best.size(), nullptr);
    best[cell(n_, 0)] = 0;
    for (int i = n_ - 1; i >= 0; --i)
      for (item const& x : from_[idx(i)]) {
        if (x.seconds > limit) break;
        int const width = t_.submeshes[idx(x.submesh)];
        for (int d = width; d <= devices_; ++d)
          if (double const sum = x.seconds + best[cell(x.last + 1, d - width)]; sum < best[cell(i, d)]) {
            best[cell(i, d)] = sum;
            how[cell(i, d)] = &x;
          }
      }
    double const r = best[cell(0, devices_)];
    if (chain && r < infinity) {
      chain->clear();
      for (int i = 0, d = devices_; i < n_;) {
        item const& x = *how[cell(i, d)];
        chain->push_back({i, x.last, x.submesh, x.candidate});
        d -= t_.submeshes[idx(x.submesh)];
        i = x.last + 1;
      }
    }
    return r;
  }

  /// The least sum with the limit on later stages, counting stages. O(layers * stages * devices).
  double exact(double limit, std::vector<alpa_stage>& chain) const {
    int const most = std::min(n_, devices_);
    std::vector<std::vector<double>> best(idx(most + 1),
                                          std::vector<double>(idx(n_ + 1) * idx(devices_ + 1), infinity));
    std::vector<std::vector<item const*>> how(
        idx(most + 1), std::vector<item const*>(idx(n_ + 1) * idx(devices_ + 1), nullptr));
    best[0][cell(n_, 0)] = 0;
    int stages = 0;
    for (int s = 1; s <= most; ++s)
      for (int i = n_ - 1; i >= 0; --i)
        for (item const& x : from_[idx(i)]) {
          if (x.seconds > limit) break;
          if (x.max_later < s - 1) continue;
          int const width = t_.submeshes[idx(x.submesh)];
          double const* const rest = best[idx(s - 1)].data() + cell(x.last + 1, 0);
          double* const mine = best[idx(s)].data() + cell(i, 0);
          item const** const by = how[idx(s)].data() + cell(i, 0);
          for (int d = width; d <= devices_; ++d)
            if (double const sum = x.seconds + rest[d - width]; sum < mine[d]) {
              mine[d] = sum;
              by[d] = &x;
            }
        }
    for (int s = 1; s <= most; ++s)
      if (best[idx(s)][cell(0, devices_)] < best[idx(stages)][cell(0, devices_)]) stages = s;
    double const r = best[idx(stages)][cell(0, devices_)];
    chain.clear();
    for (int i = 0, d = devices_, s = stages; i < n_ && r < infinity; --s) {
      item const& x = *how[idx(s)][cell(i, d)];
      chain.push_back({i, x.last, x.submesh, x.candidate});
      d -= t_.submeshes[idx(x.submesh)];
      i = x.last + 1;
    }
    return r;
  }
};

}  // namespace detail

/// The exact optimum of sum t_i + (B - 1) max t_i over runs of layers on submeshes that use all devices. Each
/// stage is followed by no more stages than its memory allows (Zheng et al. 2022, algorithm 1, without its
/// rounding of nearly equal limits).
///
/// Method: for a limit T on the slowest stage, S(T) is the least sum; S falls as T rises, so that over limits
/// in [a, b] the objective is at least S(b) + (B - 1) a. Intervals whose bound is not below the best pipeline
/// found are dropped, the others halved. S is first bounded without memory, which is exact where the pipeline
/// found respects it, and only else computed with the number of later stages as a further dimension.
/// Complexity: at worst (distinct times) * O(layers * stages * devices); usually a few dozen of the former.
inline alpa_optimum min_alpa(alpa_table const& t, int devices, i64 micro_batches) {
  alpa_optimum r;
  if (t.layers < 1 || devices < 1 || micro_batches < 1)
    throw error("nothing to plan", "table", "layers, devices and micro-batches");
  detail::alpa_search const search(t, devices);
  double const weight = static_cast<double>(micro_batches - 1);
  auto const sum_within = [&](double limit) {  // a lower bound of S(limit), and perhaps a better pipeline
    std::vector<alpa_stage> chain;
    double sum = search.relaxed(limit, &chain);
    if (!(sum < infinity)) return sum;
    alpa_price p = price_alpa(t, chain, devices, micro_batches);
    if (!p.fits) {
      ++r.programs;
      sum = search.exact(limit, chain);
      if (!(sum < infinity)) return sum;
      p = price_alpa(t, chain, devices, micro_batches);
    }
    if (p.seconds < r.seconds) {
      r.seconds = p.seconds;
      r.stages = chain;
      r.feasible = true;
    }
    return sum;
  };
  // Limits times[a .. b), where S(times[b]) is known.
  auto const explore = [&](auto const& self, std::size_t a, std::size_t b, double sum_b) -> void {
    if (a >= b || sum_b + weight * search.times[a] >= r.seconds) return;
    std::size_t const middle = a + (b - a) / 2;
    double const sum = sum_within(search.times[middle]);
    if (sum < infinity) self(self, a, middle, sum);
    self(self, middle + 1, b, sum_b);
  };
  if (search.times.empty()) return r;
  std::size_t const last = search.times.size() - 1;
  double const sum = sum_within(search.times[last]);
  if (sum < infinity) explore(explore, 0, last, sum);
  return r;
}

}  // namespace tensorpar::peers
