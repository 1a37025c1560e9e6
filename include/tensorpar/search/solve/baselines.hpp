// tensorpar/search/solve/baselines.hpp - what people do without a search: one device, data parallelism,
// tensor parallelism
#pragma once
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/search/solve/min_sum.hpp>
#include <tensorpar/search/solve/reduced.hpp>

namespace tensorpar::search {

/// A named assignment with its price under the search's own objective.
struct baseline {
  std::string name;
  assignment choices;
  assignment_cost cost;
  std::vector<op_strategy> nodes;             // the same in a plan's form
};

/// The plan's form of an assignment.
inline std::vector<op_strategy> op_strategies(mapping_problem const& p, assignment const& a) {
  std::vector<op_strategy> r;
  for (int v = 0; v < p.operators(); ++v) {
    int const i = a[idx(v)];
    choice_saving const s = p.choices(v).saving(i);
    r.push_back({p.choices(v).shardings[idx(i)], s.zero, s.recompute});
  }
  return r;
}
/// The choice that is this sharding and saves this, or -1 if the space has it not. O(choices).
inline int find_choice(mapping_problem const& p, int v, ir::sharding const& s,
                       choice_saving const& what = {}) {
  for (int i = 0; i < p.choices(v).count(); ++i)
    if (p.choices(v).shardings[idx(i)] == s && p.choices(v).saving(i) == what) return i;
  return -1;
}
/// The assignment that a plan's choices are, or nothing if one of them is outside the space. O(operators *
/// choices).
inline std::optional<assignment> assignment_of(mapping_problem const& p,
                                               std::vector<op_strategy> const& nodes) {
  if (static_cast<int>(nodes.size()) != p.operators()) return std::nullopt;
  assignment a;
  for (int v = 0; v < p.operators(); ++v) {
    op_strategy const& n = nodes[idx(v)];
    a.push_back(find_choice(p, v, n.sharding, {n.zero, n.recompute}));
    if (a.back() < 0) return std::nullopt;
  }
  return a;
}

/// By operator the loop along which samples run: the first axis of the graph's inputs, followed through every
/// operator; '\0' where none arrives (a parameter-only branch) or where it is summed away before.
inline std::string batch_loops(computation_graph const& g, int operators) {
  std::vector<int> axis(g.values.size(), -1);
  for (std::size_t x = 0; x < g.values.size(); ++x)
    if (g.values[x].role == value_role::input && g.values[x].type.rank > 0) axis[x] = 0;
  std::string r;
  for (int v = 0; v < operators; ++v) {
    ir::iteration_space const s = ir::space_of(g, v);
    ir::node_loop const* batch = nullptr;
    for (ir::node_loop const& l : s.loops)
      for (std::size_t k = 0; k < g.node(v).in.size() && !batch; ++k)
        if (int const a = axis[idx(g.node(v).in[k])]; a >= 0 && l.in[k] == a) batch = &l;
    r.push_back(batch ? batch->letter : '\0');
    if (batch)
      for (std::size_t k = 0; k < g.node(v).out.size(); ++k)
        axis[idx(g.node(v).out[k])] = batch->out[k];
  }
  return r;
}

/// Every operator on device 0.
inline assignment single_device(mapping_problem const& p) {
  assignment a;
  for (int v = 0; v < p.operators(); ++v) a.push_back(find_choice(p, v, {0, {}}));
  return a;
}

/// Samples split over as many devices as divide every batch loop, everything else the same on all: the
/// largest such number in the space. Operators without a batch loop (or whose batch is summed away) run on
/// all of them alike. At least one device.
inline assignment data_parallel(mapping_problem const& p, std::string const& batch) {
  for (i64 d = p.devices; d > 1; --d) {
    assignment a;
    for (int v = 0; v < p.operators(); ++v) {
      char const c = batch[idx(v)];
      a.push_back(find_choice(p, v, {0, {{c, d, 1}}}));
      if (a.back() < 0) break;
    }
    if (static_cast<int>(a.size()) == p.operators() && a.back() >= 0) return a;
  }
  return single_device(p);
}

/// Every operator split along one loop that is not the samples', or the same on all devices; which one is
/// chosen by cost, so that linear operators alternate between outputs and inputs (Shoeybi et al. 2019,
/// "Megatron-LM"). The best number of devices.
inline assignment tensor_parallel(mapping_problem const& p, std::string const& batch,
                                  elimination_limits const& limits = {}) {
  evaluator const price(p);
  assignment best = single_device(p);
  double least = infinity;
  std::vector<char> batch_of(p.sets.size(), 0);
  for (int v = p.operators() - 1; v >= 0; --v)
    batch_of[idx(p.set_of[idx(v)])] = batch[idx(v)];
  for (i64 d = p.devices; d > 1; --d) {
    auto const keep = [&](int set, int i) {
      ir::sharding const& s = p.sets[idx(set)].shardings[idx(i)];
      return s.start == 0 && s.axes.size() == 1 && s.axes[0].degree == d &&
             (!s.axes[0].letter || s.axes[0].letter != batch_of[idx(set)]);
    };
    bool all = true;
    for (int s = 0; s < static_cast<int>(p.sets.size()) && all; ++s) {
      bool some = false;
      for (int i = 0; i < p.sets[idx(s)].count() && !some; ++i) some = keep(s, i);
      all = some;
    }
    if (!all) continue;
    smaller_problem const q = with_choices(p, keep);
    std::vector<std::vector<double>> seconds;
    for (choice_set const& s : q.problem.sets) seconds.push_back(s.seconds);
    assignment a = q.back(min_sum(q.problem, seconds, limits).choices);
    if (double const t = price.seconds(a); t < least) { least = t; best = std::move(a); }
  }
  return best;
}

/// All three, priced.
inline std::vector<baseline> baselines(mapping_problem const& p, computation_graph const& g) {
  evaluator const price(p);
  std::string const batch = batch_loops(g, p.operators());
  std::vector<baseline> r;
  for (auto& [name, a] :
       {std::pair{"single device", single_device(p)}, std::pair{"data parallel", data_parallel(p, batch)},
        std::pair{"tensor parallel", tensor_parallel(p, batch)}})
    r.push_back({name, a, price(a), op_strategies(p, a)});
  return r;
}

}  // namespace tensorpar::search
