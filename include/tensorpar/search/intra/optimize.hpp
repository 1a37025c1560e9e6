// tensorpar/search/intra/optimize.hpp - from a graph and a machine to a plan
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/cost/model_ref.hpp>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/search/intra/fitting.hpp>
#include <tensorpar/search/intra/idle_recomputation.hpp>
#include <tensorpar/search/intra/nested_forks.hpp>
#include <tensorpar/search/intra/program_order.hpp>
#include <tensorpar/search/intra/scratch_levels.hpp>
#include <tensorpar/search/intra/search_options.hpp>
#include <tensorpar/search/intra/with_parts.hpp>
#include <tensorpar/search/solve/savings.hpp>
#include <tensorpar/simulate/prices.hpp>

namespace tensorpar::search {

namespace detail {
inline void require_bound(computation_graph const& g) {
  for (std::size_t x = 0; x < g.values.size(); ++x)
    if (!g.values[x].type.is_static())
      throw error(
          "value " + std::to_string(x) + " has shape " + op::spell(g.values[x].type)
              + " with an unbound size", "optimize", "a graph whose symbols are bound");
}
/// A million micro-batches of a step would take hours and all memory before anything is said.
inline void require_listable(training_graph const& t, int micro_batches, i64 most) {
  i64 const each = std::max<i64>(1, t.graph.node_count());
  if (micro_batches > 1 && micro_batches > most / each)
    throw error(std::to_string(micro_batches) + " micro-batches of " + std::to_string(each) + " operators",
                "optimize",
                "at most " + std::to_string(std::max<i64>(1, most / each)) +
                    " micro-batches, or a larger max_listed");
}
/// Bytes of weights and optimizer state, once: they must be somewhere.
inline double kept_bytes(training_graph const& t, i64 scalar_bytes) {
  double sum = 0;
  for (graph_value const& v : t.graph.values)
    if (v.role == value_role::parameter || v.role == value_role::state)
      sum += cost::bytes_of(v.type, scalar_bytes);
  return sum;
}
/// Seconds of some good assignment within the limits, whether it fits into memory or not.
inline double quick_bar(mapping_problem const& p, sharding_limits const& l, mapping_options const& o) {
  smaller_problem const q = with_choices(p, [&](int set, int i) {
    choice_set const& s = p.sets[idx(set)];         // replicas fill all devices, so some choice does
    return s.shardings[idx(i)].start == 0 &&
           allows_size(l, s.sizes[idx(i)], p.devices, p.devices);
  });
  std::vector<std::vector<double>> seconds;
  for (choice_set const& s : q.problem.sets) seconds.push_back(s.seconds);
  return evaluator(p).seconds(q.back(min_sum(q.problem, seconds, o.elimination).choices));
}

/// Functions may be computed with their operators by these rules; where they are in the plan that was found.
/// Not where memory is short, and not in baselines.
struct activation_choice {
  std::vector<rewrite::rule const*> rules;
  std::vector<activation_site> chosen;
};

/// The graph of a step, where what is asked can be searched at all. Throws `error` as `optimize` does.
inline training_graph graph_to_search(computation_graph const& forward, machine const& on,
                                      search_options const& o) {
  require_machine(on);
  if (o.micro_batches < 1)
    throw error("micro_batches is " + std::to_string(o.micro_batches), "optimize", "1 or more");
  require_bound(forward);
  require_scratch(o.scratch, o.scalar_bytes, "optimize");
  training_options t;
  t.loss = o.loss;
  t.optimizer = o.optimizer;
  t.micro_batches = o.micro_batches;
  t.reduction = o.reduction;
  training_graph graph = differentiate(forward, t);
  require_listable(graph, o.micro_batches, o.max_listed);
  return graph;
}
/// What a plan says before anything is decided.
inline search_result nothing_found(computation_graph const& forward, training_graph const& graph,
                                   machine const& on, search_options const& o) {
  search_result r;
  r.space = space_for(on, o);
  r.infeasible = shortage{};
  r.plan.model = o.model;
  r.plan.graph = forward.hash();
  r.plan.cluster = on;
  r.plan.micro_batches = o.micro_batches;
  r.plan.prefetch = o.prefetch;
  r.plan.reduction = graph.reduction;
  r.plan.optimizer = o.optimizer;
  r.plan.precision = precision_in(forward);
  r.plan.scalar_bytes = o.scalar_bytes;
  r.plan.batch = samples_of(forward) * o.micro_batches;
  r.plan.scratch = o.scratch.policy;
  return r;
}
/// The sites at which an assignment computes functions with their operators.
template <cost::cost_model M>
std::vector<activation_site> chosen_sites(choice_book<M>& book, std::vector<activation_site> const& sites,
                                          mapping_problem const& q, assignment const& a) {
  std::vector<activation_site> some;
  for (activation_site const& s : sites) {
    auto const v = idx(s.op), u = idx(s.function);
    if (book.together(q.set_of[v], a[v], q.set_of[u], a[u])) some.push_back(s);
  }
  return some;
}
/// The problem in which memory can be saved.
template <cost::cost_model M>
mapping_problem saving_problem(training_graph const& graph, computation_graph const& forward, M const& model,
                               choice_book<M> const& book, search_options const& o,
                               std::shared_ptr<layout_prices<M>> const& prices,
                               sharding_limits const& limits) {
  objective_options all = book.options();
  // in sequence: what is short of memory has work for all devices
  if (book.on().size() > 8) all.grain = book.on().size();
  choice_book<M> saving(book.on(), model, all, prices);
  return saving_builder<M>(graph, saving, recomputable(forward, graph), o.order).make(limits);
}
/// What was searched, and what was found in it.
inline void tell(mapping_problem const& p, mapping_result const& m, search_result& r) {
  r.space.relaxed = p.relaxed;
  r.operators = p.operators();
  r.kinds = static_cast<int>(p.sets.size());
  for (choice_set const& s : p.sets) r.choices += s.count();
  r.infeasible = m.infeasible;
  r.bound = m.bound;
  r.statistics = m.statistics;
  r.cost = m.cost;
}

/// One axis per operator holds the baselines, and its fastest assignment is a bar that many choices of the
/// whole space cannot clear.
inline sharding_limits baseline_limits(sharding_limits l, int devices) {
  l.max_axes = std::min(l.max_axes, 1);
  l.min_part = devices;                     // baselines may leave devices idle
  return l;
}
inline void decide(std::vector<op_strategy> nodes, search_result& r) {
  r.gap = r.cost.seconds > 0 ? (r.cost.seconds - r.bound) / r.cost.seconds : 0;
  r.plan.nodes = std::move(nodes);
  r.plan.cost = r.cost.seconds;
  r.plan.bound = r.bound;
}

/// `optimize` on all of a machine, with prices of reshards that other searches found, for this machine, cost
/// model and size of numbers. Where no assignment is below `bar` seconds there need be no plan; the bound
/// says that.
template <cost::cost_model M>
search_result optimize_whole(computation_graph const& forward, machine const& on, M const& model,
                             search_options const& o, std::shared_ptr<layout_prices<M>> const& prices,
                             activation_choice* activation = nullptr, double bar = infinity) {
  training_graph const graph = graph_to_search(forward, on, o);
  search_result r = nothing_found(forward, graph, on, o);
  choice_book<M> book(
      on, model, objective_options{r.space.grain, o.scalar_bytes, o.micro_batches, o.save_memory}, prices);
  std::vector<activation_site> sites;
  if (activation) sites = activation_sites(forward, forward.node_count(), activation->rules);
  objective_builder<M> build(graph, book, o.order, false, sites);
  std::optional<objective_builder<M>> apart;
  if (!sites.empty()) apart.emplace(graph, book, o.order);
  mapping_options time_only = o.mapping;
  time_only.memory = false;
  time_only.enough = bar;
  if (bar < infinity)
    if (r.bound = build.least(r.space.shardings); r.bound >= bar) return r;
  sharding_limits const one_axis = baseline_limits(r.space.shardings, on.size());
  std::optional<mapping_problem> one;
  auto const narrow = [&]() -> mapping_problem const& {
    return one ? *one : one.emplace((apart ? *apart : build).make(one_axis, infinity, true));
  };
  auto const chosen = [&](auto const& q, auto const& a) { return chosen_sites(book, sites, q, a); };
  // the same strategies, functions computed with their operators; and where
  std::vector<baseline> others;
  std::vector<std::vector<activation_site>> other_sites;
  auto const strategies_of_others = [&] {
    r.baselines = baselines(narrow(), forward);
    if (!apart) return;
    mapping_problem const with = build.make(one_axis, infinity, true);
    others = baselines(with, forward);
    for (baseline const& b : others) other_sites.push_back(chosen(with, b.choices));
  };
  if (o.compare && bar == infinity) strategies_of_others();
  mapping_problem p =
      bar < infinity ? build.make_after_least(bar)
                     : build.make(r.space.shardings, quick_bar(narrow(), r.space.shardings, o.mapping));
  r.moves_priced = static_cast<i64>(prices->asked());
  arena_sizes arenas(graph, r.plan, o.scratch.rule);
  auto const need = [&](assignment const& a) { return arenas(op_strategies(p, a)); };
  mapping_result m = best_mapping(p, time_only);
  r.bound = std::min(bar, m.time_bound);
  if (m.time_bound >= bar * (1 - 2e-9)) return r;
  m.cost.bytes = need(m.choices);
  m.infeasible = shortage_in(m.cost.bytes, p.capacity, false);
  std::vector<activation_site> with_operators =
      m.infeasible ? std::vector<activation_site>{} : chosen(p, m.choices);
  bool const best = !m.infeasible && m.time_bound >= m.cost.seconds * (1 - 2e-9);
  if (m.infeasible) {                                  // what fits may be slower than the bar
    double const bound = m.time_bound;
    p = o.save_memory ? saving_problem(graph, forward, model, book, o, prices, r.space.shardings)
                      : (apart ? *apart : build).make(r.space.shardings);
    bool const left = m.statistics.branches_left;
    m = !o.scratch.counted()
            ? fit_arenas(p, o.mapping, need)
            : fit_arenas(p, o.mapping, need, scratch_by_choice(graph, p, o.scratch.rule, o.scalar_bytes));
    m.statistics.branches_left = left;
    m.bound = m.found() ? std::min(bound, m.cost.seconds) : bound;
    if (!m.found()) m.infeasible->proven = kept_bytes(graph, o.scalar_bytes) > all_memory(on);
  }
  if (o.compare && bar < infinity && !best) strategies_of_others();
  tell(p, m, r);
  std::vector<op_strategy> nodes = m.found() ? op_strategies(p, m.choices) : std::vector<op_strategy>{};
  // where the search is not exact, they may be better
  auto const consider = [&](baseline& b, std::vector<activation_site> const& with) {
    if (!nodes.empty() && b.cost.seconds >= r.cost.seconds) return;
    if (shortage_in(b.cost.bytes = arenas(b.nodes), p.capacity, false)) return;
    nodes = op_strategies(narrow(), b.choices);
    with_operators = with;
    r.cost = b.cost;
    r.bound = std::min(r.bound, r.cost.seconds);
    r.infeasible.reset();
  };
  for (baseline& b : r.baselines) b.cost.bytes = arenas(b.nodes);
  for (baseline& b : r.baselines) consider(b, {});
  for (std::size_t k = 0; k < others.size(); ++k) consider(others[k], other_sites[k]);
  if (r.infeasible) return r;
  if (activation) activation->chosen = std::move(with_operators);
  decide(std::move(nodes), r);
  return r;
}
/// A plan that was found for a part of its machine, on the whole of it.
template <cost::cost_model M>
void put_on(machine const& on, device_range part, training_graph const& t, M const& model, workspace_rule w,
            search_result& r) {
  auto const serial = [&] {
    planned_step const step = passes::memory_pass(t, r.plan);
    program const q = unroll(step.graph, step.plan, {.lockstep = true});
    return simulation::serial_seconds(q, r.plan.cluster, simulation::price(q, r.plan.cluster, model));
  };
  // the norm of all gradients is known to all devices
  bool const everywhere = r.plan.optimizer.takes_norm();
  double const before = everywhere ? serial() : 0;
  r.plan.cluster = on;
  for (op_strategy& n : r.plan.nodes) n.sharding.start += part.first;
  r.cost.bytes = arena_sizes(t, r.plan, w)(r.plan.nodes);
  if (everywhere) r.cost.seconds += serial() - before;
  r.infeasible = shortage_in(r.cost.bytes, on.memories(), false);
}

/// `optimize` with such prices: on all devices, and on parts of the machine that could be faster.
template <cost::cost_model M>
search_result optimize_with(computation_graph const& forward, machine const& on, M const& model,
                            search_options const& o, std::shared_ptr<layout_prices<M>> const& prices) {
  search_result best = optimize_whole(forward, on, model, o, prices);
  if (!o.fewer_devices || o.shardings || o.grain > 0) return best;
  training_graph const t = differentiate(forward, {o.loss, o.optimizer, o.micro_batches, o.reduction});
  std::vector<double> const alone = seconds_alone(t, on, model, o.micro_batches, o.scalar_bytes);
  auto const whole = [&](machine const& m, double bar) {
    return optimize_whole<M>(forward, m, model, o,
                             std::make_shared<layout_prices<M>>(model, m, o.scalar_bytes), nullptr, bar);
  };
  auto const put = [&](machine const& m, device_range at, search_result& r) {
    put_on(m, at, t, model, o.scratch.rule, r);
  };
  bool const nested = !on.uniform() && has_nested_forks(forward);
  double const kept = kept_bytes(t, o.scalar_bytes);
  best = with_parts(on, alone, nested, kept, std::move(best), whole, put,
                    [](search_result& to, search_result& r) {
                      to.plan = std::move(r.plan);
                      to.cost = std::move(r.cost);
                    });
  if (!best.feasible()) return best;
  best.gap = best.cost.seconds > 0 ? (best.cost.seconds - best.bound) / best.cost.seconds : 0;
  best.plan.cost = best.cost.seconds;
  best.plan.bound = best.bound;
  return best;
}
/// Operators that stand on different devices, in an order that is faster than their numbers, where one is
/// found; none computed again in vain.
template <cost::cost_model M>
void reorder(computation_graph const& forward, M const& model, search_options const& o, search_result& r) {
  if (!r.feasible()) return;
  training_graph const t = differentiate(forward, training_of(r.plan, o.loss));
  drop_idle_recomputation(t, r.plan);
  if (!o.reorder) return;
  program_order found = greedy_order(t, r.plan, model, 0.01, o.scratch.rule);
  if (found.order.empty()) return;
  r.plan.node_order = std::move(found.order);
  r.cost.bytes = std::move(found.bytes);
}
/// Options whose work is shared by these threads, unless they name others.
template <class Options> Options shared_by(core::thread_pool& workers, Options o) {
  if (!o.mapping.elimination.workers) o.mapping.elimination.workers = &workers;
  return o;
}
/// `optimize` by one type of model: `model_ref`, where the caller does not count on its own.
template <cost::cost_model M>
search_result optimize_by(computation_graph const& forward, machine const& on, M const& model,
                          search_options const& o) {
  core::thread_pool workers(o.threads);
  auto const prices = std::make_shared<layout_prices<M>>(model, on, o.scalar_bytes);
  search_result r = optimize_with(forward, on, model, shared_by(workers, o), prices);
  reorder(forward, model, o, r);
  r.plan.infeasible = r.infeasible;
  return r;
}
}  // namespace detail

/// The fastest plan for one training step of `forward` on a machine, by a cost model, with a lower bound on
/// every plan of the space stated in the result; or which device lacks how much memory. Time is the objective
/// of problem.hpp: operators, reshards, gradient synchronisation. Memory per device is a hard constraint on
/// the arenas of the plan's program, with the scratch space of kernels if `scratch` names the policy that
/// will run it (by default an executor may take more). Where the fastest plan does not fit, updates and
/// weights are sharded and operators computed again (search/intra/fitting.hpp). A shortage is proven
/// where the weights and the optimizer's state alone exceed all memory there is. Deterministic: equal
/// arguments, equal results. Fewer devices than there are may be faster: parts of the machine are searched
/// too where that could be (search/intra/part_list.hpp), on up to 16 devices all of them, so that more
/// devices are never slower. That a part cannot be faster follows from the seconds of its devices where no
/// operator gets more than n times as fast on n devices. The bound counts these parts, and is
/// not above that of the same devices numbered with the fastest first.
/// What is found runs its operators by number, or in a greedy order where that is simulated to be faster
/// (search/intra/program_order.hpp); the objective's seconds know no order.
/// Throws `error` for a graph without the loss, with unbound sizes, or a machine that means nothing
/// (ir/machine/machine_check.hpp), and for more micro-batches than `max_listed` lets be listed.
template <cost::cost_model M>
search_result optimize(computation_graph const& forward, machine const& on, M const& model,
                       search_options const& o = {}) {
  return detail::optimize_by(forward, on, cost::model_ref(model), o);
}
template <class M>
  requires(!cost::cost_model<M>)
cost::cost_model_lack<M> optimize(computation_graph const&, machine const&, M const&,
                                  search_options const& = {});

#ifdef TENSORPAR_COMPILED
extern template search_result detail::optimize_by(computation_graph const&, machine const&, cost::model_ref
    const&, search_options const&);
extern template search_result detail::optimize_whole(computation_graph const&, machine const&,
    cost::model_ref const&, search_options const&, std::shared_ptr<layout_prices<cost::model_ref>> const&,
    activation_choice*, double);
extern template search_result detail::optimize_with(computation_graph const&, machine const&, cost::model_ref
    const&, search_options const&, std::shared_ptr<layout_prices<cost::model_ref>> const&);
extern template void detail::reorder(computation_graph const&, cost::model_ref const&, search_options const&,
    search_result&);
#endif

}  // namespace tensorpar::search
