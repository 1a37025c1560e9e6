// tensorpar/graph/downsets/downsets.hpp - the exact optimum over pipelines of nested downsets: least largest
// price of a stage
#pragma once
#include <map>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/graph/downsets/buckets.hpp>
#include <tensorpar/graph/downsets/sums.hpp>
#include <tuple>
#include <utility>
#include <vector>

namespace tensorpar::graph {

namespace detail {

/// Decides, for a target price T, whether there is a pipeline all of whose stages cost at most T.
///
/// State: a downset D and what its complement needs. For each D the front of pairs (devices, copies) with
/// which the nodes outside D can be staged within T, of which none is at least another in both (law 3: fewer
/// later copies never hurt). The front of D follows from those of supersets D': one stage D' \ D more.
/// Supersets are processed first, and those with equal pairs stand in one bucket in the order of falling
/// device work. For each bucket and way, one feasible D' is enough; they are tried from the nearest, that is
/// from the stage with the least work, and the scan ends where work alone says that T is exceeded.
/// What is left out cannot be part of a pipeline within T:
///  1. D' whose work beyond D exceeds what the way absorbs in T (law 2);
///  2. D' where work + |difference of boundaries| exceeds T * share: nets cut by both cancel in the
///     difference, the others are charged;
///  3. D' beyond all nets that D cuts, where work + both boundaries exceeds T * share: no net is cut by both;
///  4. pairs with which devices run out: the stages on either side of D take at least (device-seconds of that
///     side) / T devices;
///  5. pairs that add up to fewer devices than that bound asks for;
///  6. D' whose measures exceed D's by more than the objective's limits on a stage in front of so many
///     copies.
/// Time: O(1) for each pair that survives 1, a nanosecond or two, as three comparisons of packed rows; O(nets
/// cut) for those that are nested and survive the rest. Blocks of 64 candidates that fail 2, 3 or 6 together
/// cost as much as one.
template <downset_objective O> class downset_decision {
  struct point {
    // the stage's way; the point of the downset where it ends, -1 at the full set
    int devices, copies, way, next;
    int rank;
  };
  O const& o_;
  downset_lattice const& l_;
  downset_sums<O> const& s_;
  downset_keys const keys_;
  std::vector<stage_way> ways_;
  struct way_reach {
    i64 span;     // in units of work, how much a stage may hold at most
    double room;  // how high its work and boundary may sum
  };
  std::vector<point> points_;
  std::vector<way_reach> reach_;  // by way, for the target
  double target_ = 0;

  using bucket = downset_bucket;

  bool exact_devices() const {
    if constexpr (requires {
                    { o_.exact_devices() } -> std::convertible_to<bool>;
                  })
      return o_.exact_devices();
    return false;
  }
  bool may_start(int r, int w) const {
    if constexpr (requires { { o_.may_start(l_, r, w, target_) } -> std::convertible_to<bool>; })
      return o_.may_start(l_, s_.id[idx(r)], w, target_);
    return true;
  }

  void set_target(double target) {
    target_ = target;
    reach_.clear();
    for (int w = 0; w < static_cast<int>(ways_.size()); ++w) {
      stage_way const& x = ways_[idx(w)];
      double const units = target * s_.absorbs[idx(w)] / s_.total * static_cast<double>(s_.one);
      i64 const span = s_.total > 0 && units < 4e18
                           ? static_cast<i64>(units * (1 + 1e-9)) + l_.node_count() + 1
                           : i64{1} << 62;
      reach_.push_back({span, target * x.share * (1 + 1e-12) + 1e-14 * s_.work[idx(x.table)][0]});
    }
  }
  int min_devices(double device_seconds) const {
    if (!(target_ < infinity)) return 0;
    double const rest = device_seconds / target_ - s_.free_rate;
    return rest > 0 ? static_cast<int>(std::min(std::ceil(rest * (1 - 1e-9) - 1e-9), 1e9)) : 0;
  }

  static constexpr int limits_per_way = [] {
    if constexpr (requires(O const& o) { o.limits(0, 0, 0.0); })
      return static_cast<int>(std::tuple_size_v<decltype(std::declval<O const&>().limits(0, 0, 0.0))>);
    else return 0;
  }();
  static_assert(limits_per_way <= measure_limit::at_most,
                "tensorpar: a stage has at most 4 limits on its measures");
  /// The limits of every way that a stage in front of these later ones may take.
  std::vector<measure_limit> limits_before(int devices, int copies) const {
    std::vector<measure_limit> r;
    if constexpr (limits_per_way > 0)
      for (int w = 0; w < o_.ways(); ++w) {
        bool const possible =
            devices + ways_[idx(w)].devices <= o_.devices() && copies + ways_[idx(w)].copies <= o_.copies();
        auto const of_way =
            possible ? o_.limits(w, copies, target_) : decltype(o_.limits(w, copies, target_)){};
        r.insert(r.end(), of_way.begin(), of_way.end());
      }
    return r;
  }
  bool keeps_limits(bucket const& b, int r, int u, int w) const {
    for (int i = w * limits_per_way; i < (w + 1) * limits_per_way; ++i)
      if (measure_limit const& m = b.limits[idx(i)];
          m.exists() && m.of(s_.measures(u)) > m.most + m.of(s_.measures(r)))
        return false;
    return true;
  }
  /// May the stage between two downsets, nested and within the bounds, run in way `w` within the target?
  bool feasible(bucket const& b, int r, int u, int w, int later) const {
    stage_way const& way = ways_[idx(w)];
    int const t = way.table;
    if (s_.barred[idx(t)][idx(u)] != s_.barred[idx(t)][idx(r)]) return false;
    if (!keeps_limits(b, r, u, w)) return false;
    double const x = s_.work[idx(t)][idx(u)] - s_.work[idx(t)][idx(r)], boundary = s_.boundary(t, r, u);
    if (x + boundary > target_ * way.share * (1 + 1e-12)) return false;
    downset_stage const stage{l_, s_.id[idx(r)], s_.id[idx(u)], x, boundary, s_.measures(r), s_.measures(u)};
    if constexpr (requires { o_.within(stage, w, later, target_); })
      return o_.within(stage, w, later, target_);
    double const price = o_.seconds(stage, w, later);
    return price < infinity && price <= target_;
  }

  /// A member of the bucket from which the stage down to `r` is feasible in way `w`, or -1.
  int find(bucket const& b, int r, int w, int later) {
    i64 const max_units = s_.work_units[idx(r)] + reach_[idx(w)].span;
    if (b.units.back() > max_units) return -1;
    int const t = ways_[idx(w)].table;
    double const room = reach_[idx(w)].room, mine = s_.work[idx(t)][idx(r)];
    double const in = s_.in[idx(t)][idx(r)], out = s_.out[idx(t)][idx(r)];
    downset_probe const probe{
        max_units,   s_.clear_units[idx(r)], room + mine + out, room + mine - in,   room + mine - in,
        keys_.row(r), keys_.words,           s_.measures(r),    w * limits_per_way, (w + 1) * limits_per_way};
    return b.scan(probe, t, keys_, pairs, [&](int u) { return feasible(b, r, u, w, later); });
  }

 public:
  i64 pairs = 0;
  // by rank, in the last decision: what is beyond it can be staged. If not, nor can it under a lower target
  std::vector<char> reached;

  downset_decision(O const& o, downset_lattice const& l, downset_sums<O> const& s)
      : o_(o), l_(l), s_(s), keys_(l, s.id) {
    for (int w = 0; w < o.ways(); ++w) ways_.push_back(o.way(w));
  }

  /// Downsets from the empty to the full one, with the way of each stage between; nothing if no pipeline is
  /// within `target`. `active`, where it is not empty, says by rank which downsets stages may start at.
  std::optional<std::vector<std::pair<int, int>>> operator()(double target,
                                                             std::vector<char> const& active = {}) {
    set_target(target);
    points_.clear();
    std::map<std::pair<int, int>, bucket> buckets;
    std::vector<point> front;
    reached.assign(idx(l_.count()), 0);
    int const devices = o_.devices(), copies = o_.copies(), count = l_.count();
    bool const exact = exact_devices();  // then more devices are no worse than fewer, only other
    for (int r = 0; r < count; ++r) {
      if (!active.empty() && !active[idx(r)]) continue;
      front.clear();
      int const before = min_devices(s_.before[idx(r)]), after = min_devices(s_.after[idx(r)]);
      if (r == 0) {
        front.push_back({0, 0, -1, -1, 0});
      } else if (before + after <= devices) {
        for (auto const& [key, b] : buckets) {
          if (key.first + before > devices) break;  // keys ascend in devices
          for (int w = 0; w < static_cast<int>(ways_.size()); ++w) {
            int const d = key.first + ways_[idx(w)].devices, c = key.second + ways_[idx(w)].copies;
            if (d + before > devices || d < after || c > copies) continue;
            bool worse = false;
            for (point const& p : front)
              worse = worse || ((exact ? p.devices == d : p.devices <= d) && p.copies <= c);
            if (worse || !may_start(r, w)) continue;
            if (int const next = find(b, r, w, key.second); next >= 0) {
              std::erase_if(front, [&](point const& p) {
                return (exact ? p.devices == d : p.devices >= d) && p.copies >= c;
              });
              front.push_back({d, c, w, next, r});
            }
          }
        }
      }
      reached[idx(r)] = !front.empty();
      for (point const& p : front) {
        int const k = static_cast<int>(points_.size());
        points_.push_back(p);
        if (r == count - 1 && exact && p.devices != devices) continue;
        if (r == count - 1) {  // the empty downset: a pipeline
          std::vector<std::pair<int, int>> chain;
          for (int q = k; q >= 0; q = points_[idx(q)].next)
            chain.push_back({s_.id[idx(points_[idx(q)].rank)], points_[idx(q)].way});
          return chain;
        }
        auto const [place, made] = buckets.try_emplace({p.devices, p.copies});
        bucket& b = place->second;
        if (made) b.limit_by(limits_before(p.devices, p.copies));
        b.add(r, k, s_.work_units[idx(r)], keys_, s_.measures(r));
        for (std::size_t t = 0; t < s_.work.size(); ++t)
          b.bound(t, s_.work[t][idx(r)] + s_.out[t][idx(r)], s_.work[t][idx(r)] - s_.in[t][idx(r)]);
      }
    }
    return std::nullopt;
  }
};

}  // namespace detail

/// The pipeline of nested downsets of `g` whose dearest stage is cheapest, exactly (up to a relative 1e-10),
/// or the answer that none fits. Every stage is a difference of two downsets, hence convex; together they use
/// at most o.devices() devices and o.copies() copies.
///
/// Method: bisection on the price of the dearest stage; `detail::downset_decision` decides each target. A
/// feasible target yields a pipeline, whose own price is the next upper end. The search ends only with a
/// proof that nothing below the best pipeline found is feasible, so the answer does not depend on a step
/// width. With more than `sample_above` downsets the first upper ends come from searches over samples of
/// them. Each sample is four times the last, and has in each band of work the downsets that cut least.
/// Deterministic.
/// `below`: only pipelines with a lower price are looked for. If there is none the answer is that none fits,
/// after one decision over all downsets. That is much cheaper than a search from above.
/// Complexity: L downsets; a few decisions over all of them, each at worst O(L^2 * ways * fronts). In
/// practice it is near linear in L, because near the optimum hardly any slack is left. On a tight target only
/// downsets whose work is near a multiple of it can be stage boundaries. Throws `error` on a cycle and if
/// there are more than `max_downsets`.
template <topology G, downset_objective O>
downset_pipeline min_bottleneck(G const& g, O const& o, int max_downsets = 400'000,
                                  int sample_above = 8192, double below = infinity) {
  downset_lattice const lattice(g, max_downsets);
  detail::downset_sums<O> const sums(g, o, lattice);
  detail::downset_decision<O> decide(o, lattice, sums);
  downset_pipeline best;
  best.downsets = lattice.count();
  best.seconds = below;
  // true if a pipeline better than the best was found
  auto const improve = [&](double target, std::vector<char> const& active) {
    ++best.decisions;
    auto const chain = decide(target, active);
    if (!chain) return false;
    downset_pipeline next;
    next.feasible = true;
    next.seconds = 0;
    int later = 0;
    for (std::size_t i = chain->size(); i-- > 1;) {
      auto const [from, w] = (*chain)[i - 1];
      int const to = (*chain)[i].first;
      double const t = detail::downset_price(o, lattice, from, to, w, later);
      next.stages.push_back({lattice.between(from, to), w, t});
      next.seconds = std::max(next.seconds, t);
      later += o.way(w).copies;
    }
    std::reverse(next.stages.begin(), next.stages.end());
    if (!(next.seconds < best.seconds)) return false;
    next.downsets = best.downsets;
    next.decisions = best.decisions;
    best = std::move(next);
    return true;
  };
  double const room = o.devices() + sums.free_rate;
  // work alone
  double const least = room > 0 && room < infinity ? sums.total / room * (1 - 1e-9) : 0.0;
  auto const search = [&](std::vector<char> active) {
    bool const sampled = !active.empty();
    bool const known = best.seconds < infinity;
    // an upper end from a sample is near the optimum, or is it: prove it first, then go down by growing steps
    bool strict = known;
    double low = least, step = known ? 1e-3 * best.seconds : infinity;
    if (!known && !improve(infinity, active)) return;
    while (best.seconds > low) {
      double const gap = best.seconds - low, middle = best.seconds - std::min(gap / 2, step);
      if (improve(strict ? best.seconds * (1 - 1e-10) : middle, active)) {
        if (!strict) step *= 2;
        strict = false;
        active = decide.reached;
      } else {
        if (strict) break;
        low = middle;
        step = infinity;
        strict = best.seconds - low <= 1e-3 * best.seconds;
        if (strict && sampled) break;  // what a sample cannot reach proves nothing
      }
      strict = strict || best.seconds - low <= 1e-9 * best.seconds;
    }
  };
  if (lattice.count() > sample_above)
    for (int each = 8; 512 * each < lattice.count(); each *= 4) search(sums.narrow_downsets(256, each));
  search({});
  best.pairs = decide.pairs;
  if (!best.feasible) best.seconds = infinity;
  return best;
}

}  // namespace tensorpar::graph
