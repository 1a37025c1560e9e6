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

template <cost::cost_model M> class degree_ranking {
  configurations<M>& all_;
  training_problem const& asked_;
  M const& model_;
  degree_limits const& o_;
  degree_estimates<M> estimates_;

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

  /// Of the configurations, those simulated. Replicas of one kind differ from their estimates alike, so these
  /// are scaled by what the first of a kind took; each kind that may be fastest has its turn.
  std::vector<ranked_config> simulate_best(std::vector<estimated_config> left, double bar) {
    using kind = std::pair<int, i64>;
    auto const kind_of = [](parallel_config const& c) { return kind{c.tensor, c.micro_batch}; };
    std::map<kind, double> took;                               // of a second that was estimated, at least
    std::vector<ranked_config> r;
    core::thread_pool workers(o_.threads);
    constexpr std::size_t together = 4;                        // the same for any number of threads
    std::vector<estimated_config> some;
    for (int looked_at = 0; looked_at < o_.simulated; looked_at += static_cast<int>(some.size())) {
      auto const expected = [&](estimated_config const& e) {
        auto const known = took.find(kind_of(e.config));
        return (known == took.end() ? estimates_.margin : known->second) * (e.seconds + e.exposed);
      };
      std::stable_sort(left.begin(), left.end(),
                       [&](auto const& a, auto const& b) { return expected(a) < expected(b); });
      some.clear();
      std::set<kind> first;
      auto const chosen = [&](estimated_config const& e) {
        auto const less = [&](ranked_config const& x) { return fits_as(x, e.config); };
        if (estimates_.margin * e.seconds >= bar || e.bytes > estimates_.room()) return true;   // never
        if (std::any_of(r.begin(), r.end(), less)) return true;
        bool const waits = some.size() == together ||
                           (!took.count(kind_of(e.config)) && !first.insert(kind_of(e.config)).second);
        if (!waits) some.push_back(e);
        return !waits;
      };
      left.erase(std::remove_if(left.begin(), left.end(), chosen), left.end());
      if (some.empty()) break;
      std::vector<std::optional<ranked_config>> found(some.size());
      for (estimated_config const& e : some) all_.tensor_loops(e.config);
      workers.run(static_cast<int>(some.size()),
                  [&](int i, int) { found[idx(i)] = simulated(some[idx(i)].config); });
      for (std::size_t i = 0; i < found.size(); ++i) {
        if (!found[i]) continue;
        double const now = found[i]->seconds, estimated = some[i].seconds + some[i].exposed;
        bar = std::min(bar, now);
        if (now < infinity && estimated > 0) {
          double& least = took.try_emplace(kind_of(some[i].config), infinity).first->second;
          least = std::min(least, now / estimated);
        }
        r.push_back(std::move(*found[i]));
      }
    }
    return r;
  }

 public:
  degree_ranking(configurations<M>& all, training_problem const& asked, M const& model,
                 degree_limits const& o)
      : all_(all), asked_(asked), model_(model), o_(o), estimates_(all, asked, model, o) {}

  std::vector<ranked_config> run(double bar) {
    std::vector<estimated_config> const known = estimates_.faster_than(bar);
    std::vector<ranked_config> r = simulate_best(known, bar);
    auto const before = [](ranked_config const& a, ranked_config const& b) {
      if (a.infeasible && b.infeasible) return a.infeasible->missing < b.infeasible->missing;
      return !a.infeasible && (b.infeasible || a.seconds < b.seconds);
    };
    if (r.empty() && !known.empty()) {                         // none fits: which lacks least
      auto const fewer = [](auto const& a, auto const& b) { return a.bytes < b.bytes; };
      if (auto x = simulated(std::min_element(known.begin(), known.end(), fewer)->config))
        r.push_back(std::move(*x));
    }
    auto const kept = [&](ranked_config const& x) {            // the same fits without recomputation
      return x.config.recompute != recomputation::none &&
             std::any_of(r.begin(), r.end(), [&](ranked_config const& y) {
               return y.config.recompute == recomputation::none && fits_as(y, x.config);
             });
    };
    std::stable_sort(r.begin(), r.end(), before);
    r.erase(std::remove_if(r.begin(), r.end(), kept), r.end());
    std::size_t const top = std::min<std::size_t>(r.size(), 2);
    for (std::size_t i = 0; i < top; ++i)
      if (!r[i].infeasible && r[i].config.recompute != recomputation::none) r[i] = fewest_recomputed(r[i]);
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
  return detail::degree_ranking<M>(all, asked, model, limits).run(bar);
}

}  // namespace tensorpar::search
