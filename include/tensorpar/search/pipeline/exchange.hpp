// tensorpar/search/pipeline/exchange.hpp - operators change stages, one at a time, until the slowest stage is
// faster: annealing
#pragma once
#include <algorithm>
#include <cmath>
#include <tensorpar/core/hash.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/graph/adjacency.hpp>
#include <tensorpar/search/pipeline/stages/engine.hpp>
#include <vector>

namespace tensorpar::search::detail {

/// Stages keep their choice, their devices and their place in a sequence. An operator may move to any stage
/// between those of the operators it reads from and those that read it. So stages stay convex and their
/// quotient acyclic: the partitions reached are those of nested downsets (Tarnawski et al. 2021). No tree and
/// no single line holds all of these. Annealed is the sum of squares of what stages take beyond half of the
/// slowest one. It falls as stages get even and as less crosses borders. Steps are drawn from the seed. A
/// step costs O(tensors of the operator * their consumers), 30 to 100 ns.
template <stage_model M> class stage_exchange {
  graph::adjacency const& a_;
  M const& m_;
  tensor_uses const uses_;
  std::vector<found_stage> stages_;
  struct prices {
    std::vector<double> work;                          // by operator, seconds per sample
    double byte_in, byte_out, tensor_in, tensor_out;   // of a border
  };
  std::vector<prices> price_;     // by stage
  std::vector<int> at_;           // stage of an operator
  std::vector<double> time_;      // by stage
  // what a step changes of them: of `changes_` stages, in the order in which they were met
  std::vector<double> change_;    // by stage
  std::vector<char> met_;         // by stage
  std::vector<int> changed_;
  int changes_ = 0;

  /// Adds what tensor t costs the stages that it crosses, times `sign`.
  void charge(int t, double sign) {
    stage_tensor const& x = uses_.tensor(t);
    int const from = at_[idx(x.producer)];
    bool leaves = false;
    for (std::size_t i = 0; i < x.consumers.size(); ++i) {
      int const to = at_[idx(x.consumers[i])];
      bool seen = to == from;
      for (std::size_t j = 0; j < i && !seen; ++j) seen = at_[idx(x.consumers[j])] == to;
      if (seen) continue;
      leaves = true;
      add(to, sign * (x.bytes * price_[idx(to)].byte_in + price_[idx(to)].tensor_in));
    }
    if (leaves) add(from, sign * (x.bytes * price_[idx(from)].byte_out + price_[idx(from)].tensor_out));
  }
  void add(int stage, double seconds) {
    if (!met_[idx(stage)]) {
      met_[idx(stage)] = 1;
      changed_[idx(changes_++)] = stage;
      change_[idx(stage)] = seconds;
    } else change_[idx(stage)] += seconds;
  }
  void change_nothing() {
    while (changes_ > 0) met_[idx(changed_[idx(--changes_)])] = 0;
  }
  template <class F> void each_change(F const& f) {
    for (int i = 0; i < changes_; ++i) f(time_[idx(changed_[idx(i)])], change_[idx(changed_[idx(i)])]);
  }
  void take_change() { each_change([](double& time, double change) { time += change; }); }
  /// Moves v and leaves in change_ what that costs each stage.
  void move(int v, int to) {
    change_nothing();
    int const from = at_[idx(v)];
    for (int t : uses_.made(v)) charge(t, -1);
    for (int t : uses_.read(v)) charge(t, -1);
    at_[idx(v)] = to;
    for (int t : uses_.made(v)) charge(t, 1);
    for (int t : uses_.read(v)) charge(t, 1);
    add(from, -price_[idx(from)].work[idx(v)]);
    add(to, price_[idx(to)].work[idx(v)]);
  }
  std::size_t slowest() const { return idx(std::max_element(time_.begin(), time_.end()) - time_.begin()); }

 public:
  /// `stages`: a partition whose quotient is acyclic, in a topological order of it.
  stage_exchange(graph::adjacency const& a, M const& m, std::vector<found_stage> stages)
      : a_(a), m_(m), uses_(m.tensors(), m.operators()), stages_(std::move(stages)), at_(idx(m.operators())) {
    std::vector<double> known(idx(m.operators()));
    for (std::size_t s = 0; s < stages_.size(); ++s) {
      found_stage const& x = stages_[s];
      auto per_sample = [&](stage_work const& w) {
        return w.per_sample(x.choice.micro_batch, m.mini_batch());
      };
      auto border = [&](stage_border const& b) { return per_sample(m.transfer(b, x.choice, x.first)); };
      price_.push_back(
          {{}, border({1, 0, 0, 0}), border({0, 1, 0, 0}), border({0, 0, 1, 0}), border({0, 0, 0, 1})});
      std::fill(known.begin(), known.end(), -1);
      for (int v = 0; v < m.operators(); ++v) {
        double& k = known[idx(m.kind(v))];
        if (k < 0) k = per_sample(m.work(v, x.choice, x.first));
        price_.back().work.push_back(k);
      }
      time_.push_back(0);
      for (int v : x.nodes) {
        at_[idx(v)] = static_cast<int>(s);
        time_.back() += price_.back().work[idx(v)];
      }
    }
    change_.resize(stages_.size());
    met_.resize(stages_.size());
    changed_.resize(stages_.size());
    for (int t = 0; t < uses_.count(); ++t) charge(t, 1);
    take_change();
  }

  /// So many steps; the partition with the fastest slowest stage that was met, stages in their sequence,
  /// without those that lost all operators. Memory is not looked at.
  /// `cold`: the last step's heat, of the first one's; greater ones suit few large operators, smaller ones
  /// many.
  std::vector<found_stage> run(int steps, u64 seed, double cold = 0.2) {
    int const stages = static_cast<int>(stages_.size()), operators = m_.operators();
    std::vector<int> best = at_;
    std::size_t slow = slowest();
    double least = time_[slow], aim = least / 2;
    auto over = [&](double t) { return t > aim ? (t - aim) * (t - aim) : 0; };
    double largest = 0;  // operator
    for (int v = 0; v < operators; ++v)
      largest = std::max(largest, price_[idx(at_[idx(v)])].work[idx(v)]);
    double const hot = 0.02 * least * least + 0.1 * largest * largest;
    double heat = hot;
    for (int i = 0; i < steps && stages > 1; ++i) {
      if (i % 256 == 0) heat = hot * std::pow(cold, static_cast<double>(i) / steps);
      u64 const draw = core::mix(seed + static_cast<u64>(i));
      auto const below = [](u64 number, int n) {         // of 32 bits, which are quicker to divide
        return static_cast<int>(static_cast<unsigned>(number) % static_cast<unsigned>(n));
      };
      int const v = below(draw, operators), from = at_[idx(v)];
      int low = 0, high = stages - 1;
      for (int u : a_.predecessors(v)) low = std::max(low, at_[idx(u)]);
      for (int u : a_.successors(v)) high = std::min(high, at_[idx(u)]);
      if (low == high) continue;
      int to = low + below(draw >> 32, high - low);
      if (to >= from) ++to;
      move(v, to);
      double delta = 0;
      each_change([&](double time, double change) { delta += over(time + change) - over(time); });
      if (delta > 0 && static_cast<double>(core::mix(draw) >> 11) * 0x1p-53 >= std::exp(-delta / heat)) {
        at_[idx(v)] = from;
        continue;
      }
      take_change();
      double const bar = least * (1 - 1e-9);
      if (time_[slow] >= bar || time_[slow = slowest()] >= bar) continue;
      least = time_[slow];
      aim = least / 2;
      best = at_;
    }
    std::vector<found_stage> r = stages_;
    for (found_stage& s : r) s.nodes.clear();
    for (int v = 0; v < operators; ++v) r[idx(best[idx(v)])].nodes.push_back(v);
    std::erase_if(r, [](found_stage const& s) { return s.nodes.empty(); });
    return r;
  }
};

/// As many stages as devices, one device each, a line cut into equal counts: where exchanges begin if nothing
/// better is known.
template <stage_model M>
std::vector<found_stage> one_device_each(M const& m, std::vector<int> const& line, stage_choice c) {
  std::vector<found_stage> r;
  int const n = m.devices();
  for (int s = 0; s < n; ++s) {
    auto const cut = [&](int i) { return line.begin() + static_cast<i64>(i) * m.operators() / n; };
    r.push_back({std::vector<int>(cut(s), cut(s + 1)), c, s});
    std::sort(r.back().nodes.begin(), r.back().nodes.end());
  }
  return r;
}

}  // namespace tensorpar::search::detail
