// tensorpar/search/pipeline/shared_weights.hpp - weights that several stages read: their way to those, and
// what joins their gradients
#pragma once
#include <algorithm>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/cost/concepts.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/ir/iteration_space.hpp>
#include <tensorpar/ir/reshard.hpp>
#include <tensorpar/op/kinds/pointwise.hpp>
#include <tensorpar/search/pipeline/stages/stage_model.hpp>
#include <utility>
#include <vector>

namespace tensorpar::search::detail {

/// The parameters of a training step that several forward operators read, where these are in different
/// stages. A pipeline's program (program/passes/pipeline_pass.hpp) keeps such a parameter in the layout of
/// the operator that reads it first. Once a step it goes from there to every stage that reads it, for all its
/// micro-batches. After all passes each stage's sum of gradients goes to where it lives.
class shared_weights {
  struct weight {
    int value = 0, home = 0, operand = 0;      // lives as this operand of forward operator `home`
    std::vector<std::pair<int, int>> reads;    // (node, operand) of both passes, in their order
  };
  std::vector<weight> weights_;
  std::vector<std::vector<int>> readers_;

  struct summand {
    ir::layout where;
    int stage;
    bool joined;  // it is there after all passes only
  };

  /// One pricing: reshards that were asked for, and what each stage's come to.
  template <class Spread, class Several, class Seconds> struct pricing {
    training_graph const& t;
    std::vector<int> const& of;
    i64 scalar_bytes;
    Spread const& sharding_of;
    Several const& several;
    Seconds const& seconds;
    stage_sharing r;

    graph_node const& node(int u) const { return t.graph.node(u); }
    int stage(int u) const { return of[idx(node(u).origin)]; }
    ir::layout operand(int u, int k) const {
      return ir::operand_layout(ir::space_of(t.graph, u), node(u).letters, sharding_of(node(u).origin), k);
    }
    double bytes(ir::layout const& l, int x) const {
      return cost::part_bytes(l, t.graph.type(x), scalar_bytes);
    }
    double way(ir::layout const& from, ir::layout const& to, int x) const {
      double sum = 0;
      for (ir::reshard_step const& s : ir::reshard(from, to, t.graph.type(x)))
        sum += seconds(s, t.graph.type(x));
      return sum;
    }

    /// From its home to the stages that read it; what lies in a stage's layout already is not moved again.
    void sharding_out(weight const& w) {
      int const home = stage(w.home);
      std::vector<std::pair<int, ir::layout>> have;
      for (auto const& [u, k] : w.reads) {
        int const s = stage(u);
        ir::layout l = operand(u, k);
        if (s == home || std::find(have.begin(), have.end(), std::pair(s, l)) != have.end()) continue;
        ir::layout from = operand(w.home, w.operand);
        for (auto const& [where, x] : have)
          if (where == s) from = x;
        std::size_t const at = idx(s);
        r.from[at] = home;
        r.wait[at] += way(from, l, w.value);
        r.bytes[at] += bytes(l, w.value);
        have.emplace_back(s, std::move(l));
      }
    }
    /// What several operators of a stage give to the gradient is kept until the last of them gives its share,
    /// and then the sum besides.
    void add_up_inside(weight const& w, std::vector<int> const& readers) {
      std::vector<int> count(r.after.size(), 0);
      for (int v : readers) ++count[idx(of[idx(v)])];
      for (std::size_t s = 0; s < count.size(); ++s) {
        if (count[s] < 2) continue;
        auto const here = [&](auto const& read) { return stage(read.first) == static_cast<int>(s); };
        auto const [u, k] = *std::find_if(w.reads.begin(), w.reads.end(), here);
        r.after[s] += (count[s] + (several(static_cast<int>(s)) ? 1 : 0)) * bytes(operand(u, k), w.value);
      }
    }
    /// Where the sum of gradients x lies, additions of several stages' sums priced.
    summand sum_of(int x, weight const& w) {
      int const v = t.graph.value(x).producer;
      graph_node const& n = node(v);
      int const s = stage(v);
      if (!n.op.is<add>() || n.in.size() != 2) {
        ir::layout l =
            ir::result_layout(ir::space_of(t.graph, v), n.letters, sharding_of(n.origin),
                              t.graph.value(x).slot);
        if (s != stage(w.home)) r.bytes[idx(s)] += bytes(l, x);
        return {std::move(l), s, false};
      }
      summand const a = sum_of(n.in[0], w), b = sum_of(n.in[1], w);
      bool const joined = a.joined || b.joined || a.stage != s || b.stage != s;
      if (a.where == b.where) return {a.where, a.stage, joined};
      std::size_t const at = idx(s);
      for (int k : {0, 1}) {
        summand const& y = k == 0 ? a : b;
        ir::layout const l = operand(v, k);
        if (!joined || y.stage == s) continue;  // inside of a stage: its own synchronisation
        r.join[at] += way(y.where, l, x);
        r.after[at] += bytes(l, x);
      }
      return {ir::result_layout(ir::space_of(t.graph, v), n.letters, sharding_of(n.origin), 0), s, joined};
    }
  };

 public:
  explicit shared_weights(training_graph const& t) {
    std::map<int, weight> all;
    std::map<int, std::vector<int>> readers;
    for (int u = 0; u < t.graph.node_count(); ++u) {
      graph_node const& n = t.graph.node(u);
      if (n.phase == step_phase::update) continue;
      for (std::size_t k = 0; k < n.in.size(); ++k) {
        int const x = n.in[k];
        if (t.graph.value(x).role != value_role::parameter || t.home[idx(x)] < 0)
          continue;
        weight& w = all[x];
        if (u < t.forward_nodes) readers[x].push_back(u);
        if (w.reads.empty()) {
          w.value = x;
          w.home = u;
          w.operand = static_cast<int>(k);
        }
        w.reads.emplace_back(u, static_cast<int>(k));
      }
    }
    for (auto& [x, w] : all) {
      std::vector<int>& who = readers[x];
      who.erase(std::unique(who.begin(), who.end()), who.end());
      if (who.size() < 2) continue;
      weights_.push_back(std::move(w));
      readers_.push_back(std::move(who));
    }
  }
  /// By weight, the forward operators that read it, ascending.
  std::vector<std::vector<int>> const& readers() const { return readers_; }

  /// Operator v runs in stage of[v], sharding as `sharding_of(v)`; `several(s)`: has it several
  /// micro-batches; `seconds(step, shape)`: of a reshard. `t`: as it was constructed with. O(readers of
  /// shared weights) reshards.
  template <class Spread, class Several, class Seconds>
  stage_sharing price(training_graph const& t, std::vector<int> const& of, int stages, i64 scalar_bytes,
                      Spread const& sharding_of, Several const& several, Seconds const& seconds) const {
    std::size_t const n = idx(stages);
    std::vector<double> const none(n, 0);
    pricing<Spread, Several, Seconds> p{t,
                                        of,
                                        scalar_bytes,
                                        sharding_of,
                                        several,
                                        seconds,
                                        {std::vector<int>(n, -1), none, none, none, none}};
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      weight const& w = weights_[i];
      bool const apart = std::any_of(readers_[i].begin(), readers_[i].end(), [&](int v) {
        return of[idx(v)] != of[idx(w.home)];
      });
      p.add_up_inside(w, readers_[i]);
      if (!apart) continue;
      p.sharding_out(w);
      if (int const x = t.gradient[idx(w.value)]; x >= 0) p.sum_of(x, w);
    }
    return std::move(p.r);
  }
};

}  // namespace tensorpar::search::detail
