// tensorpar/search/degrees/ranking.hpp - which degrees of parallelism make a step fastest
#pragma once
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/core/thread_pool.hpp>
#include <tensorpar/search/degrees/estimates.hpp>
#include <tensorpar/search/intra/fitting.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tuple>
#include <utility>
#include <vector>

namespace tensorpar::search {

/// A configuration with its simulated step. Beyond twice as many micro-batches as stages the step is that of
/// fewer, and for the rest what one more takes.
struct ranked_config {
  parallel_config config;
  double seconds = infinity;
  i64 peak = 0;
  std::optional<shortage> infeasible;
};

namespace detail {

/// Configurations of one problem, ranked once or within several limits: what was simulated is remembered.
template <cost::cost_model M> class degree_ranking {
  // replicas that differ from their estimates alike: devices, samples, several chunks on a group
  using kind = std::tuple<int, i64, bool>;
  // ones whose memory does: stages and chunks on a group, ZeRO, recomputation
  using memory_kind = std::tuple<int, ir::zero_stage, recomputation>;
  configurations<M>& all_;
  training_problem const& asked_;
  M const& model_;
  degree_estimates<M> estimates_;
  // of a second, and of a byte that was estimated, at least
  std::map<kind, double> took_;
  std::map<memory_kind, double> filled_;
  std::vector<ranked_config> seen_;                            // all that were simulated

  static kind kind_of(parallel_config const& c) { return {c.tensor, c.micro_batch, c.virtual_stages > 1}; }
  static memory_kind memory_of(parallel_config const& c) {
    return {(c.pipeline > 1) + (c.virtual_stages > 1), c.sharding, c.recompute};
  }
  /// What probably fits is before what does not, then by seconds.
  std::pair<bool, double> expected(estimated_config const& e) const {
    auto const known = took_.find(kind_of(e.config));
    auto const filled = filled_.find(memory_of(e.config));
    return {(filled == filled_.end() ? 1 : filled->second) * e.bytes > estimates_.memory(),
            (known == took_.end() ? estimates_.margin : known->second) * (e.seconds + e.exposed)};
  }

  /// Does this fit, which but for recomputation is that?
  static bool fits_as(ranked_config const& x, parallel_config that) {
    that.recompute = x.config.recompute;
    return !x.infeasible && x.config == that;
  }
  /// In full or in part, so that fewer layers recompute than all if they fit.
  ranked_config fewest_recomputed(ranked_config r) {
    int const chunks = r.config.pipeline * r.config.virtual_stages;
    int lacking = 0, fitting = (all_.layers() + chunks - 1) / chunks;
    while (fitting - lacking > 1) {
      parallel_config c = r.config;
      c.recompute_layers = (lacking + fitting) / 2;
      std::optional<ranked_config> x = simulated(c);
      bool const fits = x && !x->infeasible;
      (fits ? fitting : lacking) = c.recompute_layers;
      if (fits && x->seconds < r.seconds) r = std::move(*x);
    }
    return r;
  }
  /// Nothing where there is no such step. Precondition: `tensor_loops(c)` was asked for before, for several
  /// threads call this.
  std::optional<ranked_config> simulated(parallel_config const& c) {
    ranked_config r;
    r.config = c;
    bool possible = true;
    auto const timed = [&](i64 m) {
      std::optional<planned_step> const s = estimates_.step(c, all_.on(), m * c.micro_batch * c.data);
      possible = possible && s;
      if (!s) return infinity;
      std::vector<i64> const& arena = s->program.arena;
      r.peak = *std::max_element(arena.begin(), arena.end());
      r.infeasible = shortage_in(arena, all_.on().memories(), false);
      return r.infeasible ? infinity : simulate(s->program, all_.on(), model_, {true, false}).seconds;
    };
    i64 const m = estimates_.micro_batches(c), few = std::max(2, c.pipeline);
    if (m <= 2 * few) r.seconds = timed(m);
    else {
      double const one = timed(few), two = one == infinity ? infinity : timed(2 * few);
      if (two < infinity)
        r.seconds = two + (two - one) / static_cast<double>(few) * static_cast<double>(m - 2 * few);
    }
    return possible ? std::optional(std::move(r)) : std::nullopt;
  }

  /// The next of these that are simulated together, at most so many; they leave the list, and so do those
  /// that never will be. None is chosen that fits as another does which recomputes less.
  std::vector<estimated_config> next_of(std::vector<estimated_config>& left, double bar,
                                        std::size_t number) const {
    std::stable_sort(left.begin(), left.end(),
                     [&](auto const& a, auto const& b) { return expected(a) < expected(b); });
    std::vector<estimated_config> some;
    std::set<kind> first;
    auto const chosen = [&](estimated_config const& e) {
      auto const known = [&](ranked_config const& x) { return x.config == e.config || fits_as(x, e.config); };
      if (estimates_.margin * e.seconds >= bar || e.bytes > estimates_.room()) return true;   // never
      if (std::any_of(seen_.begin(), seen_.end(), known)) return true;
      bool const waits = some.size() == number ||
                         (!took_.count(kind_of(e.config)) && !first.insert(kind_of(e.config)).second);
      if (!waits) some.push_back(e);
      return !waits;
    };
    left.erase(std::remove_if(left.begin(), left.end(), chosen), left.end());
    return some;
  }
  /// Of the configurations, those simulated. The first of a kind that is simulated scales the others, and
  /// each kind that may be fastest has its turn.
  std::vector<ranked_config> simulate_best(std::vector<estimated_config> left, double bar,
                                           degree_limits const& o) {
    std::vector<ranked_config> r;
    core::thread_pool workers(o.threads);
    constexpr int together = 4;                                // the same for any number of threads
    for (int done = 0; done < o.simulated;) {
      std::vector<estimated_config> const some =
          next_of(left, bar, idx(std::min(together, o.simulated - done)));
      if (some.empty()) break;
      done += static_cast<int>(some.size());
      std::vector<std::optional<ranked_config>> found(some.size());
      for (estimated_config const& e : some) all_.tensor_loops(e.config);
      workers.run(static_cast<int>(some.size()),
                  [&](int i, int) { found[idx(i)] = simulated(some[idx(i)].config); });
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (!found[i]) continue;
        double const now = found[i]->seconds, estimated = some[i].seconds + some[i].exposed;
        bar = std::min(bar, now);
        if (now < infinity && estimated > 0) {
          double& least = took_.try_emplace(kind_of(some[i].config), infinity).first->second;
          least = std::min(least, now / estimated);
        }
        double& least = filled_.try_emplace(memory_of(some[i].config), infinity).first->second;
        least = std::min(least, static_cast<double>(found[i]->peak) / some[i].bytes);
        seen_.push_back(*found[i]);
        r.push_back(std::move(*found[i]));
      }
    }
    return r;
  }

 public:
  degree_ranking(configurations<M>& all, training_problem const& asked, M const& model)
      : all_(all), asked_(asked), model_(model), estimates_(all, asked, model) {}

  /// As `rank_configurations`, without those that were ranked before.
  std::vector<ranked_config> run(degree_limits const& o, double bar) {
    for (ranked_config const& x : seen_) bar = std::min(bar, x.seconds);
    std::vector<estimated_config> const known = estimates_.faster_than(bar, o);
    std::vector<ranked_config> r = simulate_best(known, bar, o);
    auto const before = [](ranked_config const& a, ranked_config const& b) {
      if (a.infeasible && b.infeasible) return a.infeasible->missing < b.infeasible->missing;
      return !a.infeasible && (b.infeasible || a.seconds < b.seconds);
    };
    auto const fits = [](ranked_config const& x) { return !x.infeasible; };
    if (r.empty() && !known.empty() && std::none_of(seen_.begin(), seen_.end(), fits)) {  // what lacks least
      auto const fewer = [](auto const& a, auto const& b) { return a.bytes < b.bytes; };
      parallel_config const least = std::min_element(known.begin(), known.end(), fewer)->config;
      auto const same = [&](ranked_config const& x) { return x.config == least; };
      auto x = std::any_of(seen_.begin(), seen_.end(), same) ? std::nullopt : simulated(least);
      if (x) seen_.push_back(*x), r.push_back(std::move(*x));
    }
    auto const kept = [&](ranked_config const& x) {            // the same fits without recomputation
      return x.config.recompute != recomputation::none &&
             std::any_of(r.begin(), r.end(), [&](ranked_config const& y) {
               return y.config.recompute == recomputation::none && fits_as(y, x.config);
             });
    };
    std::stable_sort(r.begin(), r.end(), before);
    r.erase(std::remove_if(r.begin(), r.end(), kept), r.end());
    double const fastest = r.empty() ? bar : std::min(bar, r.front().seconds);
    constexpr double gain = 0.25;                              // more than recomputing nothing brings
    int recomputing = 0;
    for (ranked_config& x : r) {
      if (x.infeasible || x.config.recompute == recomputation::none) continue;
      if (++recomputing > 2 || (1 - gain) * x.seconds >= fastest) break;
      x = fewest_recomputed(std::move(x));
    }
    std::stable_sort(r.begin(), r.end(), before);
    return r;
  }
};

}  // namespace detail

/// Configurations whose steps were simulated: those that fit first, the fastest before others; then by what
/// they lack. Estimates decide which are simulated: none whose estimate is 5 % above `bar` seconds or the
/// fastest found, and no pipeline of more than `max_placed` operators. Empty: none divides, or none is below
/// `bar`. Deterministic. O(limits.simulated * unrolling).
template <cost::cost_model M>
std::vector<ranked_config> rank_configurations(configurations<M>& all, training_problem const& asked,
                                               M const& model, degree_limits const& limits = {},
                                               double bar = infinity) {
  return detail::degree_ranking<M>(all, asked, model).run(limits, bar);
}

}  // namespace tensorpar::search
