// tensorpar/graph/downsets/objective.hpp - what a cost model must say so that the best pipeline of downsets
// can be found exactly
#pragma once
#include <concepts>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/graph/downsets/lattice.hpp>
#include <vector>

namespace tensorpar::graph {

/// A way to run a stage: its devices, the copies of the stage that they make, its table of costs, and the
/// number by which work and boundary are divided. Copies are what earlier stages' memory depends on, or any
/// second resource such as CPUs.
struct stage_way {
  int devices = 1, copies = 0, table = 0;
  double share = 1;
};

/// What a net costs a stage that holds some of its nodes: `in` if others lie before the stage, `out` if
/// others lie behind, and if both, in + out - both. An edge that is charged in both its stages has both = 0
/// (it cannot have nodes on both sides of a stage that touches it); a tensor that is charged once per stage,
/// whoever made it, has in = out = both.
struct net_charge {
  double in = 0, out = 0, both = 0;
};

/// A stage: the nodes of one downset that are not in another. `work` and `boundary` are sums in the costs of
/// one way's table.
struct downset_stage {
  downset_lattice const& lattice;
  int from, to;              // downsets
  double work, boundary;
  double const *low, *high;  // sums of the measures over both downsets
  double sum(int k) const { return high[k] - low[k]; }
  template <class F> void each(F&& f) const { lattice.each_between(from, to, f); }
};

/// A bound on two measures of a stage: x * sum(a) + y * sum(b) is at most `most`.
struct measure_limit {
  static constexpr int at_most = 4;  // for a stage
  int a = 0, b = 0;
  double x = 0, y = 0, most = infinity;
  bool exists() const { return most < infinity; }
  double of(double const* sums) const { return x * sums[a] + y * sums[b]; }
};

/// The price of pipelines whose stages are differences of nested downsets, for `min_bottleneck`.
/// Valid expressions, for a stage s, a way w, a table t, a node v, a net h, a measure k, and `later`, the
/// copies of all later stages:
///   o.ways() -> int, o.way(w) -> stage_way          the ways to run a stage
///   o.tables() -> int, o.work(t, v) -> double       seconds that v adds; infinite where v cannot run so
///   o.nets() -> lists of nodes
///   o.charge(t, h) -> net_charge
///   o.measures() -> int, o.measure(k, v) -> double  further sums that `seconds` needs (bytes, ...)
///   o.seconds(s, w, later) -> double                the price of a stage; infinite if it does not fit
///   o.devices() -> int, o.copies() -> int           how many there are
///
/// Laws:
///   1. nothing is negative but measures; 0 <= both <= min(in, out); share > 0; a way without devices has
///      copies.
///   2. seconds(s, w, later) >= (s.work + s.boundary) / way(w).share: the sums that a stage is grown from
///      bound its price from below.
///   3. seconds does not fall when `later` rises.
///   4. seconds depends on s through s.work, s.boundary, s.sum(k) and the nodes only, and is deterministic.
/// Optional:
///   o.exact_devices() -> bool                       the pipeline must use exactly devices(), not at most
/// Optional, only to decide sooner:
///   o.may_start(lattice, d, w, target) -> bool      false only if no stage that starts at downset d in way
///                                                   w costs at most `target`
///   o.limits(w, later, target)                      std::array<measure_limit, k>, 0 < k <= 4: every stage
///                                                   that costs at most `target` keeps them all. They are
///                                                   compared with differences of sums, so leave a margin
///   o.within(s, w, later, target) -> bool           seconds(s, w, later) is finite and at most target
///
/// Minimal definition: all but the optional ones. Models: `max_load_objective`, `piper_objective`, yours
/// (docs/how-to/own-profiler.md). Complexity expected: everything but `seconds` O(1); `seconds` is called for
/// pairs of downsets that survive the bounds.
template <class O>
concept downset_objective = requires(O const& o, downset_stage const& s, int i) {
  { o.ways() } -> std::convertible_to<int>;
  { o.way(i) } -> std::convertible_to<stage_way>;
  { o.tables() } -> std::convertible_to<int>;
  { o.work(i, i) } -> std::convertible_to<double>;
  { o.nets() } -> std::convertible_to<std::vector<std::vector<int>> const&>;
  { o.charge(i, i) } -> std::convertible_to<net_charge>;
  { o.measures() } -> std::convertible_to<int>;
  { o.measure(i, i) } -> std::convertible_to<double>;
  { o.seconds(s, i, i) } -> std::convertible_to<double>;
  { o.devices() } -> std::convertible_to<int>;
  { o.copies() } -> std::convertible_to<int>;
};

/// A stage of a pipeline found by `min_bottleneck`.
struct downset_part {
  std::vector<int> nodes;    ///< ascending
  int way = 0;
  double seconds = 0;
  friend bool operator==(downset_part const&, downset_part const&) = default;
};
/// A pipeline, first stage first, or the answer that there is none.
struct downset_pipeline {
  bool feasible = false;
  double seconds = infinity;  ///< the largest of the stages'; the optimum up to a relative 1e-10
  std::vector<downset_part> stages;
  int downsets = 0, decisions = 0;    ///< size of the space; how many bottlenecks were tried
  i64 pairs = 0;                      ///< stages priced on the way
};

namespace detail {

/// A stage's price from its nodes alone: sums are taken afresh, in ascending order of nodes, so that they
/// carry no history.
template <downset_objective O>
double downset_price(O const& o, downset_lattice const& lattice, int from, int to, int w, int later) {
  stage_way const way = o.way(w);
  double work = 0, boundary = 0;
  std::vector<double> zero(idx(o.measures()), 0.0), sum(zero);
  for (int v : lattice.between(from, to)) {
    work += o.work(way.table, v);
    for (int k = 0; k < o.measures(); ++k) sum[idx(k)] += o.measure(k, v);
  }
  auto const& nets = o.nets();
  for (std::size_t h = 0; h < nets.size(); ++h) {
    bool before = false, inside = false, behind = false;
    for (int v : nets[h])
      (lattice.contains(from, v) ? before : lattice.contains(to, v) ? inside : behind) = true;
    if (!inside) continue;
    net_charge const c = o.charge(way.table, static_cast<int>(h));
    boundary += (before ? c.in : 0) + (behind ? c.out : 0) - (before && behind ? c.both : 0);
  }
  if (!(work < infinity)) return infinity;
  return o.seconds({lattice, from, to, work, boundary, zero.data(), sum.data()}, w, later);
}

}  // namespace detail

}  // namespace tensorpar::graph
