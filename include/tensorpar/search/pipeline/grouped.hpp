// tensorpar/search/pipeline/grouped.hpp - partitioning groups of operators instead of operators, and what
// that may lose
#pragma once
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/pipeline/stages.hpp>

namespace tensorpar::search {

/// A stage model of groups of operators: group i is one operator, its work the sum. Models `stage_model`.
template <stage_model M> class grouped_stages {
  M const* m_;
  std::vector<std::vector<int>> members_, before_;
  std::vector<stage_tensor> tensors_;
  std::vector<int> kind_, group_of_;
  std::vector<std::vector<int>> sharers_;

 public:
  /// `group_of` numbers every operator's group, 0 to the greatest number, none empty. Keeps a reference to
  /// the model.
  /// Throws `error` if sizes differ, a number is left out, or groups wait for each other.
  template <graph::topology G>
  grouped_stages(G const& graph, M const& m, std::vector<int> const& group_of) : m_(&m), group_of_(group_of) {
    graph::adjacency const& a = graph::detail::as_adjacency(graph);
    if (static_cast<int>(group_of.size()) != m.operators() || a.node_count() != m.operators())
      throw error("groups of " + std::to_string(group_of.size()) + " operators", "grouped_stages",
                  std::to_string(m.operators()) + " numbers");
    int count = 0;
    for (int g : group_of) {
      if (g < 0 || g >= m.operators())
        throw error("group " + std::to_string(g), "grouped_stages", "numbers from 0");
      count = std::max(count, g + 1);
    }
    members_.resize(idx(count));
    before_.resize(members_.size());
    for (int v = 0; v < m.operators(); ++v)
      members_[idx(group_of[idx(v)])].push_back(v);
    std::map<std::vector<int>, int> kinds;
    for (int g = 0; g < count; ++g) {
      auto const& all = members_[idx(g)];
      if (all.empty())
        throw error("group " + std::to_string(g) + " is empty", "grouped_stages", "at least one operator");
      std::vector<int> key;
      for (int v : all) {
        key.push_back(m.kind(v));
        for (int u : a.predecessors(v))
          if (int const from = group_of[idx(u)]; from != g)
            before_[idx(g)].push_back(from);
      }
      std::sort(key.begin(), key.end());
      kind_.push_back(kinds.try_emplace(std::move(key), g).first->second);
    }
    if (auto const cycle = graph::find_cycle(before_); !cycle.empty())
      throw error("group " + std::to_string(cycle.front()) + " waits for itself", "grouped_stages",
                  "groups whose quotient is acyclic");
    for (stage_tensor const& t : m.tensors()) {
      stage_tensor x{group_of[idx(t.producer)], t.bytes, {}};
      for (int v : t.consumers)
        if (int const g = group_of[idx(v)]; g != x.producer) x.consumers.push_back(g);
      std::sort(x.consumers.begin(), x.consumers.end());
      x.consumers.erase(std::unique(x.consumers.begin(), x.consumers.end()), x.consumers.end());
      if (!x.consumers.empty()) tensors_.push_back(std::move(x));
    }
    for (auto const& all : detail::sharers_of(m)) {
      std::vector<int> x;
      for (int v : all) x.push_back(group_of[idx(v)]);
      std::sort(x.begin(), x.end());
      x.erase(std::unique(x.begin(), x.end()), x.end());
      if (x.size() > 1) sharers_.push_back(std::move(x));
    }
  }
  /// The groups as a graph.
  std::vector<std::vector<int>> const& graph() const { return before_; }
  std::vector<int> const& members(int group) const { return members_[idx(group)]; }

  int operators() const { return static_cast<int>(members_.size()); }
  int devices() const { return m_->devices(); }
  std::vector<stage_tensor> const& tensors() const { return tensors_; }
  std::vector<stage_choice> degrees() const { return m_->degrees(); }
  bool admits(stage_choice const& c) const { return m_->admits(c); }
  int kind(int g) const { return kind_[idx(g)]; }
  stage_work work(int g, stage_choice const& c, int first) const {
    stage_work w;
    for (int v : members(g)) w += m_->work(v, c, first);
    return w;
  }
  stage_work transfer(stage_border const& b, stage_choice const& c, int first) const {
    return m_->transfer(b, c, first);
  }
  bool uniform() const { return m_->uniform(); }
  double capacity(int first, int n) const { return m_->capacity(first, n); }
  i64 mini_batch() const { return m_->mini_batch(); }
  i64 own_batch() const { return m_->own_batch(); }
  std::vector<std::vector<int>> const& sharers() const { return sharers_; }
  stage_sharing sharing(std::vector<int> const& of, std::vector<stage_place> const& places) const {
    std::vector<int> each;
    for (int g : group_of_) each.push_back(of[idx(g)]);
    return detail::sharing_of(*m_, each, places);
  }
};

/// Groups: operators in a row, each the only one before and after its neighbour, joined while together they
/// take at most `share` of the bottleneck's bound on the choice that is fastest for one operator. share 0:
/// every operator alone. O(operators * choices).
template <graph::topology G, stage_model M>
std::vector<int> light_chains(G const& graph, M const& m, double share) {
  graph::adjacency const& a = graph::detail::as_adjacency(graph);
  std::vector<detail::stage_batching> batchings;
  for (i64 b : detail::usual_micro_batches(m.own_batch(), m.mini_batch())) batchings.push_back({b, 1});
  double const most = share * detail::bottleneck_bound(m, batchings);
  stage_choice c;
  c.micro_batch = batchings.back().micro_batch;
  std::vector<int> r(idx(m.operators()), -1);
  std::vector<double> weight;
  for (int v : graph::topological_order(a)) {
    double const w = m.work(v, c, 0).per_sample(c.micro_batch, m.mini_batch());
    auto const before = a.predecessors(v);
    int& mine = r[idx(v)];
    if (before.size() == 1 && a.successors(before[0]).size() == 1) {
      int const g = r[idx(before[0])];
      if (weight[idx(g)] + w <= most) {
        weight[idx(g)] += w;
        mine = g;
        continue;
      }
    }
    mine = static_cast<int>(weight.size());
    weight.push_back(w);
  }
  return r;
}

/// `find_stages` over groups, answered in operators. `bound` and `gap` are those of the ungrouped operators,
/// so the gap includes all that grouping may have lost; `family_bound` and `every_partition` speak of
/// partitions of groups. Throws as `grouped_stages` and `find_stages` do.
template <graph::topology G, stage_model M>
stage_result find_stages_grouped(G const& graph, M const& m, std::vector<int> const& group_of,
                                 stage_options const& o = {}) {
  grouped_stages<M> const coarse(graph, m, group_of);
  stage_result r = find_stages(coarse.graph(), coarse, o);
  for (pipeline_stage& s : r.pipeline.stages) {
    std::vector<int> nodes;
    for (int g : s.nodes) nodes.insert(nodes.end(), coarse.members(g).begin(), coarse.members(g).end());
    std::sort(nodes.begin(), nodes.end());
    s.nodes = std::move(nodes);
  }
  std::vector<detail::stage_batching> batchings;
  for (i64 b :
       o.micro_batches.empty() ? detail::usual_micro_batches(m.own_batch(), m.mini_batch()) : o.micro_batches)
    for (int k : o.ks) batchings.push_back({b, k});
  r.bound = detail::bottleneck_bound(m, batchings);
  if (r.feasible()) r.gap = (r.cost.bottleneck - r.bound) / r.cost.bottleneck;
  return r;
}

}  // namespace tensorpar::search
