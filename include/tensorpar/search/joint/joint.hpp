// tensorpar/search/joint/joint.hpp - rules and shardings chosen together: every part of a network, every
// graph that rules make of it
#pragma once
#include <limits>
#include <numeric>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/program/rewritten.hpp>
#include <tensorpar/search/joint/develop.hpp>
#include <tensorpar/search/problem/activate.hpp>

namespace tensorpar::search {

struct joint_result : search_result {
  // that the plan runs: `rewritten(declared, plan)`, which takes rules of your own too, is the same
  computation_graph graph;
  joint_statistics rewriting;
};

namespace detail {

/// `optimize` on all of a machine of a graph that rules made of the declared one, functions computed with
/// their operators by more of them. Nothing need be found where it is not below `bar` seconds.
template <cost::cost_model M>
joint_result optimize_changed(computation_graph const& declared, developed::choice c, machine const& on,
                              M const& model, search_options o,
                                  std::vector<rewrite::rule const*> const& activating,
                              std::shared_ptr<layout_prices<M>> const& prices, double bar) {
  activation_choice with{activating, {}};
  o.order = c.order;
  joint_result r;
  static_cast<search_result&>(r) = optimize_whole(c.graph, on, model, o, prices, &with, bar);
  r.graph = std::move(c.graph);
  r.plan.rewrites = std::move(c.records);
  if (r.feasible() && !with.chosen.empty()) {
    activated_graph a = activate(c.open, c.number, with.chosen, r.plan.nodes);
    plan p = r.plan;
    p.graph = a.graph.hash();
    training_graph const step = differentiate(a.graph, training_of(p, o.loss));
    std::vector<i64> const bytes = arena_sizes(step, p, o.scratch.rule)(a.nodes);
    // other tensors at other times: it may be that they fit only apart
    if (shortage_in(bytes, on.memories(), false)) {
      static_cast<search_result&>(r) = optimize_whole<M>(r.graph, on, model, o, prices, nullptr, bar);
      r.plan.rewrites = std::move(p.rewrites);
    } else {
      r.cost.bytes = bytes;
      p.nodes = std::move(a.nodes);
      p.rewrites.insert(p.rewrites.end(), a.records.begin(), a.records.end());
      r.plan = std::move(p);
      r.graph = std::move(a.graph);
    }
  }
  if (!r.plan.rewrites.empty()) r.plan.serial = declared.hash();
  return r;
}
/// The best plan of what was developed and of the declared graph.
template <cost::cost_model M>
joint_result map_developed(computation_graph const& declared, machine const& on, M const& model,
                           joint_options const& o, developed d,
                           std::shared_ptr<layout_prices<M>> const& prices, double bar) {
  std::vector<rewrite::rule const*> const some = activating(rules_of(o));
  std::vector<int> same(idx(declared.node_count()));
  std::iota(same.begin(), same.end(), 0);
  developed::choice plainly{declared, rewrite::open_graph(rewrite::unsharded(declared)), same, {}, {}};
  joint_result r = optimize_changed(declared, std::move(plainly), on, model, o.search, some, prices, bar);
  search_options plain = o.search;
  plain.compare = false;
  for (developed::choice& c : d.all) {
    if (c.records.empty()) continue;
    joint_result x = optimize_changed(declared, std::move(c), on, model, plain, some, prices, bar);
    if (!x.feasible() || (r.feasible() && r.cost.seconds <= x.cost.seconds)) continue;
    x.baselines = std::move(r.baselines);
    r = std::move(x);
  }
  r.rewriting = d.statistics;
  r.rewriting.steps = static_cast<int>(r.plan.rewrites.size());
  r.moves_priced = static_cast<i64>(prices->asked());
  return r;
}

/// Tells a watch how many graphs all searches so far have priced.
struct counted_watch final : joint_watch {
  joint_watch* to;
  int before = 0;
  bool ended = false;                    // it said no
  explicit counted_watch(joint_watch* w) : to(w) {}
  bool go_on(joint_progress const& p) override {
    joint_progress all = p;
    all.candidates += before;
    ended = ended || (to && !to->go_on(all));
    return !ended;
  }
};
/// What joint search knows of a network before it knows a machine.
struct joint_network {
  computation_graph const& declared;
  counted_watch const& watch;
  cut_network cut;
  std::optional<rewritten_parts> every;  // made where a quick bound is asked for
  // quick bounds in a row that did not do, and machines on which none is tried next
  int failed = 0, wait = 0;

  /// A quick bound of at least `bar` seconds on all that rules make of the network, or 0.
  template <cost::cost_model M>
  double beyond(double bar, part_pricing<M>& price, joint_options const& o) {
    // long concatenations make graphs of which there is no such list
    if (bar == infinity || !price.shared() || o.rewriting.distribute || watch.ended) return 0;
    if (wait > 0) return --wait, 0;
    if (!every) every = rewritten(cut, o);
    if (!every->all) return 0;
    double const bound = quick_bound(cut, *every, *price.shared(), bar);
    failed = bound < bar ? failed + 1 : 0;
    wait = failed;
    return bound < bar ? 0 : bound;
  }
};
/// On all of a machine; where nothing developed is below `bar` seconds there need be no plan, the bound says
/// that.
template <cost::cost_model M>
joint_result develop_and_map(joint_network& g, machine const& on, M const& model,
                             joint_options const& o, std::shared_ptr<layout_prices<M>> const& prices,
                             double bar) {
  std::optional<part_pricing<M>> price(std::in_place, on, model, o, prices);
  joint_result r;
  r.infeasible = shortage{};
  if (r.bound = g.beyond(bar, *price, o); r.bound > 0) return r;
  developed d = develop(g.declared, g.cut, o, *price);
  price.reset();                                         // large tables, which mapping does not read
  double const bound = d.bound;
  r.rewriting = d.statistics;
  if (bound < bar) r = map_developed(g.declared, on, model, o, std::move(d), prices, bar);
  r.bound = bound;
  return r;
}
/// The same without long concatenations and, if that is asked for, with them.
template <cost::cost_model M>
joint_result optimize_jointly_whole(joint_network& g, machine const& on, M const& model,
                                    joint_options o, double bar) {
  auto const prices = std::make_shared<layout_prices<M>>(model, on, o.search.scalar_bytes);
  bool const both = std::exchange(o.rewriting.distribute, false);
  joint_result r = develop_and_map(g, on, model, o, prices, bar);
  if (both) {
    o.rewriting.distribute = true;
    o.search.compare = false;
    joint_result x = develop_and_map(g, on, model, o, prices, bar);
    x.bound = std::min(r.bound, x.bound);
    x.rewriting.candidates += r.rewriting.candidates;
    x.rewriting.tables += r.rewriting.tables;
    x.rewriting.remembered += r.rewriting.remembered;
    x.rewriting.exhausted = x.rewriting.exhausted && r.rewriting.exhausted;
    x.baselines = r.baselines;
    if (x.feasible() && (!r.feasible() || x.cost.seconds < r.cost.seconds)) r = std::move(x);
    else {
      r.bound = x.bound;
      r.rewriting = x.rewriting;
      r.rewriting.steps = static_cast<int>(r.plan.rewrites.size());
    }
  }
  // a baseline outside of the space
  if (r.feasible()) r.bound = std::min(r.bound, r.cost.seconds);
  return r;
}
/// A machine of one device of every kind that a machine has.
inline std::vector<machine> one_of_each(machine const& on) {
  std::vector<machine> r;
  for (device_kind const& k : on.kinds) r.push_back({on.name, {k}, {0}, {}});
  return r;
}
/// On a machine and on the parts of it that could be faster, as `optimize_with`: each with graphs of its own.
template <cost::cost_model M>
joint_result optimize_jointly_with(computation_graph const& declared, machine const& on, M const& model,
                                   joint_options o) {
  counted_watch watch(o.watch);
  o.watch = &watch;
  joint_network g{declared, watch, cut(declared, o), {}};
  joint_result best = optimize_jointly_whole(g, on, model, o, infinity);
  if (!o.search.fewer_devices || o.search.shardings || o.search.grain > 0 || on.size() < 2) return best;
  watch.before = best.rewriting.candidates;
  auto const note = [&](joint_statistics const& s) {
    watch.before += s.candidates;
    best.rewriting.exhausted = best.rewriting.exhausted && s.exhausted;
  };
  std::vector<double> alone;                                         // of the fastest graphs for one device
  joint_options one = o;
  one.search.compare = false;
  for (machine const& m : one_of_each(on)) {
    auto const prices = std::make_shared<layout_prices<M>>(model, m, o.search.scalar_bytes);
    alone.push_back(infinity);
    for (bool long_ones : {false, true}) {
      if (long_ones && !o.rewriting.distribute) continue;
      one.rewriting.distribute = long_ones;
      part_pricing<M> price(m, model, one, prices);
      developed const d = develop(declared, g.cut, one, price);
      alone.back() = std::min(alone.back(), d.bound);
      note(d.statistics);
    }
  }
  training_options const training = training_of(o);
  double const kept = kept_bytes(differentiate(declared, training), o.search.scalar_bytes);
  bool exhausted = best.rewriting.exhausted;
  auto const whole = [&](machine const& m, double bar) {
    joint_result r = optimize_jointly_whole(g, m, model, o, bar);
    watch.before += r.rewriting.candidates;
    exhausted = exhausted && r.rewriting.exhausted;
    return r;
  };
  auto const put = [&](machine const& m, device_range at, joint_result& r) {
    put_on(m, at, differentiate(r.graph, training), model, o.search.scratch.rule, r);
  };
  best =
      with_parts(on, alone, true, kept, std::move(best), whole, put, [](joint_result& to, joint_result& r) {
        to.plan = std::move(r.plan);
        to.graph = std::move(r.graph);
        to.cost = std::move(r.cost);
        to.rewriting.steps = r.rewriting.steps;
      });
  best.rewriting.exhausted = exhausted;
  return best;
}
/// `optimize_jointly` by one type of model: `model_ref`, where the caller does not count on its own.
template <cost::cost_model M>
joint_result optimize_jointly_by(computation_graph const& declared, machine const& on, M const& model,
                                 joint_options const& options) {
  require_machine(on);
  require_bound(declared);
  core::thread_pool workers(options.search.threads);
  joint_options o = options;
  o.search = shared_by(workers, o.search);
  joint_result r = optimize_jointly_with(declared, on, model, o);
  if (r.feasible()) r.bound = std::min(r.cost.seconds, r.bound);
  r.gap = r.feasible() && r.cost.seconds > 0 ? (r.cost.seconds - r.bound) / r.cost.seconds : 0;
  r.plan.cost = r.cost.seconds;
  r.plan.bound = r.bound;
  reorder(r.graph, model, o.search, r);
  r.plan.infeasible = r.infeasible;
  return r;
}

}  // namespace detail

/// The fastest plan over graphs and shardings at once (Unity, section 5):
/// 1. The graph is cut where one tensor goes on and few matches of rules are cut through.
/// 2. Rules develop each part, the cheapest graph first. A graph is priced by the choices at the part's ends,
///    all boundary shardings included. Parts that look alike are developed once.
/// 3. The best way through all parts names a variant for each.
/// 4. The whole graph so made is mapped as `optimize` does, with side by side and memory. So is the declared
///    graph where that may be better.
/// `bound`: no graph made of developed variants costs less under any shardings of the space. In sequence it
/// is the exact minimum, less what parameters cost that parts share. Side by side it comes from
/// search/solve/branches.hpp and the relaxed costs of search/solve/reduced.hpp. It says nothing of graphs
/// beyond alpha or budget (`rewriting.exhausted`), nor of rules applied across cuts.
/// With `rewriting.distribute` both is searched, without long concatenations and with them. Recommenders on
/// many devices gain. It takes many times the graphs and has a looser bound, because parts of sums stand side
/// by side. Deterministic. Throws as `optimize` does, and where the options mean nothing.
template <cost::cost_model M>
joint_result optimize_jointly(computation_graph const& declared, machine const& on, M const& model,
                              joint_options const& options = {}) {
  return detail::optimize_jointly_by(declared, on, cost::model_ref(model), options);
}
template <class M>
  requires(!cost::cost_model<M>)
cost::cost_model_lack<M> optimize_jointly(computation_graph const&, machine const&, M const&,
                                    joint_options const& = {});

/// What joint search is compared with (Unity, 6.4): first the graph that is fastest on one device, with all
/// the memory it needs, then the best shardings for that graph. Bound and gap are of the mapping alone.
template <cost::cost_model M>
joint_result optimize_one_after_the_other(computation_graph const& declared, machine const& on,
                                          M const& model, joint_options const& options = {}) {
  require_machine(on);
  machine one{on.name, {on.kind_of(0)}, {0}, {}};
  one.kinds[0].memory = std::numeric_limits<i64>::max();
  joint_options alone = options;
  alone.search.compare = false;
  joint_result r = optimize_jointly(declared, one, model, alone);
  if (!r.feasible()) return r;
  std::vector<rewrite::rewrite_record> records = std::move(r.plan.rewrites);
  static_cast<search_result&>(r) = optimize(r.graph, on, model, options.search);
  if (options.search.compare) r.baselines = optimize(declared, on, model, options.search).baselines;
  r.rewriting.steps = static_cast<int>(records.size());
  if (!records.empty()) r.plan.serial = declared.hash();
  r.plan.rewrites = std::move(records);
  return r;
}
template <class M>
  requires(!cost::cost_model<M>)
cost::cost_model_lack<M> optimize_one_after_the_other(computation_graph const&, machine const&, M const&,
                                                joint_options const& = {});

#ifdef TENSORPAR_COMPILED
extern template joint_result detail::optimize_jointly_by(computation_graph const&, machine const&,
    cost::model_ref const&, joint_options const&);
#endif

}  // namespace tensorpar::search
