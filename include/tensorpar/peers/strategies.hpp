// tensorpar/peers/strategies.hpp - strategies that people and other planners use, under this cost model: what
// a search has to beat
#pragma once
#include <random>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/op/attention/packed.hpp>
#include <tensorpar/search/degrees/kept_choices.hpp>
#include <tensorpar/search/intra/optimize.hpp>

namespace tensorpar::peers {

struct strategy_options {
  int mcmc_steps = 100'000;               // proposals of the random walk; 0: no walk
  u64 seed = 1;
  // of the data-parallel step's seconds: what is that much worse is taken once in e times
  double mcmc_temperature = 0.002;
};

/// Data parallelism whose copies share updates (ZeRO-2; Rajbhandari et al. 2020, section 5) or keep a part of
/// the weights each (ZeRO-3). Where a weight cannot be shared so, it is shared less. With one micro-batch
/// ZeRO-1 is the same plan as ZeRO-2: gradients go at once.
inline search::assignment zero(search::mapping_problem const& p, std::string const& batch,
                               ir::zero_stage level) {
  search::assignment a = search::data_parallel(p, batch);
  for (int v = 0; v < p.operators(); ++v) {
    ir::sharding const& s = p.choices(v).shardings[idx(a[idx(v)])];
    for (int k = static_cast<int>(level); k > 0; --k)
      if (int const i = search::find_choice(p, v, s, {static_cast<ir::zero_stage>(k), false}); i >= 0) {
        a[idx(v)] = i;
        break;
      }
  }
  return a;
}

/// Samples over `data` groups of `tensor` neighbouring devices each; in a group every operator splits one
/// other loop, or does the same on all; which one is chosen by cost. (Narayanan et al. 2021 without
/// pipelines; Megatron's pairs of linear operators and heads of attention are among these, and so is its
/// sequence parallelism.) Nothing where an operator cannot be sharded so.
inline std::optional<search::assignment> uniform_mesh(search::mapping_problem const& p,
                                                      std::string const& batch, i64 data, i64 tensor,
                                                      search::elimination_limits const& limits = {}) {
  std::vector<char> const of = search::batch_by_set(p, batch);
  return search::min_among(p, [&](int set, int i) {
    search::choice_set const& c = p.sets[idx(set)];
    ir::sharding const& s = c.shardings[idx(i)];
    if (s.start != 0 || s.size() != data * tensor || !(c.saving(i) == search::choice_saving{})) return false;
    char const b = of[idx(set)];
    if (!b) return true;
    i64 samples = 1;
    for (ir::mesh_axis const& a : s.axes) if (a.letter == b) samples *= a.degree;
    bool const outermost = samples == 1 || s.axes.front().letter == b;
    return samples == data && outermost;
  }, limits);
}

/// Operators that mostly send are split along their weights, operators that mostly compute along the samples
/// (Mudigere et al. 2022, "Neo"; Unity, 6.3, for DLRM and CANDLE-Uno). An operator mostly sends if its
/// weights have more elements than its operands and results together. Its weights are split over as many
/// devices as possible, along the loop that costs least.
inline std::optional<search::assignment> expert(search::mapping_problem const& p, training_graph const& t,
                                                std::string const& batch,
                                                search::elimination_limits const& limits = {}) {
  std::vector<char> const of = search::batch_by_set(p, batch);
  std::vector<char> heavy(p.sets.size(), 0);
  for (int v = 0; v < p.operators(); ++v) {
    i64 weights = 0, rest = 0;
    for (int x : t.graph.node(v).in)
      (t.graph.value(x).role == value_role::parameter ? weights : rest) += t.graph.type(x).elements();
    for (int x : t.graph.node(v).out) rest += t.graph.type(x).elements();
    heavy[idx(p.set_of[idx(v)])] = weights > rest;
  }
  search::assignment const data = search::data_parallel(p, batch);
  std::vector<int> plain(p.sets.size(), 0);
  for (int v = 0; v < p.operators(); ++v) plain[idx(p.set_of[idx(v)])] = data[idx(v)];
  std::vector<i64> most(p.sets.size(), 0);                          // devices that share the work
  auto const splits = [&](int set, int i) {
    search::choice_set const& c = p.sets[idx(set)];
    ir::sharding const& s = c.shardings[idx(i)];
    return heavy[idx(set)] && s.start == 0 && s.axes.size() == 1 && s.axes[0].letter &&
           s.axes[0].letter != of[idx(set)] && c.saving(i) == search::choice_saving{};
  };
  for (int s = 0; s < static_cast<int>(p.sets.size()); ++s)
    for (int i = 0; i < p.sets[idx(s)].count(); ++i)
      if (splits(s, i))
        most[idx(s)] =
            std::max(most[idx(s)], p.sets[idx(s)].shardings[idx(i)].size());
  return search::min_among(p, [&](int set, int i) {
    i64 const devices = most[idx(set)];
    return devices ? splits(set, i) && p.sets[idx(set)].shardings[idx(i)].size() == devices
                   : i == plain[idx(set)];
  }, limits);
}

/// A random walk from data parallelism (Jia et al. 2019, "FlexFlow", section 6.2: Metropolis-Hastings): one
/// operator gets another choice; what is better is taken, what is worse with a probability that falls with
/// how much. The best one seen; everything in sequence. Deterministic by seed. O(steps * partners of an
/// operator). Precondition: all of `from` starts at device 0.
inline search::assignment random_walk(search::mapping_problem const& p, search::assignment const& from,
                              strategy_options const& o = {}) {
  std::vector<std::vector<int>> pairs_of(from.size()), choices(p.sets.size());
  for (std::size_t k = 0; k < p.pairs.size(); ++k)
    for (int v : {p.pairs[k].first, p.pairs[k].second})
      pairs_of[idx(v)].push_back(static_cast<int>(k));
  for (std::size_t s = 0; s < p.sets.size(); ++s)
    for (int i = 0; i < p.sets[s].count(); ++i)
      if (p.sets[s].shardings[idx(i)].start == 0) choices[s].push_back(i);
  std::mt19937_64 draw(o.seed);
  search::assignment now = from, best = from;
  auto const around = [&](std::size_t v) {             // all that depends on v's choice
    double t = p.choices(static_cast<int>(v)).seconds[idx(now[v])];
    for (int k : pairs_of[v]) {
      search::operator_pair const& q = p.pairs[idx(k)];
      t += p.seconds(q, now[idx(q.first)], now[idx(q.second)]);
    }
    return t;
  };
  double const scale = o.mcmc_temperature * search::evaluator(p).seconds(from);
  double above = 0, least = 0;                         // seconds more than at the start
  for (int k = 0; k < o.mcmc_steps; ++k) {
    auto const v = idx(draw() % now.size());
    std::vector<int> const& some = choices[idx(p.set_of[v])];
    int const before = now[v];
    double const old = around(v);
    now[v] = some[idx(draw() % some.size())];
    double const change = around(v) - old, coin = static_cast<double>(draw() >> 11) * 0x1p-53;
    if (change <= 0 || coin < std::exp(-change / scale)) above += change;
    else now[v] = before;
    if (above < least - scale * 1e-9) { least = above; best = now; }
  }
  return best;
}

/// All of the above that a graph and a machine allow, priced like the search's own plans: seconds by its
/// objective, bytes by arenas. "Megatron" only for graphs with attention, in groups within a node. The same
/// options as for `optimize`. Deterministic.
template <cost::cost_model M>
std::vector<search::baseline> strategies(computation_graph const& forward, machine const& on, M const& model,
                                 search::search_options const& o = {}, strategy_options const& more = {}) {
  training_options to;
  to.loss = o.loss;
  to.optimizer = o.optimizer;
  to.micro_batches = o.micro_batches;
  to.reduction = o.reduction;
  training_graph const t = differentiate(forward, to);
  search::detail::require_listable(t, o.micro_batches, o.max_listed);
  search::choice_book<M> book(on, model,
                              search::objective_options{on.size(), o.scalar_bytes, o.micro_batches});
  search::detail::saving_builder<M> build(t, book, std::vector<char>(idx(t.forward_nodes), 0), o.order);
  search::sharding_limits limits = search::space_for(on, o).shardings;
  limits.max_axes = 2;
  search::mapping_problem const two_axes = build.make(limits);
  limits.max_axes = 1;
  limits.min_part = on.size();                                     // some leave devices idle
  limits.max_divisors = 0;
  search::mapping_problem const one_axis = build.make(limits);
  std::string const batch = search::batch_loops(t.graph, t.forward_nodes);
  plan like;
  like.cluster = on;
  like.optimizer = o.optimizer;
  like.micro_batches = o.micro_batches;
  like.reduction = t.reduction;
  like.scalar_bytes = o.scalar_bytes;
  search::arena_sizes arenas(t, like, require_scratch(o.scratch, o.scalar_bytes, "strategies").rule);
  std::vector<search::baseline> r;
  auto const put = [&](std::string name, search::mapping_problem const& p,
                       std::optional<search::assignment> const& a) {
    if (!a) return;
    search::baseline b{std::move(name), *a, search::evaluator(p)(*a), search::op_strategies(p, *a)};
    b.cost.bytes = arenas(b.nodes);
    r.push_back(std::move(b));
  };
  put("ZeRO-2", one_axis, zero(one_axis, batch, ir::zero_stage::updates));
  put("ZeRO-3", one_axis, zero(one_axis, batch, ir::zero_stage::weights));
  bool attends = false;
  for (int v = 0; v < t.forward_nodes; ++v) attends = attends || is_attention(t.graph.node(v).op);
  i64 const node = on.links.empty() ? on.size() : on.links.front().group;
  search::evaluator const price(two_axes);
  std::optional<search::assignment> mesh, megatron;
  double min_mesh = infinity, min_megatron = infinity;
  for (i64 k = 1; k <= on.size(); ++k) {
    if (on.size() % k) continue;
    std::optional<search::assignment> const a =
        uniform_mesh(two_axes, batch, on.size() / k, k, o.mapping.elimination);
    if (!a) continue;
    double const s = price.seconds(*a);
    if (s < min_mesh) { min_mesh = s; mesh = a; }
    if (attends && k > 1 && k <= node && s < min_megatron) { min_megatron = s; megatron = a; }
  }
  put("Megatron", two_axes, megatron);
  put("uniform mesh", two_axes, mesh);
  put("expert", one_axis, expert(one_axis, t, batch, o.mapping.elimination));
  if (more.mcmc_steps > 0)
    put("random walk", two_axes, random_walk(two_axes, search::data_parallel(two_axes, batch), more));
  return r;
}
template <class M>
  requires(!cost::cost_model<M>)
cost::cost_model_lack<M> strategies(computation_graph const&, machine const&, M const&,
                              search::search_options const& = {}, strategy_options const& = {});

}  // namespace tensorpar::peers
