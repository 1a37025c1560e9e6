// tensorpar/search/stages.hpp - from a graph, devices and a stage model to a pipeline whose stages follow the graph
#pragma once
#include <cmath>
#include <optional>
#include <tensorpar/plan/pipeline.hpp>
#include <tensorpar/search/stages/engine.hpp>
#include <tensorpar/search/stages/every.hpp>

namespace tensorpar {

/// What is made small: the thesis's time per sample of the slowest stage, or the estimate of an iteration, which also counts how the
/// pipeline fills and drains.
enum class stage_objective : int { iteration, bottleneck };

struct stage_options {
  stage_objective objective = stage_objective::iteration;
  std::vector<i64> micro_batches;        // samples; empty: own batch times powers of two up to the mini-batch that divide it
  std::vector<int> ks{1};                // of kFkB
  bool mixed = true;                     // stages may differ in micro-batch size (see `find_stages`)
  double tolerance = 1e-4;               // of the bottleneck, relative; 0: exact in each family up to rounding
  bool line = true;                      // consider contiguous stages of a line too, where the tree leaves a gap
  int most_up_sets = 192;                // graphs with at most so many: every convex partition is considered
};

/// Where the answer comes from.
enum class stage_source : int { tree, line, every_partition };
constexpr std::string_view name_of(stage_source s) {
  return s == stage_source::tree ? "tree" : s == stage_source::line ? "line" : "every partition";
}

struct stage_result {
  std::optional<stage_shortage> infeasible;   // then there is no pipeline: what the least short of memory still lacks
  tensorpar::pipeline pipeline;               // without `order`
  std::vector<stage_choice> choices;          // by stage of the pipeline
  stage_cost cost;                            // likewise
  double bound = 0;        // no convex partition has a smaller bottleneck (transfers left out), whatever sizes and degrees of the space
  double gap = 0;          // (bottleneck - bound) / bottleneck
  double family_bound = 0; // no partition of the families considered has a smaller bottleneck; = bottleneck where that is proven least
  stage_source source = stage_source::tree;
  bool every_partition = false;               // all convex partitions were considered: family_bound holds for all of them
  int added = 0;                              // dependencies that the tree has and the graph lacks (0: series-parallel)
  double critical_before = 0, critical_after = 0;   // critical path in seconds per sample of the graph and of the tree
  stage_statistics statistics;
  bool feasible() const { return !infeasible; }
};

namespace detail {

inline std::vector<i64> usual_micro_batches(i64 own, i64 mini_batch) {
  std::vector<i64> r;
  for (i64 b = own; b <= mini_batch; b *= 2) if (mini_batch % b == 0) r.push_back(b);
  return r;
}

/// Stages in topological order, devices assigned.
template <stage_model M> void write_pipeline(M const& m, priced_stages p, bool sequential, stage_result& r) {
  std::vector<found_stage> sorted;
  for (int s : quotient_order(p.cost.next)) sorted.push_back(std::move(p.stages[static_cast<std::size_t>(s)]));
  if (m.uniform()) {                     // largest first: groups of powers of two then straddle no larger power of two
    std::vector<int> by_size;
    for (std::size_t s = 0; s < sorted.size(); ++s) by_size.push_back(static_cast<int>(s));
    std::stable_sort(by_size.begin(), by_size.end(), [&](int a, int b) {
      return sorted[static_cast<std::size_t>(a)].choice.devices() > sorted[static_cast<std::size_t>(b)].choice.devices();
    });
    int first = 0;
    for (int s : by_size) {
      sorted[static_cast<std::size_t>(s)].first = first;
      first += sorted[static_cast<std::size_t>(s)].choice.devices();
    }
  }
  r.cost = cost_of(m, sorted, sequential);
  r.pipeline = {};
  r.choices.clear();
  r.pipeline.mini_batch = m.mini_batch();
  for (found_stage& s : sorted) {
    r.pipeline.groups.push_back({s.first, s.choice.devices()});
    r.pipeline.stages.push_back({std::move(s.nodes), static_cast<int>(r.pipeline.stages.size()), s.choice.micro_batch, s.choice.k, false,
                                 s.choice.recompute, s.choice.shard_optimizer});
    r.choices.push_back(s.choice);
  }
}

/// Is a better than b? Ties are broken by fewer samples in flight, then the other time, then fewer stages.
inline bool better(stage_objective o, stage_cost const& a, stage_cost const& b) {
  double const x = o == stage_objective::iteration ? a.iteration : a.bottleneck, y = o == stage_objective::iteration ? b.iteration : b.bottleneck;
  if (x < y * (1 - 1e-9)) return true;
  if (y < x * (1 - 1e-9)) return false;
  if (a.source_in_flight != b.source_in_flight) return a.source_in_flight < b.source_in_flight;
  double const u = o == stage_objective::iteration ? a.bottleneck : a.iteration, v = o == stage_objective::iteration ? b.bottleneck : b.iteration;
  if (u < v * (1 - 1e-9)) return true;
  if (v < u * (1 - 1e-9)) return false;
  return a.work.size() < b.work.size();
}

/// The model with all memories enlarged.
template <stage_model M> class with_memory {
  M const* m_;
  double times_;

 public:
  with_memory(M const& m, double times) : m_(&m), times_(times) {}
  int operators() const { return m_->operators(); }
  int devices() const { return m_->devices(); }
  std::vector<stage_tensor> const& tensors() const { return m_->tensors(); }
  std::vector<stage_choice> degrees() const { return m_->degrees(); }
  bool admits(stage_choice const& c) const { return m_->admits(c); }
  int kind(int v) const { return m_->kind(v); }
  stage_work work(int v, stage_choice const& c, int first) const { return m_->work(v, c, first); }
  stage_work transfer(stage_border const& b, stage_choice const& c, int first) const { return m_->transfer(b, c, first); }
  bool uniform() const { return m_->uniform(); }
  double capacity(int first, int n) const { return times_ * m_->capacity(first, n); }
  i64 mini_batch() const { return m_->mini_batch(); }
  i64 own_batch() const { return m_->own_batch(); }
};

/// What the pipeline that needs the least enlargement of all memories lacks, at the smallest micro-batch.
template <stage_model M> stage_shortage least_shortage(M const& m, sp_tree const& tree, std::vector<stage_rhythm> const& smallest) {
  std::optional<stage_shortage> least;
  double low = 1, high = 2;
  auto attempt = [&](double times) {
    with_memory<M> const larger(m, times);
    stage_family<with_memory<M>> family(larger, tree, false);
    stage_statistics count;
    bool found = false;
    family.search(smallest, 1e290, 1e290, 1, count, [&](priced_stages p) {
      stage_cost const c = cost_of(m, p.stages);
      found = true;
      if (c.shortage) least = c.shortage;
      return 0.0;
    });
    return found;
  };
  while (high < 1e30 && !attempt(high)) {
    low = high;
    high *= 4;
  }
  for (int i = 0; i < 30 && high > low * 1.0001; ++i) {
    double const mid = std::sqrt(low * high);
    (attempt(mid) ? high : low) = mid;
  }
  if (high < 1e30) attempt(high);
  return least ? *least : stage_shortage{0, 0};
}

}  // namespace detail

/// A pipeline for one training step: the thesis's stage partitioner (section 3.5, Algorithm 2) with its gaps filled (stage_decision), for
/// any acyclic graph: one that is not series-parallel goes through `relax`, and the result says which dependencies that added.
///
/// The space: partitions into convex stages; on each, the degrees that the model offers; micro-batches of `micro_batches`, rhythms of `ks`;
/// at most all devices, memory by samples in flight (Table 3.2, over the graph of stages). Of the partitions, those of the tree: runs of
/// parts of a series, whole branches together, a join with the end of a branch or with whole branches, recursively; those of the line of
/// all operators (what PipeDream knows) where the tree's answer is above the bound by more than the tolerance; and every convex partition
/// where the graph has at most `most_up_sets` up-sets. In the first two all stages have one micro-batch size and, for the best of these,
/// neighbouring sizes are then mixed per stage; over every partition all sizes are mixed.
/// Objective `bottleneck`: least over these. Objective `iteration`: least estimate among all pipelines that the search for least bottlenecks
/// passes; not proven least.
/// Deterministic. Throws `error` for an empty or cyclic graph, and where the model's operators are not the graph's nodes.
template <topology G, stage_model M> stage_result find_stages(G const& graph, M const& m, stage_options const& o = {}) {
  using namespace detail;
  adjacency const& a = as_adjacency(graph);
  stage_result r;
  std::vector<i64> sizes = o.micro_batches.empty() ? usual_micro_batches(m.own_batch(), m.mini_batch()) : o.micro_batches;
  std::sort(sizes.begin(), sizes.end());
  for (i64 b : sizes)
    if (b < 1 || m.mini_batch() % b != 0 || b % m.own_batch() != 0)
      throw error("micro-batches of " + std::to_string(b) + " samples", "find_stages",
                  "divisors of the mini-batch, " + std::to_string(m.mini_batch()) + ", that are multiples of " + std::to_string(m.own_batch()));
  if (sizes.empty()) throw error("no micro-batch size", "find_stages", "a mini-batch that is a multiple of the graph's batch");
  auto rhythms_of = [&](std::vector<i64> const& some) {
    std::vector<stage_rhythm> x;
    for (i64 b : some) for (int k : o.ks) if (k >= 1 && m.mini_batch() % (b * k) == 0) x.push_back({b, k});
    return x;
  };
  auto const relaxed = stage_relaxation(a, m, sizes.back());
  r.added = static_cast<int>(relaxed.added.size());
  r.critical_before = relaxed.before;
  r.critical_after = relaxed.after;

  stage_family<M> tree(m, relaxed.tree, false);
  std::optional<priced_stages> best;
  bool const iteration = o.objective == stage_objective::iteration;
  double const per_sample = 1 / static_cast<double>(m.mini_batch());
  // Below this many seconds per sample a pipeline's bottleneck must be for the pipeline to matter.
  auto ceiling = [&] { return !best ? 1e299 : iteration ? best->cost.iteration * per_sample : best->cost.bottleneck; };
  auto consider = [&](stage_source from) {
    return [&, from](priced_stages p) {
      if (!best || better(o.objective, p.cost, best->cost)) {
        best = std::move(p);
        r.source = from;
      }
      return ceiling();
    };
  };
  struct sweep {
    i64 size;
    double low;
  };
  std::vector<sweep> order;
  for (i64 b : sizes)
    if (double const low = bottleneck_bound(m, rhythms_of({b})); low < 1e299) order.push_back({b, low});
  if (order.empty())
    throw error("the model admits no micro-batch size on any number of devices", "find_stages", "a size that some degree divides");
  double const coarse = iteration ? std::max(o.tolerance, 0.05) : o.tolerance, fine = iteration ? std::max(o.tolerance, 0.01) : o.tolerance;
  r.family_bound = 1e300;
  // Larger micro-batches are faster per sample, smaller ones fill a pipeline sooner: from the middle outwards the bar falls soonest.
  std::stable_sort(order.begin(), order.end(), [&](sweep const& x, sweep const& y) { return x.low < y.low; });
  if (iteration && !order.empty()) {
    double const near = order.front().low * 1.1;
    std::stable_sort(order.begin(), order.end(), [&](sweep const& x, sweep const& y) {
      bool const p = x.low <= near, q = y.low <= near;
      return p != q ? p : p ? x.size < y.size : x.low < y.low;
    });
  }
  for (sweep const& s : order) {
    double low = s.low;
    if (low < ceiling()) low = std::max(low, tree.search(rhythms_of({s.size}), low, ceiling(), coarse, r.statistics, consider(stage_source::tree)));
    r.family_bound = std::min(r.family_bound, low);
  }
  r.bound = bottleneck_bound(m, rhythms_of(sizes));
  if (best && iteration) {               // the best size once more, finely
    auto const rhythms = rhythms_of({best->stages.front().choice.micro_batch});
    double const low = bottleneck_bound(m, rhythms);
    if (low < ceiling()) tree.search(rhythms, low, ceiling(), fine, r.statistics, consider(stage_source::tree));
  }
  if (best && o.mixed && sizes.size() > 1) {
    i64 const at = best->stages.front().choice.micro_batch;
    std::vector<i64> near;
    for (i64 b : sizes) if (b * 2 == at || b == at || b == at * 2) near.push_back(b);
    double const low = bottleneck_bound(m, rhythms_of(near));
    if (low < ceiling()) tree.search(rhythms_of(near), low, ceiling(), fine, r.statistics, consider(stage_source::tree));
  }
  bool const gap_left = !best || best->cost.bottleneck > r.bound * (1 + o.tolerance);
  if (o.line && gap_left && relaxed.tree.kind(relaxed.tree.root()) != sp_kind::leaf) {
    stage_family<M> line(m, line_of(relaxed.tree), false);
    for (sweep const& s : order) {
      double low = s.low;
      if (iteration && best && s.size != best->stages.front().choice.micro_batch) continue;
      if (low < ceiling()) low = std::max(low, line.search(rhythms_of({s.size}), low, ceiling(), coarse, r.statistics, consider(stage_source::line)));
      r.family_bound = std::min(r.family_bound, low);
    }
  }
  if (auto const sets = up_sets(a, static_cast<std::size_t>(o.most_up_sets)); !sets.empty()) {
    auto const rhythms = rhythms_of(o.mixed ? sizes : std::vector<i64>{sizes.front()});
    demand_table demands(rhythms, m.mini_batch());
    stage_prices<M> prices(m, tree.tree(), rhythms);
    every_partition<M> all(a, tree.tree(), prices, demands, sets);
    bool gave_up = false;
    auto decide = [&](double limit) {
      prices.set_limit(limit * (1 + 1e-12));
      ++r.statistics.limits;
      priced_stages p{all.solve(100'000, gave_up), {}};
      std::vector<priced_stages> found;
      if (p.stages.empty()) return found;
      p.cost = cost_of(m, p.stages);
      if (!p.cost.shortage) found.push_back(std::move(p));
      return found;
    };
    double const low = bisect_limit(r.bound, ceiling(), o.tolerance, decide, [&] { return gave_up ? 1e300 : prices.least_rejected(); },
                                    consider(stage_source::every_partition));
    if (!gave_up && o.mixed) {
      r.every_partition = true;
      r.family_bound = low;
      if (low < 1e299) r.bound = std::max(r.bound, low);
    }
  }
  if (!best) {
    r.infeasible = least_shortage(m, relaxed.tree, rhythms_of({sizes.front()}));
    return r;
  }
  write_pipeline(m, std::move(*best), false, r);
  r.family_bound = std::min(r.family_bound, r.cost.bottleneck);
  r.bound = std::min(r.bound, r.cost.bottleneck);
  r.gap = (r.cost.bottleneck - r.bound) / r.cost.bottleneck;
  return r;
}

}  // namespace tensorpar
