// tensorpar/search/intra/program_order.hpp - an order of operators in which devices with different work wait
// less for one another
#pragma once
#include <algorithm>
#include <map>
#include <numeric>
#include <tensorpar/core/index.hpp>
#include <tensorpar/program/passes/memory_pass.hpp>
#include <tensorpar/program/training.hpp>
#include <tensorpar/program/unroll.hpp>
#include <tensorpar/simulate/engine.hpp>

namespace tensorpar::search {

namespace detail {

/// A pass over a graph's operators, as a scheduler sees it: what each waits for and how long that is under
/// way, what it takes, and where.
struct operator_pass {
  std::vector<double> seconds;                            // by operator
  // by operator: those that it reads from, and seconds of reshards between
  std::vector<std::map<int, double>> after;
};

/// The operators in the order in which they start if, again and again, the one that can start first does so.
/// Of several that can, the one with the longest way to the end of the pass (list scheduling, Graham 1969).
/// `sorted`: the operators in some valid order of the pass. `places`: by operator the lanes that it holds.
/// Law: every operator stands behind those that it waits for. O(operators * ready ones * lanes).
inline std::vector<int> list_schedule(operator_pass const& pass, std::vector<int> const& sorted,
                                      std::vector<std::vector<int>> const& places, int lanes) {
  std::size_t const n = sorted.size();
  std::vector<double> way(n, 0), there(n, 0), free(idx(lanes), 0);
  std::vector<std::vector<std::pair<int, double>>> users(n);
  std::vector<std::size_t> missing(n);
  for (std::size_t v = 0; v < n; ++v) {
    missing[v] = pass.after[v].size();
    for (auto const& [u, s] : pass.after[v]) users[idx(u)].push_back({static_cast<int>(v), s});
  }
  for (std::size_t i = n; i-- > 0;) {
    std::size_t const v = idx(sorted[i]);
    for (auto const& [u, s] : users[v]) way[v] = std::max(way[v], s + way[idx(u)]);
    way[v] += pass.seconds[v];
  }
  std::vector<int> ready, order;
  for (int v : sorted) if (missing[idx(v)] == 0) ready.push_back(v);
  while (!ready.empty()) {
    std::size_t best = 0;
    double first = 0;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      int const v = ready[i], b = ready[best];
      double start = there[idx(v)];
      for (int l : places[idx(v)]) start = std::max(start, free[idx(l)]);
      if (i == 0 || start < first ||
          (start == first && (way[idx(v)] > way[idx(b)] || (way[idx(v)] == way[idx(b)] && v < b)))) {
        best = i;
        first = start;
      }
    }
    int const v = ready[best];
    ready.erase(ready.begin() + static_cast<std::ptrdiff_t>(best));
    order.push_back(v);
    double const end = first + pass.seconds[idx(v)];
    for (int l : places[idx(v)]) free[idx(l)] = end;
    for (auto const& [u, s] : users[idx(v)]) {
      there[idx(u)] = std::max(there[idx(u)], end + s);
      if (--missing[idx(u)] == 0) ready.push_back(u);
    }
  }
  return order;
}

/// By operator of a plan the lanes that it holds, and how many there are: devices that always work together
/// share one. O(operators * devices).
struct operator_places {
  std::vector<std::vector<int>> lanes;
  int count = 0;
  explicit operator_places(plan const& p) {
    std::map<std::vector<int>, std::vector<int>> sets;     // devices -> lanes
    std::vector<std::map<std::vector<int>, std::vector<int>>::iterator> of;
    for (op_strategy const& n : p.nodes) {
      std::vector<int> d = passes::mesh_layout(n.sharding).devices();
      std::sort(d.begin(), d.end());
      of.push_back(sets.try_emplace(std::move(d)).first);
    }
    std::vector<std::vector<bool>> member(idx(p.cluster.size()));
    for (auto const& [devices, unused] : sets)
      for (int d = 0; d < p.cluster.size(); ++d)
        member[idx(d)].push_back(std::binary_search(devices.begin(), devices.end(), d));
    std::map<std::vector<bool>, int> lane;
    for (std::vector<bool> const& m : member) {
      auto const [at, fresh] = lane.try_emplace(m, count);
      if (!fresh) continue;
      std::size_t k = 0;
      for (auto& [unused, lanes_of] : sets) if (m[k++]) lanes_of.push_back(count);
      ++count;
    }
    for (auto const& at : of) lanes.push_back(at->second);
  }
};

/// What the passes of a step take, by the operators that its nodes come from. `q`: the step's program, and
/// what its tasks take.
struct step_passes {
  operator_pass forward, backward;
  step_passes(training_graph const& t, program const& q, machine const& on,
              simulation::task_prices const& price) {
    std::size_t const n = idx(t.forward_nodes);
    for (operator_pass* p : {&forward, &backward}) {
      p->seconds.assign(n, 0);
      p->after.resize(n);
    }
    auto const origin = [&](int v) { return t.graph.node(v).origin; };
    for (int v = 0; v < t.forward_nodes; ++v)
      for (int x : t.graph.node(v).in)
        if (int const u = t.graph.value(x).producer; u >= 0) {
          forward.after[idx(v)][u];
          backward.after[idx(u)][v];
        }
    for (std::size_t k = 0; k < q.tasks.size(); ++k) {
      task const& x = q.tasks[k];
      step_phase const phase = t.graph.node(x.node).phase;
      int const v = origin(x.node);
      if (v < 0) continue;
      double s = 0;
      for (int d : x.devices) s = std::max(s, price.of(k, on.device[idx(d)]));
      operator_pass& pass = phase == step_phase::forward ? forward : backward;
      if (x.kind == task_kind::compute) { pass.seconds[idx(v)] += s; continue; }
      // nobody waits for the reshards of gradients until the end of the step
      if (phase == step_phase::update) continue;
      int const p =
          t.graph.value(q.buffers[idx((x.in.empty() ? x.out : x.in).front())].value)
              .producer;
      std::map<int, double>& after = pass.after[idx(v)];
      if (auto const at = after.find(p < 0 ? node_id() : origin(p)); at != after.end()) at->second += s;
    }
  }
};

/// Do all operators run on the same devices? Then each waits for the one before it, in whatever order.
inline bool all_together(plan const& p) {
  auto const everywhere = [&](op_strategy const& n) {
    return n.sharding.start == 0 && n.sharding.size() == p.cluster.size();
  };
  if (std::all_of(p.nodes.begin(), p.nodes.end(), everywhere)) return true;
  std::vector<std::vector<int>> const lanes = operator_places(p).lanes;
  return std::all_of(lanes.begin(), lanes.end(), [&](auto const& l) { return l == lanes.front(); });
}

}  // namespace detail

/// An order of a plan's operators, and what the step's program is like in it.
struct program_order {
  std::vector<int> order;                                 // empty: by number
  double seconds = 0, by_number = 0;                      // simulated, in this order and by number
  std::vector<i64> bytes;                                 // arenas in this order, where it is not by number
};

/// The fastest of some greedy orders of the operators, if it is faster than their numbers by more than a
/// share of `min_gain` in the simulated step, and its arenas fit the devices. The orders: forward operators
/// as list scheduling starts them, by what the forward pass takes, by what both passes take, and the backward
/// pass scheduled so and turned round. Nothing is tried where all operators run on the same devices, and
/// where listing all tasks of all devices would take longer than searches do. What the plan says of an order
/// is not regarded. `w`: the scratch space in those arenas. `t`: the step before anything is saved
/// (program/passes/memory_pass.hpp). Precondition: no pipeline. Deterministic. O(unrolling + pricing +
/// simulations + operators * operators that are ready).
template <cost::cost_model M>
program_order greedy_order(training_graph const& t, plan p, M const& model, double min_gain = 0.01,
                           workspace_rule w = no_workspace) {
  require_feasible(p);
  program_order r;
  constexpr std::size_t max_placed = 1 << 17;
  p.node_order.clear();
  if (p.nodes.empty() || p.nodes.size() * p.cluster.device.size() > max_placed || detail::all_together(p))
    return r;
  machine const& on = p.cluster;
  planned_step step = passes::memory_pass(t, p);
  program const first = unroll(step.graph, step.plan, {.lockstep = true});
  simulation::task_prices const price_of_first = simulation::price(first, on, model);
  simulation_options const plain{true, false};
  r.seconds = r.by_number = simulate(first, on, price_of_first, plain).seconds;
  detail::operator_places const places(p);
  detail::step_passes const passes(step.graph, first, on, price_of_first);
  std::vector<int> forth(p.nodes.size());
  std::iota(forth.begin(), forth.end(), 0);
  std::vector<int> const back(forth.rbegin(), forth.rend());
  detail::operator_pass both = passes.forward;
  for (std::size_t v = 0; v < forth.size(); ++v) both.seconds[v] += passes.backward.seconds[v];
  std::vector<std::vector<int>> tries{
      detail::list_schedule(passes.forward, forth, places.lanes, places.count),
      detail::list_schedule(passes.backward, back, places.lanes, places.count),
      detail::list_schedule(both, forth, places.lanes, places.count)};
  std::reverse(tries[1].begin(), tries[1].end());
  for (std::size_t k = 0; k < tries.size(); ++k) {
    if (tries[k] == forth || std::find(tries.begin(), tries.begin() + static_cast<std::ptrdiff_t>(k),
                                       tries[k]) != tries.begin() + static_cast<std::ptrdiff_t>(k))
      continue;
    step.plan.node_order = tries[k];
    program const q = unroll(step.graph, step.plan, {.workspace = w, .lockstep = true});
    bool fits = true;
    for (int d = 0; d < on.size(); ++d)
      fits = fits && q.arena[idx(d)] <= on.kind_of(d).memory;
    if (!fits) continue;
    double const seconds = simulate(q, on, simulation::price(q, on, model), plain).seconds;
    if (seconds >= r.seconds || seconds >= r.by_number * (1 - min_gain)) continue;
    r.seconds = seconds;
    r.order = std::move(tries[k]);
    r.bytes = q.arena;
  }
  return r;
}
template <class M>
  requires(!cost::cost_model<M>)
cost::cost_model_lack<M> greedy_order(training_graph const&, plan, M const&, double = 0.01,
                                workspace_rule = no_workspace);

/// The plan with such an order, if there is one that is faster; it is to be sealed anew then. `forward`: what
/// the plan runs. `scratch`: of the policy whose scratch space the plan counts, if it does.
/// Throws `error` where the plan does not fit the graph, and for a pipeline, whose groups have orders of
/// their own.
template <cost::cost_model M>
plan ordered(computation_graph const& forward, plan p, M const& model, std::string const& loss = "loss",
             scratch_space const& scratch = {}) {
  require_feasible(p);
  if (!p.pipeline.empty())
    throw error("the plan has a pipeline", "ordered", "a plan without: its groups have orders of their own");
  if (p.scratch != scratch.policy)
    throw error("the plan counts the scratch space of " + (p.scratch.empty() ? "no policy" : p.scratch),
                "ordered", "the same scratch space");
  workspace_rule const w = require_scratch(scratch, p.scalar_bytes, "ordered").rule;
  program_order o = greedy_order(differentiate(forward, training_of(p, loss)), p, model, 0.01, w);
  p.node_order = std::move(o.order);
  if (p.node_order.empty()) return p;
  p.peak_bytes = std::move(o.bytes);
  p.step_seconds = o.seconds;
  p.tasks = p.offsets = 0;
  return p;
}
template <class M>
  requires(!cost::cost_model<M>)
cost::cost_model_lack<M> ordered(computation_graph const&, plan, M const&, std::string const& = "loss",
                           scratch_space const& = {});

}  // namespace tensorpar::search
