// tensorpar/search/optimize.hpp - from a graph and a machine to a plan
#pragma once
#include <algorithm>
#include <tensorpar/search/fitting.hpp>
#include <tensorpar/search/idle_recomputation.hpp>
#include <tensorpar/search/nested_forks.hpp>
#include <tensorpar/search/program_order.hpp>
#include <tensorpar/search/savings.hpp>
#include <tensorpar/search/scratch_levels.hpp>
#include <tensorpar/search/with_parts.hpp>
#include <tensorpar/simulate/prices.hpp>

namespace tensorpar {

struct search_options {
  std::string model;                          // a label for the plan
  std::string loss = "loss";                  // the output to minimise
  optimizer_choice optimizer;
  int micro_batches = 1;
  loss_reduction reduction = loss_reduction::as_graph;   // of their losses, as in training_options
  i64 scalar_bytes = 4;
  std::optional<spread_limits> spreads;       // nothing: by the size of graph and machine, see `usual_limits`
  bool fewer_devices = true;                  // try parts of the machine too, where spreads and grain are not given
  int grain = 0;                              // 0: every division up to 8 devices, quarters beyond
  bool compare = true;                        // price the baselines too
  bool save_memory = true;                    // where the fastest does not fit: shard updates and weights, compute again
  bool reorder = true;                        // where operators stand apart, look for an order in which they wait less (plan.order)
  scratch_space scratch;                      // of the policy that will run the plan (exec/scratch_of.hpp); by default it is not counted
  i64 most_listed = i64{1} << 22;             // operators of a step times micro-batches, each of which arenas and programs list
  mapping_options mapping;
  int threads = 0;                            // 0: one per processor. The result is the same for any number; the cost model is asked by
                                              // the calling thread alone
  std::vector<std::pair<int, int>> order;     // operators whose time is counted before that of others (a larger number) although no
                                              // tensor says so; an order that `reorder` finds may still put them otherwise
};

struct search_result {
  std::optional<shortage> infeasible;         // then there is no plan
  tensorpar::plan plan;
  assignment_cost cost;                       // seconds of a step by the search's objective, bytes by its estimate
  double bound = 0;  // no assignment in the space costs less, on all devices or on the parts that the space names (nor does the plan,
                     // should a baseline be outside of it)
  double gap = 0;                             // (cost - bound) / cost
  search_space space;
  mapping_statistics statistics;
  int operators = 0, kinds = 0;               // kinds: operators that differ in more than their place
  i64 choices = 0;                            // spreads over all kinds that could matter
  i64 moves_priced = 0;                       // without regard to memory; of a joint search all together
  std::vector<baseline> baselines;
  bool feasible() const { return !infeasible; }
};

/// Rich on small machines, affordable on large ones: any grid size up to 4 devices; one device or at least half of them up to 16; one or
/// all of them beyond (where loops do not divide so, the largest power of two among them). Two axes (up to 4 devices that is no limit), of
/// few parts or nearly as many as there are devices where these have more than 16 divisors.
inline spread_limits usual_limits(int devices) {
  spread_limits l;
  l.max_axes = 2;
  l.least_part = devices <= 16 ? 2 : 1;
  l.most_divisors = 16;
  return l;
}

/// What `optimize` searches on a machine.
inline search_space space_for(machine const& on, search_options const& o) {
  search_space s;
  s.spreads = o.spreads ? *o.spreads : usual_limits(on.size());
  s.grain = o.grain > 0 ? o.grain : on.size() <= 8 ? 1 : (on.size() + 3) / 4;
  return s;
}

namespace detail {
inline void require_bound(computation_graph const& g) {
  for (std::size_t x = 0; x < g.values.size(); ++x)
    if (!g.values[x].type.is_static())
      throw error("value " + std::to_string(x) + " has shape " + spell(g.values[x].type) + " with an unbound size", "optimize",
                  "a graph whose symbols are bound");
}
/// A million micro-batches of a step would take hours and all memory before anything is said.
inline void require_listable(training_graph const& t, int micro_batches, i64 most) {
  i64 const each = std::max<i64>(1, t.graph.node_count());
  if (micro_batches > 1 && micro_batches > most / each)
    throw error(std::to_string(micro_batches) + " micro-batches of " + std::to_string(each) + " operators", "optimize",
                "at most " + std::to_string(std::max<i64>(1, most / each)) + " micro-batches, or a larger most_listed");
}
/// Bytes of weights and optimizer state, once: they must be somewhere.
inline double kept_bytes(training_graph const& t, i64 scalar_bytes) {
  double sum = 0;
  for (graph_value const& v : t.graph.values)
    if (v.role == value_role::parameter || v.role == value_role::state)
      sum += bytes_of(v.type, scalar_bytes);
  return sum;
}
/// Seconds of some good assignment within the limits, whether it fits into memory or not.
inline double quick_bar(mapping_problem const& p, spread_limits const& l, mapping_options const& o) {
  smaller_problem const q = with_choices(p, [&](int set, int i) {
    choice_set const& s = p.sets[detail::idx(set)];         // replicas fill all devices, so some choice does
    return s.spreads[detail::idx(i)].start == 0 && allows_size(l, s.sizes[detail::idx(i)], p.devices, p.devices);
  });
  std::vector<std::vector<double>> seconds;
  for (choice_set const& s : q.problem.sets) seconds.push_back(s.seconds);
  return evaluator(p)(q.back(least_sum(q.problem, seconds, o.elimination).choices)).seconds;
}

/// Functions may be computed with their operators by these rules; where they are in the plan that was found. Not where memory is short,
/// and not in baselines.
struct activation_choice {
  std::vector<rule const*> rules;
  std::vector<activation_site> chosen;
};

/// `optimize` on all of a machine, with prices of movements that other searches found, for this machine, cost model and size of numbers.
/// Where no assignment is below `bar` seconds there need be no plan; the bound says that.
template <cost_model M>
search_result optimize_whole(computation_graph const& forward, machine const& on, M const& model, search_options const& o,
                            std::shared_ptr<layout_prices<M>> const& prices, activation_choice* activation = nullptr, double bar = never) {
  require_machine(on);
  if (o.micro_batches < 1) throw error("micro_batches is " + std::to_string(o.micro_batches), "optimize", "1 or more");
  require_bound(forward);
  require_scratch(o.scratch, o.scalar_bytes, "optimize");
  search_result r;
  r.space = space_for(on, o);
  training_options t;
  t.loss = o.loss;
  t.optimizer = o.optimizer;
  t.micro_batches = o.micro_batches;
  t.reduction = o.reduction;
  training_graph const graph = differentiate(forward, t);
  require_listable(graph, o.micro_batches, o.most_listed);
  choice_book<M> book(on, model, objective_options{r.space.grain, o.scalar_bytes, o.micro_batches, o.save_memory}, prices);
  std::vector<activation_site> sites;
  if (activation) sites = activation_sites(forward, forward.node_count(), activation->rules);
  objective_builder<M> build(graph, book, o.order, false, sites);
  std::optional<objective_builder<M>> apart;
  if (!sites.empty()) apart.emplace(graph, book, o.order);
  mapping_options time_only = o.mapping;
  time_only.memory = false;
  time_only.enough = bar;
  r.infeasible = shortage{};
  if (bar < never)
    if (r.bound = build.least(r.space.spreads); r.bound >= bar) return r;
  // One axis per operator holds the baselines, and its fastest assignment is a bar that many choices of the whole space cannot clear.
  spread_limits one_axis = r.space.spreads;
  one_axis.max_axes = std::min(one_axis.max_axes, 1);
  one_axis.least_part = on.size();                     // baselines may leave devices idle
  mapping_problem const narrow = (apart ? *apart : build).make(one_axis, never, true);
  auto const chosen = [&](mapping_problem const& q, assignment const& a) {
    std::vector<activation_site> some;
    for (activation_site const& s : sites) {
      auto const v = idx(s.op), u = idx(s.function);
      if (book.together(q.set_of[v], a[v], q.set_of[u], a[u])) some.push_back(s);
    }
    return some;
  };
  std::vector<baseline> others;                        // the same strategies, functions computed with their operators; and where
  std::vector<std::vector<activation_site>> other_sites;
  auto const strategies_of_others = [&] {
    r.baselines = baselines(narrow, forward);
    if (!apart) return;
    mapping_problem const with = build.make(one_axis, never, true);
    others = baselines(with, forward);
    for (baseline const& b : others) other_sites.push_back(chosen(with, b.choices));
  };
  if (o.compare && bar == never) strategies_of_others();
  mapping_problem p = build.make(r.space.spreads, std::min(bar, quick_bar(narrow, r.space.spreads, o.mapping)));
  r.plan.model = o.model;
  r.plan.graph = forward.hash();
  r.plan.cluster = on;
  r.plan.micro_batches = o.micro_batches;
  r.plan.reduction = graph.reduction;
  r.plan.optimizer = o.optimizer;
  r.plan.scalar_bytes = o.scalar_bytes;
  r.plan.batch = samples_of(forward) * o.micro_batches;
  r.plan.scratch = o.scratch.policy;
  r.moves_priced = static_cast<i64>(prices->asked());
  arena_sizes arenas(graph, r.plan, o.scratch.rule);
  auto const need = [&](assignment const& a) { return arenas(node_choices(p, a)); };
  mapping_result m = best_mapping(p, time_only);
  r.bound = std::min(bar, m.time_bound);
  if (m.time_bound >= bar * (1 - 2e-9)) return r;
  m.cost.bytes = need(m.choices);
  m.infeasible = shortage_in(m.cost.bytes, p.capacity, false);
  std::vector<activation_site> with_operators = m.infeasible ? std::vector<activation_site>{} : chosen(p, m.choices);
  bool const best = !m.infeasible && m.time_bound >= m.cost.seconds * (1 - 2e-9);
  if (m.infeasible) {                                  // what fits may be slower than the bar
    double const bound = m.time_bound;
    if (o.save_memory) {
      objective_options all = book.options();
      if (on.size() > 8) all.grain = on.size();        // in sequence: what is short of memory has work for all devices
      choice_book<M> saving(on, model, all, prices);
      p = saving_builder<M>(graph, saving, recomputable(forward, graph), o.order).make(r.space.spreads);
    } else p = (apart ? *apart : build).make(r.space.spreads);
    bool const left = m.statistics.branches_left;
    m = !o.scratch.counted() ? fit_arenas(p, o.mapping, need)
                             : fit_arenas(p, o.mapping, need, scratch_by_choice(graph, p, o.scratch.rule, o.scalar_bytes));
    m.statistics.branches_left = left;
    m.bound = m.found() ? std::min(bound, m.cost.seconds) : bound;
    if (!m.found()) m.infeasible->proven = kept_bytes(graph, o.scalar_bytes) > all_memory(on);
  }
  if (o.compare && bar < never && !best) strategies_of_others();
  r.space.relaxed = p.relaxed;
  r.operators = p.operators();
  r.kinds = static_cast<int>(p.sets.size());
  for (choice_set const& s : p.sets) r.choices += s.count();
  r.infeasible = m.infeasible;
  r.bound = m.bound;
  r.statistics = m.statistics;
  r.cost = m.cost;
  std::vector<node_choice> nodes;
  if (m.found()) nodes = node_choices(p, m.choices);
  auto const consider = [&](baseline& b, std::vector<activation_site> const& with) {   // where the search is not exact, they may be better
    b.cost.bytes = arenas(b.nodes);
    if (shortage_in(b.cost.bytes, narrow.capacity, false) || (!nodes.empty() && b.cost.seconds >= r.cost.seconds)) return;
    nodes = node_choices(narrow, b.choices);
    with_operators = with;
    r.cost = b.cost;
    r.bound = std::min(r.bound, r.cost.seconds);
    r.infeasible.reset();
  };
  for (baseline& b : r.baselines) consider(b, {});
  for (std::size_t k = 0; k < others.size(); ++k) consider(others[k], other_sites[k]);
  if (r.infeasible) return r;
  if (activation) activation->chosen = std::move(with_operators);
  r.gap = r.cost.seconds > 0 ? (r.cost.seconds - r.bound) / r.cost.seconds : 0;
  r.plan.nodes = std::move(nodes);
  r.plan.cost = r.cost.seconds;
  r.plan.bound = r.bound;
  return r;
}
/// A plan that was found for a part of its machine, on the whole of it.
template <cost_model M>
void put_on(machine const& on, device_group part, training_graph const& t, M const& model, workspace_rule w, search_result& r) {
  auto const serial = [&] {
    saving_step const step = save_memory(t, r.plan);
    program const q = unroll(step.graph, step.plan);
    return serial_seconds(q, r.plan.cluster, price(q, r.plan.cluster, model));
  };
  bool const everywhere = r.plan.optimizer.takes_norm();            // the norm of all gradients is known to all devices
  double const before = everywhere ? serial() : 0;
  r.plan.cluster = on;
  for (node_choice& n : r.plan.nodes) n.spread.start += part.first;
  r.cost.bytes = arena_sizes(t, r.plan, w)(r.plan.nodes);
  if (everywhere) r.cost.seconds += serial() - before;
  std::vector<i64> room;
  for (int d = 0; d < on.size(); ++d) room.push_back(on.kind_of(d).memory);
  r.infeasible = shortage_in(r.cost.bytes, room, false);
}

/// `optimize` with such prices: on all devices, and on parts of the machine that could be faster.
template <cost_model M>
search_result optimize_with(computation_graph const& forward, machine const& on, M const& model, search_options const& o,
                            std::shared_ptr<layout_prices<M>> const& prices) {
  search_result best = optimize_whole(forward, on, model, o, prices);
  if (!o.fewer_devices || o.spreads || o.grain > 0) return best;
  training_graph const t = differentiate(forward, {o.loss, o.optimizer, o.micro_batches, o.reduction});
  std::vector<double> const alone = seconds_alone(t, on, model, o.micro_batches, o.scalar_bytes);
  auto const whole = [&](machine const& m, double bar) {
    return optimize_whole<M>(forward, m, model, o, std::make_shared<layout_prices<M>>(model, m, o.scalar_bytes), nullptr, bar);
  };
  auto const put = [&](machine const& m, device_group at, search_result& r) { put_on(m, at, t, model, o.scratch.rule, r); };
  bool const nested = !on.uniform() && has_nested_forks(forward);
  double const kept = kept_bytes(t, o.scalar_bytes);
  best = with_parts(on, alone, nested, kept, std::move(best), whole, put, [](search_result& to, search_result& r) {
    to.plan = std::move(r.plan);
    to.cost = std::move(r.cost);
  });
  if (!best.feasible()) return best;
  best.gap = best.cost.seconds > 0 ? (best.cost.seconds - best.bound) / best.cost.seconds : 0;
  best.plan.cost = best.cost.seconds;
  best.plan.bound = best.bound;
  return best;
}
/// Operators that stand on different devices, in an order that is faster than their numbers, where one is found; none computed again in
/// vain.
template <cost_model M> void reorder(computation_graph const& forward, M const& model, search_options const& o, search_result& r) {
  if (!r.feasible()) return;
  training_graph const t = differentiate(forward, training_of(r.plan, o.loss));
  drop_idle_recomputation(t, r.plan);
  if (!o.reorder) return;
  program_order found = greedy_order(t, r.plan, model, 0.01, o.scratch.rule);
  if (found.order.empty()) return;
  r.plan.order = std::move(found.order);
  r.cost.bytes = std::move(found.bytes);
}
/// Options whose work is shared by these threads, unless they name others.
template <class Options> Options shared_by(team& workers, Options o) {
  if (!o.mapping.elimination.workers) o.mapping.elimination.workers = &workers;
  return o;
}
}  // namespace detail

/// The fastest plan for one training step of `forward` on a machine, by a cost model, with a lower bound on every plan of the space stated
/// in the result; or which device lacks how much memory. Time is the objective of problem.hpp: operators, movements, gradient
/// synchronisation. Memory per device is a hard constraint on the arenas of the plan's program, with the scratch space of kernels if
/// `scratch` names the policy that will run it (by default an executor may take more). Where the fastest plan does not fit, updates and
/// weights are sharded and operators computed again (search/fitting.hpp). A shortage is proven
/// where the weights and the optimizer's state alone exceed all memory there is. Deterministic: equal arguments, equal results.
/// Fewer devices than there are may be faster: parts of the machine are searched too where that could be (search/part_list.hpp), on up to
/// 16 devices all of them, so that more devices are never slower. That a part cannot be faster follows from the seconds of its devices
/// where no operator gets more than n times as fast on n devices. The bound counts these parts, and is
/// not above that of the same devices numbered with the fastest first.
/// What is found runs its operators by number, or in a greedy order where that is simulated to be faster (search/program_order.hpp); the
/// objective's seconds know no order.
/// Throws `error` for a graph without the loss, with unbound sizes, or a machine that means nothing (ir/machine_check.hpp), and for more
/// micro-batches than `most_listed` lets be listed.
template <cost_model M>
search_result optimize(computation_graph const& forward, machine const& on, M const& model, search_options const& o = {}) {
  team workers(o.threads);
  auto const prices = std::make_shared<layout_prices<M>>(model, on, o.scalar_bytes);
  search_result r = detail::optimize_with(forward, on, model, detail::shared_by(workers, o), prices);
  detail::reorder(forward, model, o, r);
  r.plan.infeasible = r.infeasible;
  return r;
}
template <class M>
  requires(!cost_model<M>)
cost_model_lack<M> optimize(computation_graph const&, machine const&, M const&, search_options const& = {});

}  // namespace tensorpar
