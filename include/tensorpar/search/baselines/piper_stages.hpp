// tensorpar/search/baselines/piper_stages.hpp - what Piper searches, under any stage model: sequences of nested downsets
#pragma once
#include <optional>
#include <tensorpar/search/baselines/downsets.hpp>
#include <tensorpar/search/baselines/lines.hpp>

namespace tensorpar {

namespace detail {

/// A stage model with one micro-batch size, as a price of downsets. Stages wait for one another in sequence, so the i-th from the end has
/// i micro-batches in flight.
template <stage_model M> class downset_stages {
  M const& m_;
  tensor_uses uses_;
  i64 samples_;
  std::vector<stage_choice> ways_;
  std::vector<std::vector<int>> nets_;
  std::vector<int> net_tensor_;
  std::vector<std::vector<stage_work>> work_;    // by way and operator
  mutable border_counter border_;

 public:
  downset_stages(M const& m, i64 micro_batch) : m_(m), uses_(m.tensors(), m.operators()), samples_(micro_batch), border_(uses_) {
    for (stage_choice c : m.degrees()) {
      c.micro_batch = micro_batch;
      c.k = 1;
      if (!m.admits(c)) continue;
      ways_.push_back(c);
      work_.emplace_back();
      for (int v = 0; v < m.operators(); ++v) work_.back().push_back(m.work(v, c, 0));
    }
    for (int t = 0; t < uses_.count(); ++t) {
      stage_tensor const& x = uses_.tensor(t);
      if (x.consumers.empty()) continue;
      nets_.push_back(x.consumers);
      nets_.back().push_back(x.producer);
      std::sort(nets_.back().begin(), nets_.back().end());
      net_tensor_.push_back(t);
    }
  }
  stage_choice const& choice(int w) const { return ways_[static_cast<std::size_t>(w)]; }
  int ways() const { return static_cast<int>(ways_.size()); }
  stage_way way(int w) const { return {choice(w).devices(), 1, w, 1}; }
  int tables() const { return ways(); }
  double work(int t, int v) const {
    return work_[static_cast<std::size_t>(t)][static_cast<std::size_t>(v)].per_sample(samples_, m_.mini_batch());
  }
  std::vector<std::vector<int>> const& nets() const { return nets_; }
  net_charge charge(int t, int h) const {
    stage_border b;
    b.in = uses_.tensor(net_tensor_[static_cast<std::size_t>(h)]).bytes;
    b.tensors_in = 1;
    double const s = m_.transfer(b, choice(t), 0).per_sample(samples_, m_.mini_batch());
    return {s, s, s};                            // who passes a tensor on has received it: charged once
  }
  int measures() const { return 2 * ways(); }
  double measure(int k, int v) const {
    stage_work const& w = work_[static_cast<std::size_t>(k / 2)][static_cast<std::size_t>(v)];
    return k % 2 ? w.kept : w.fixed;
  }
  double seconds(downset_stage const& s, int w, int later) const {
    i64 const in_flight = std::min(m_.mini_batch(), samples_ * (later + 1));
    double bytes = s.sum(2 * w) + s.sum(2 * w + 1) * static_cast<double>(in_flight);
    double const room = m_.capacity(0, choice(w).devices());
    if (bytes > room) return no_price;
    border_.clear();
    s.each([&](int v) { border_.add(v); });
    bytes += m_.transfer(border_.value(), choice(w), 0).bytes(in_flight);
    return bytes > room ? no_price : s.work + s.boundary;
  }
  int devices() const { return m_.devices(); }
  int copies() const { return m_.operators(); }
};

}  // namespace detail

/// What Piper knows, in this model (Tarnawski et al. 2021): stages are differences of nested downsets, in sequence, with one micro-batch
/// size; all sizes are tried; the least bottleneck, exactly. Stages that neither send to nor read from each other are possible (operators
/// of different branches together), which is why it grows exponentially with the number of branches. Precondition: m.uniform(). Throws
/// `error` where the graph has more than `most_downsets` downsets, and as `find_stages` does.
template <topology G, stage_model M>
stage_result piper_stages(G const& graph, M const& m, stage_options const& o = {}, int most_downsets = 400'000) {
  using namespace detail;
  if (tensorpar::node_count(graph) != m.operators())
    throw error("graph and model differ in size", "piper_stages", "one operator for each node");
  if (!m.uniform()) throw error("devices of several kinds", "piper_stages", "a uniform model");
  stage_result r;
  r.source = stage_source::every_partition;
  std::optional<priced_stages> best;
  std::vector<stage_rhythm> all;
  std::vector<i64> const sizes = sizes_to_try(m, o, "piper_stages");
  for (i64 b : sizes) {
    downset_stages<M> const price(m, b);
    if (price.ways() == 0) continue;
    all.push_back({b, 1});
    if (best && bottleneck_bound(m, {{b, 1}}) >= best->cost.bottleneck) continue;
    downset_pipeline const found = least_bottleneck(graph, price, most_downsets);
    if (!found.feasible) continue;
    priced_stages p;
    int first = 0;
    for (downset_part const& s : found.stages) {
      p.stages.push_back({s.nodes, price.choice(s.way), first});
      first += price.choice(s.way).devices();
    }
    p.cost = cost_of(m, p.stages, true);
    if (!best || better_stages(o.objective == stage_objective::iteration, p.cost, best->cost)) best = std::move(p);
  }
  if (all.empty())
    throw error("the model admits no micro-batch size on any number of devices", "piper_stages", "a size that some degree divides");
  r.bound = bottleneck_bound(m, all);
  if (!best) {
    r.infeasible = least_shortage(m, line_of(stage_relaxation(as_adjacency(graph), m, sizes.back()).tree), {all.front()});
    return r;
  }
  write_pipeline(m, std::move(*best), true, r);
  r.gap = (r.cost.bottleneck - r.bound) / r.cost.bottleneck;
  return r;
}

}  // namespace tensorpar
