// tensorpar/search/pipeline/answer.hpp - what partitioning is asked and what it answers; which pipeline is
// best; what is lacking if none fits
#pragma once
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/plan/pipeline.hpp>
#include <tensorpar/search/pipeline/stage_options.hpp>
#include <tensorpar/search/pipeline/stages/engine.hpp>

namespace tensorpar::search {

/// Where the answer comes from.
enum class stage_source : int { tree, line, every_partition, exchange, nested };
constexpr std::string_view name_of(stage_source s) {
  constexpr std::string_view names[] = {"tree", "line", "every partition", "exchange", "nested downsets"};
  return names[idx(s)];
}

struct stage_result {
  // then none was found in the families: what the least short of memory still lacks
  std::optional<stage_shortage> infeasible;
  tensorpar::pipeline pipeline;              // without `order`
  std::vector<stage_choice> choices;         // by stage of the pipeline
  stage_cost cost;                           // likewise
  // no convex partition has a smaller bottleneck (transfers left out), whatever sizes and degrees of the
  // space
  double bound = 0;
  double gap = 0;           // (bottleneck - bound) / bottleneck
  // no partition of tree and lines with one size (of any, if `every_partition`) has a smaller bottleneck;
  // never above the bottleneck, which may come from mixed sizes, nested downsets or annealing: then it proves
  // nothing
  double family_bound = 0;
  stage_source source = stage_source::tree;
  // all convex partitions were considered: family_bound holds for all of them
  bool every_partition = false;
  // dependencies that the tree has and the graph lacks (0: series-parallel)
  int added = 0;
  // critical path in seconds per sample of the graph and of the tree
  double critical_before = 0, critical_after = 0;
  stage_statistics statistics;
  bool feasible() const { return !infeasible; }
};

namespace detail {

inline std::vector<i64> usual_micro_batches(i64 own, i64 mini_batch) {
  std::vector<i64> r;
  for (i64 b = own; b <= mini_batch; b *= 2)
    if (mini_batch % b == 0) r.push_back(b);
  return r;
}

/// Where stages share weights and devices are equal, stages that do change places with others on as many
/// devices while that makes the estimate less: on one node, weights and gradients get to each other sooner.
/// Transfers are priced as if all crossed all links (see `stage_model`), so nothing that was priced gets
/// dearer. O(stages * sharing stages * rounds) estimates.
template <stage_model M>
void bring_together(M const& m, std::vector<found_stage>& stages, bool sequential, stage_cost& cost) {
  if (cost.shared.empty()) return;
  std::vector<char> shares(stages.size(), 0);
  for (std::size_t s = 0; s < stages.size(); ++s)
    if (int const from = cost.shared.from[s]; from >= 0)
      shares[s] = shares[idx(from)] = 1;
  bool moved = true;
  for (int round = 0; moved && round < 4; ++round) {
    moved = false;
    for (std::size_t s = 0; s < stages.size(); ++s)
      for (std::size_t t = 0; t < stages.size(); ++t) {
        if (!shares[s] || s == t || (shares[t] && t < s) ||
            stages[s].choice.devices() != stages[t].choice.devices())
          continue;
        std::swap(stages[s].first, stages[t].first);
        stage_cost c = cost_of(m, stages, sequential);
        if (!c.shortage && c.iteration < cost.iteration * (1 - 1e-9)) {
          cost = std::move(c);
          moved = true;
        } else {
          std::swap(stages[s].first, stages[t].first);
        }
      }
  }
}

/// Stages in topological order, devices assigned.
template <stage_model M> void write_pipeline(M const& m, priced_stages p, bool sequential, stage_result& r) {
  std::vector<found_stage> sorted;
  for (int s : quotient_order(p.cost.next))
    sorted.push_back(std::move(p.stages[idx(s)]));
  if (m.uniform()) {  // largest first: groups of powers of two then straddle no larger power of two
    std::vector<int> by_size;
    for (std::size_t s = 0; s < sorted.size(); ++s) by_size.push_back(static_cast<int>(s));
    std::stable_sort(by_size.begin(), by_size.end(), [&](int a, int b) {
      return sorted[idx(a)].choice.devices() >
             sorted[idx(b)].choice.devices();
    });
    int first = 0;
    for (int s : by_size) {
      sorted[idx(s)].first = first;
      first += sorted[idx(s)].choice.devices();
    }
  }
  r.cost = cost_of(m, sorted, sequential);
  if (m.uniform()) bring_together(m, sorted, sequential, r.cost);
  r.pipeline = {};
  r.choices.clear();
  r.pipeline.mini_batch = m.mini_batch();
  for (found_stage& s : sorted) {
    r.pipeline.groups.push_back({s.first, s.choice.devices()});
    r.pipeline.stages.push_back({std::move(s.nodes), static_cast<int>(r.pipeline.stages.size()),
                                 s.choice.micro_batch, s.choice.k, false, s.choice.recompute,
                                 s.choice.shard_optimizer});
    r.choices.push_back(s.choice);
  }
}

/// Is a better than b? Ties are broken by fewer samples in flight, then the other time, then fewer stages.
inline bool better_stages(bool by_iteration, stage_cost const& a, stage_cost const& b) {
  auto first = [&](stage_cost const& x) { return by_iteration ? x.iteration : x.bottleneck; };
  auto second = [&](stage_cost const& x) { return by_iteration ? x.bottleneck : x.iteration; };
  if (first(a) < first(b) * (1 - 1e-9)) return true;
  if (first(b) < first(a) * (1 - 1e-9)) return false;
  if (a.source_in_flight != b.source_in_flight) return a.source_in_flight < b.source_in_flight;
  if (second(a) < second(b) * (1 - 1e-9)) return true;
  if (second(b) < second(a) * (1 - 1e-9)) return false;
  return a.work.size() < b.work.size();
}

/// The best pipeline so far by an objective, and for `iteration` those that come near it.
class best_stages {
  stage_objective objective_;
  double mini_batch_;
  i64 decision_ = -1;
  std::optional<priced_stages> sized_;  // thesis: the answer of the last limit that had one

 public:
  struct candidate {
    priced_stages pipeline;
    stage_source source;
  };
  static constexpr int most = 8, max_of_size = 4;

 private:
  bool wide_;
  std::map<i64, std::vector<candidate>> of_size_;  // wide: by the largest micro-batch, the least estimates

  static void remember(priced_stages const& p, stage_source from, std::vector<candidate>& list, int at_most) {
    auto const first = std::find_if(list.begin(), list.end(), [&](candidate const& x) {
      return !(x.pipeline.cost.iteration < p.cost.iteration);
    });
    if (first - list.begin() >= at_most) return;
    auto const same = std::find_if(first, list.end(), [&](candidate const& x) {
      stage_cost const& c = x.pipeline.cost;
      return c.iteration > p.cost.iteration || c.bottleneck == p.cost.bottleneck;
    });
    // the same, or as good as
    if (same != list.end() && same->pipeline.cost.iteration == p.cost.iteration) return;
    list.insert(first, {p, from});
    if (static_cast<int>(list.size()) > at_most) list.pop_back();
  }
  void remember(priced_stages const& p, stage_source from) {
    remember(p, from, shortlist, most);
    if (!wide_) return;
    i64 size = 0;
    for (found_stage const& s : p.stages) size = std::max(size, s.choice.micro_batch);
    remember(p, from, of_size_[size], max_of_size);
  }

 public:
  std::optional<priced_stages> best;
  stage_source source = stage_source::tree;
  std::vector<candidate> shortlist;  // iteration: the least estimates, ascending

  /// `wide`: keep candidates of every micro-batch size, for a judge who sees more than estimates do.
  best_stages(stage_objective o, i64 mini_batch, bool wide = false)
      : objective_(o), mini_batch_(static_cast<double>(mini_batch)), wide_(wide) {}
  /// Those of every size join the shortlist, behind it, each once.
  void widen() {
    for (auto& [size, list] : of_size_)
      for (candidate& x : list) {
        stage_cost const& c = x.pipeline.cost;
        bool const known = std::any_of(shortlist.begin(), shortlist.end(), [&](candidate const& y) {
          return y.pipeline.cost.iteration == c.iteration && y.pipeline.cost.bottleneck == c.bottleneck;
        });
        if (!known) shortlist.push_back(std::move(x));
      }
    of_size_.clear();
  }
  bool by_iteration() const { return objective_ != stage_objective::bottleneck; }
  /// No pipeline with a bottleneck of this many seconds per sample or more is better.
  double ceiling() const {
    return !best ? infinity : by_iteration() ? best->cost.iteration / mini_batch_ : best->cost.bottleneck;
  }
  /// Found at the limit with this number. Returns the ceiling for the search that goes on.
  double offer(priced_stages p, stage_source from, i64 decision) {
    if (objective_ == stage_objective::thesis) {
      auto rank = [](stage_cost const& c) { return std::pair(c.source_in_flight, c.iteration); };
      if (decision != decision_ || !sized_ || rank(p.cost) < rank(sized_->cost)) sized_ = std::move(p);
      decision_ = decision;
      return infinity;
    }
    if (objective_ == stage_objective::iteration) remember(p, from);
    if (!best || better_stages(by_iteration(), p.cost, best->cost)) {
      best = std::move(p);
      source = from;
    }
    return ceiling();
  }
  /// The search of one family over one set of sizes is over.
  void close(stage_source from) {
    if (sized_ && (!best || better_stages(true, sized_->cost, best->cost))) {
      best = std::move(sized_);
      source = from;
    }
    sized_.reset();
  }
};

/// All operators in one stage, in every way: no weight is shared then, which no search for the least
/// bottleneck aims at.
template <stage_model M>
void offer_whole(M const& m, std::vector<stage_batching> const& batchings, best_stages& best, i64 decision) {
  std::vector<found_stage> one(1);
  for (int v = 0; v < m.operators(); ++v) one.front().nodes.push_back(v);
  for (stage_batching const& r : batchings)
    for (stage_choice c : m.degrees()) {
      c.micro_batch = r.micro_batch;
      c.k = r.k;
      if (c.devices() > m.devices() || !m.admits(c)) continue;
      one.front().choice = c;
      for (int first = 0; first + c.devices() <= (m.uniform() ? c.devices() : m.devices()); ++first) {
        one.front().first = first;
        if (priced_stages p{one, cost_of(m, one)}; !p.cost.shortage)
          best.offer(std::move(p), stage_source::tree, decision);
      }
    }
}

/// The model with all memories enlarged, from at least one byte.
template <stage_model M> class stages_with_memory {
  M const* m_;
  double times_;

 public:
  stages_with_memory(M const& m, double times) : m_(&m), times_(times) {}
  int operators() const { return m_->operators(); }
  int devices() const { return m_->devices(); }
  std::vector<stage_tensor> const& tensors() const { return m_->tensors(); }
  std::vector<stage_choice> degrees() const { return m_->degrees(); }
  bool admits(stage_choice const& c) const { return m_->admits(c); }
  int kind(int v) const { return m_->kind(v); }
  stage_work work(int v, stage_choice const& c, int first) const { return m_->work(v, c, first); }
  stage_work transfer(stage_border const& b, stage_choice const& c, int first) const {
    return m_->transfer(b, c, first);
  }
  bool uniform() const { return m_->uniform(); }
  double capacity(int first, int n) const { return times_ * std::max(1.0, m_->capacity(first, n)); }
  i64 mini_batch() const { return m_->mini_batch(); }
  i64 own_batch() const { return m_->own_batch(); }
  std::vector<std::vector<int>> const& sharers() const { return sharers_of(*m_); }
  stage_sharing sharing(std::vector<int> const& of, std::vector<stage_place> const& places) const {
    return sharing_of(*m_, of, places);
  }
};

/// What the pipeline that needs the least enlargement of all memories lacks, at the smallest micro-batch.
template <stage_model M>
stage_shortage min_shortage(M const& m, graph::sp_tree const& tree,
                            std::vector<stage_batching> const& smallest) {
  std::optional<stage_shortage> least;
  double low = 1, high = 2;
  auto attempt = [&](double times) {
    stages_with_memory<M> const larger(m, times);
    stage_family<stages_with_memory<M>> family(larger, tree, false);
    stage_statistics count;
    bool found = false;
    family.search(smallest, infinity, infinity, infinity, 1, count, [&](priced_stages p) {
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
  return least ? *least : stage_shortage{0, 0};
}

}  // namespace detail

}  // namespace tensorpar::search
