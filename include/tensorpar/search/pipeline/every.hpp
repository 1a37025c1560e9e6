// tensorpar/search/pipeline/every.hpp - every convex partition of a small graph, by its up-sets
#pragma once
#include <algorithm>
#include <bit>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/adjacency.hpp>
#include <tensorpar/search/pipeline/stages/partial_pipelines.hpp>
#include <tensorpar/search/pipeline/stages/prices.hpp>
#include <vector>

namespace tensorpar::search::detail {

/// The up-sets of a graph (sets that hold the successors of their members) as bits, by size; empty if there
/// are more than `most` of them or more than 62 nodes. O(up-sets * nodes).
inline std::vector<u64> up_sets(graph::adjacency const& a, std::size_t most) {
  int const n = a.node_count();
  if (n > 62) return {};
  std::vector<u64> after(idx(n), 0), now{0}, all{0};
  for (int v = 0; v < n; ++v)
    for (int w : a.successors(v)) after[idx(v)] |= u64{1} << w;
  for (int size = 0; size < n; ++size) {
    std::vector<u64> next;
    for (u64 u : now)
      for (int v = 0; v < n; ++v)
        if (!(u >> v & 1) && (after[idx(v)] & ~u) == 0) next.push_back(u | u64{1} << v);
    std::sort(next.begin(), next.end());
    next.erase(std::unique(next.begin(), next.end()), next.end());
    all.insert(all.end(), next.begin(), next.end());
    if (all.size() > most) return {};
    now = std::move(next);
  }
  return all;
}

/// Some up-sets: the ends of these topological orders, and unions and intersections of those found, in that
/// order, at most `most` of them. Empty for more than 62 nodes. O(most^2).
inline std::vector<u64> some_up_sets(std::vector<std::vector<int>> const& orders, std::size_t most) {
  std::vector<u64> r{0};
  if (orders.front().size() > 62) return {};
  auto put = [&](u64 x) {
    if (r.size() < most && std::find(r.begin(), r.end(), x) == r.end()) r.push_back(x);
  };
  for (auto const& o : orders) {
    u64 x = 0;
    for (std::size_t i = o.size(); i-- > 0;) put(x |= u64{1} << o[i]);
  }
  u64 whole = 0;
  for (int v : orders.front()) whole |= u64{1} << v;
  put(whole);
  for (std::size_t i = 1; i < r.size() && r.size() < most; ++i)
    for (std::size_t j = 1; j < i && r.size() < most; ++j) {
      put(r[i] & r[j]);
      put(r[i] | r[j]);
    }
  std::sort(r.begin(), r.end(), [](u64 x, u64 y) {
    int const p = std::popcount(x), q = std::popcount(y);
    return p != q ? p < q : x < y;
  });
  return r;
}

/// Partitions of a graph into the differences of nested up-sets. These are all partitions into convex stages
/// whose quotient is acyclic (Piper's space: Tarnawski et al. 2021, section 4). Here every operator remembers
/// what its own successors ask for, so samples in flight are those of the graph of stages. Exact in devices,
/// sizes, degrees and memory; exponential. O(up-sets^2 * partial pipelines) per limit.
template <stage_model M> class every_partition {
  struct label {
    int devices = 0, prev = -1, choice = -1;
    double area = 0;
    u64 stage = 0;
    std::vector<int> needs;  // by operator that feeds the up-set, ascending
  };
  graph::adjacency const& graph_;
  stage_tree const& tree_;
  stage_prices<M>& prices_;
  in_flight_needs& needs_;
  std::vector<u64> const& sets_;
  std::vector<int> place_;
  struct shape_of_stage {
    std::vector<leaf_interval> intervals;
    stage_border border;
  };
  std::map<u64, shape_of_stage> shapes_;

  std::vector<int> feeding(u64 set) const {
    std::vector<int> r;
    for (int v = 0; v < graph_.node_count(); ++v) {
      if (set >> v & 1) continue;
      for (int w : graph_.successors(v))
        if (set >> w & 1) {
          r.push_back(v);
          break;
        }
    }
    return r;
  }
  static std::vector<int> members(u64 set) {
    std::vector<int> r;
    for (int v = 0; v < 63; ++v)
      if (set >> v & 1) r.push_back(v);
    return r;
  }
  shape_of_stage const& shape_for(u64 stage) {
    auto const [it, fresh] = shapes_.try_emplace(stage, shape_of_stage{});
    if (fresh) {
      auto const nodes = members(stage);
      for (int v : nodes)
        it->second.intervals.push_back(
            {place_[idx(v)], place_[idx(v)] + 1, 1});
      it->second.border = tree_.border_of(nodes);
    }
    return it->second;
  }

 public:
  /// `sets` from up_sets, or some of them: by size, the empty and the whole set among them. The tree serves
  /// for the order of operators in `prices` only.
  every_partition(graph::adjacency const& graph, stage_tree const& tree, stage_prices<M>& prices,
                  in_flight_needs& needs, std::vector<u64> const& sets)
      : graph_(graph),
        tree_(tree),
        prices_(prices),
        needs_(needs),
        sets_(sets),
        place_(idx(graph.node_count()), 0) {
    for (std::size_t i = 0; i < tree.order().size(); ++i)
      place_[idx(tree.order()[i])] = static_cast<int>(i);
  }

  /// A pipeline within the limit of `prices` on the fewest devices, or none. `gave_up` is set if there were
  /// more than `most` partial pipelines.
  std::vector<found_stage> solve(std::size_t most, bool& gave_up) {
    std::vector<label> pool(1);
    std::vector<std::vector<int>> at(sets_.size());
    at[0].push_back(0);
    int const n = prices_.model().devices(), nothing_follows = needs_.nothing_follows();
    std::vector<std::vector<int>> feeds;
    for (u64 s : sets_) feeds.push_back(feeding(s));
    for (std::size_t a = 0; a < sets_.size(); ++a) {
      for (std::size_t b = a + 1; b < sets_.size(); ++b) {
        if ((sets_[a] & ~sets_[b]) != 0) continue;
        u64 const stage = sets_[b] & ~sets_[a];
        if (stage == 0) continue;
        shape_of_stage const& shape = shape_for(stage);
        for (int id : at[a]) {
          label const from = pool[idx(id)];
          partial_pipeline so_far;
          so_far.devices = from.devices;
          so_far.area = from.area;
          int asked = needs_.none();
          for (std::size_t i = 0; i < feeds[a].size(); ++i)
            if (stage >> feeds[a][i] & 1) asked = needs_.joined(asked, from.needs[i]);
          for (int v : members(stage))
            if (graph_.successors(v).size() == 0) asked = needs_.joined(asked, nothing_follows);
          for (int r = 0; r < static_cast<int>(needs_.batchings().size()); ++r) {
            i64 const own = needs_.of(nothing_follows, r), i = std::max(own, needs_.of(asked, r));
            stage_fit const fit =
                prices_.fit({shape.intervals.data(), static_cast<int>(shape.intervals.size()), &shape.border},
                            r, i, so_far, n - from.devices, n - from.devices);
            if (fit.choice < 0) continue;
            label to{from.devices + fit.devices, id, fit.choice, from.area + fit.area, stage, {}};
            int const after = needs_.after(r, i);
            for (int v : feeds[b]) {
              int d = needs_.none();
              for (std::size_t k = 0; k < feeds[a].size(); ++k)
                if (feeds[a][k] == v) d = from.needs[k];
              for (int w : graph_.successors(v))
                if (stage >> w & 1) {
                  d = needs_.joined(d, after);
                  break;
                }
              to.needs.push_back(d);
            }
            auto as_good = [&](label const& x, label const& y) {
              if (x.devices > y.devices) return false;
              for (std::size_t k = 0; k < x.needs.size(); ++k)
                if (!needs_.within(x.needs[k], y.needs[k])) return false;
              return true;
            };
            bool needless = false;
            for (int o : at[b]) needless = needless || as_good(pool[idx(o)], to);
            if (needless) continue;
            std::erase_if(at[b], [&](int o) { return as_good(to, pool[idx(o)]); });
            at[b].push_back(static_cast<int>(pool.size()));
            pool.push_back(std::move(to));
            if (pool.size() > most) {
              gave_up = true;
              return {};
            }
          }
        }
      }
    }
    std::vector<found_stage> r;
    if (at.back().empty()) return r;
    for (int id = at.back().front(); pool[idx(id)].choice >= 0;
         id = pool[idx(id)].prev) {
      label const& l = pool[idx(id)];
      r.push_back({members(l.stage), prices_.choices()[idx(l.choice)], n - l.devices});
    }
    return r;
  }
};

}  // namespace tensorpar::search::detail
