// tensorpar/search/pipeline/nested.hpp - the least bottleneck over sequences of nested downsets, under any
// stage model
#pragma once
#include <array>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/graph/downsets/downsets.hpp>
#include <tensorpar/search/pipeline/answer.hpp>

namespace tensorpar::search::detail {

/// A stage model with one micro-batch size, as a price of downsets. Stages wait for one another in sequence,
/// so the i-th from the end has i micro-batches in flight.
template <stage_model M> class downset_stages {
  M const& m_;
  tensor_uses uses_;
  i64 samples_;
  std::vector<stage_choice> ways_;
  std::vector<std::vector<int>> nets_;
  std::vector<int> net_tensor_;
  std::vector<std::vector<stage_work>> work_;  // by way and operator
  mutable border_counter border_;

 public:
  downset_stages(M const& m, i64 micro_batch)
      : m_(m), uses_(m.tensors(), m.operators()), samples_(micro_batch), border_(uses_) {
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
  stage_choice const& choice(int w) const { return ways_[idx(w)]; }
  int ways() const { return static_cast<int>(ways_.size()); }
  graph::stage_way way(int w) const { return {choice(w).devices(), 1, w, 1}; }
  int tables() const { return ways(); }
  double work(int t, int v) const {
    return work_[idx(t)][idx(v)].per_sample(samples_,
                                                                                      m_.mini_batch());
  }
  std::vector<std::vector<int>> const& nets() const { return nets_; }
  graph::net_charge charge(int t, int h) const {
    double const bytes = uses_.tensor(net_tensor_[idx(h)]).bytes;
    auto price = [&](stage_border const& b) {
      return m_.transfer(b, choice(t), 0).per_sample(samples_, m_.mini_batch());
    };
    double const receive = price({bytes, 0, 1, 0}), send = price({0, bytes, 0, 1});
    if (send > receive * (1 + 1e-9))
      throw error("sending is dearer than receiving", "nested downsets", "a stage model in which it is not");
    // who reads a tensor that others read later has received it, and does not send it
    return {receive, send, std::min(send, receive)};
  }
  int measures() const { return 2 * ways(); }
  double measure(int k, int v) const {
    stage_work const& w = work_[idx(k / 2)][idx(v)];
    return k % 2 ? w.kept : w.fixed;
  }
  i64 in_flight(int later) const { return std::min(m_.mini_batch(), samples_ * (later + 1)); }
  std::array<graph::measure_limit, 1> limits(int w, int later, double) const {
    return {{{2 * w, 2 * w + 1, 1, static_cast<double>(in_flight(later)),
              m_.capacity(0, choice(w).devices()) * (1 + 1e-9)}}};
  }
  double seconds(graph::downset_stage const& s, int w, int later) const {
    double bytes = s.sum(2 * w) + s.sum(2 * w + 1) * static_cast<double>(in_flight(later));
    double const room = m_.capacity(0, choice(w).devices());
    if (bytes > room) return infinity;
    border_.clear();
    double scratch = 0;
    s.each([&](int v) {
      border_.add(v);
      scratch = std::max(scratch, work_[idx(w)][idx(v)].scratch);
    });
    bytes += scratch + m_.transfer(border_.value(), choice(w), 0).bytes(in_flight(later));
    return bytes > room ? infinity : s.work + s.boundary;
  }
  int devices() const { return m_.devices(); }
  int copies() const { return m_.operators(); }
};

/// Does sending never cost more than receiving, which `min_nested` needs?
template <stage_model M> bool sends_cheaply(M const& m, i64 micro_batch) {
  for (stage_choice c : m.degrees()) {
    c.micro_batch = micro_batch;
    if (!m.admits(c)) continue;
    auto price = [&](stage_border const& b) {
      return m.transfer(b, c, 0).per_sample(micro_batch, m.mini_batch());
    };
    if (price({0, 1, 0, 0}) > price({1, 0, 0, 0}) * (1 + 1e-9) ||
        price({0, 0, 0, 1}) > price({0, 0, 1, 0}) * (1 + 1e-9))
      return false;
  }
  return true;
}

/// The best of these sizes: stages are differences of nested downsets, in sequence, with one micro-batch
/// size. `bar`: no need to look for a bottleneck that is not below it. Precondition: m.uniform(). Throws
/// `error` where the graph has more than `max_downsets` downsets, and where sending a tensor costs a stage
/// more than receiving it.
template <graph::topology G, stage_model M>
std::optional<priced_stages> min_nested(G const& graph, M const& m, std::vector<i64> const& sizes,
                                          int max_downsets, bool by_iteration, bool sequential,
                                          double bar = infinity) {
  std::optional<priced_stages> best;
  for (i64 b : sizes) {
    downset_stages<M> const price(m, b);
    double const least = best ? std::min(bar, best->cost.bottleneck) : bar;
    if (price.ways() == 0 || (!by_iteration && bottleneck_bound(m, {{b, 1}}) >= least)) continue;
    graph::downset_pipeline const found = graph::min_bottleneck(graph, price, max_downsets, 8192,
                                                    by_iteration ? infinity : least);
    if (!found.feasible) continue;
    priced_stages p;
    int first = 0;
    for (graph::downset_part const& s : found.stages) {
      p.stages.push_back({s.nodes, price.choice(s.way), first});
      first += price.choice(s.way).devices();
    }
    p.cost = cost_of(m, p.stages, sequential);
    if (!best || better_stages(by_iteration, p.cost, best->cost)) best = std::move(p);
  }
  return best;
}

/// Has the graph at most so many downsets? Precondition: it is acyclic. O(that many * operators).
template <graph::topology G> bool has_few_downsets(G const& graph, int most) {
  if (most < 1) return false;
  try {
    return graph::downset_lattice(graph, most).count() <= most;
  } catch (error const&) {
    return false;
  }
}

/// Of these sizes the pipeline of nested downsets with the least bottleneck below `bar` that fits, in
/// sequence or as a graph of stages. Nothing where there is none, where devices are of several kinds, or
/// where sending is dearer than receiving. Nothing, too, where the graph has more than `max_downsets`
/// downsets.
template <graph::topology G, stage_model M>
std::optional<priced_stages> nested_below(G const& graph, M const& m, std::vector<i64> const& sizes,
                                          int max_downsets, double bar) {
  if (!m.uniform() || !std::all_of(sizes.begin(), sizes.end(), [&](i64 b) { return sends_cheaply(m, b); }))
    return std::nullopt;
  if (!has_few_downsets(graph, max_downsets)) return std::nullopt;
  auto r = min_nested(graph, m, sizes, max_downsets, false, false, bar);
  return r && !r->cost.shortage ? r : std::nullopt;
}

}  // namespace tensorpar::search::detail
