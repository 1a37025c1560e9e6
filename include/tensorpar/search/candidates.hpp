// tensorpar/search/candidates.hpp - plans of every kind for one training problem, unrolled, simulated and
// compared
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/ir/machine/precision.hpp>
#include <tensorpar/program/evidence/certificate.hpp>
#include <tensorpar/program/planned.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/search/degrees/ranking.hpp>
#include <tensorpar/search/effort.hpp>
#include <tensorpar/search/micro_batches.hpp>
#include <tensorpar/search/overlapped.hpp>
#include <tensorpar/search/phase_options.hpp>
#include <tensorpar/search/pipeline/fit_stages.hpp>
#include <tensorpar/search/pipeline/map_within.hpp>
#include <tensorpar/search/rewritten_candidates.hpp>
#include <tensorpar/search/solve/step_bound.hpp>
#include <utility>

namespace tensorpar::detail {

/// Keeps the fastest of the plans that it is told of.
template <cost::cost_model M> class plan_search {
  training_problem const& asked_;
  precision format_;
  computation_graph given_;                                      // in this format, as the machine is
  search::detail::batch_axes axes_;
  i64 batch_;
  machine on_;
  M const& model_;
  planning_options const& o_;
  std::vector<search::schedule_kind> schedules_;
  search::search_options each_;                                  // what each phase is asked
  double plain_ = infinity, rewritten_ = plain_;                 // seconds of the fastest shardings
  double declared_ = infinity;                                   // and of any plan of the graph as it is
  std::vector<int> micro_batches_;               // of the shardings that were looked at
  bool communicates_longer_ = false;             // the fastest plan so far
  std::optional<search::configurations<M>> configured_;
  std::optional<search::detail::degree_ranking<M>> ranking_;
  search::detail::told_watch told_;
  planned r_;

  /// Of a device, if all have as many, or fewer.
  i64 usual_samples() const {
    i64 most = axes_.own();
    for (i64 n : divisors_in_a_row(batch_ / axes_.own()))
      if (n * axes_.own() * on_.size() <= batch_) most = n * axes_.own();
    return most;
  }
  double placed(i64 micro_batches) const { return static_cast<double>(micro_batches) * given_.node_count(); }
  bool too_large(i64 n) const { return placed(n) > static_cast<double>(o_.knobs.max_placed); }

  double fastest() const { return r_.chosen < 0 ? infinity : r_.tried[idx(r_.chosen)].seconds; }

  void add(tried_plan c) { told_.add(r_.tried, std::move(c)); }
  /// A plan's program, simulated and compared with the fastest so far.
  void offer(tried_plan c, computation_graph const& graph, plan p, std::optional<int> ahead = {}) {
    p.precision = format_;
    search::simulated_plan const s = search::overlapped(graph, p, asked_, model_, fastest(), ahead);
    c.infeasible = s.infeasible;
    c.seconds = s.seconds;
    c.peak = s.peak;
    c.prefetch = s.prefetch;
    c.stages = static_cast<int>(p.pipeline.stages.size());
    bool const better = c.feasible() && (r_.chosen < 0 || c.seconds < fastest() * (1 - 1e-9));
    if (c.feasible() && p.rewrites.empty()) declared_ = std::min(declared_, c.seconds);
    add(std::move(c));
    if (!better) return;
    r_.chosen = static_cast<int>(r_.tried.size()) - 1;
    communicates_longer_ = s.communicating > s.computing;
    r_.graph = graph;
    r_.plan = std::move(p);
  }
  void lacks(tried_plan c, shortage const& s) {
    c.infeasible = s;
    add(std::move(c));
  }
  void refuse(tried_plan c, std::string why) {
    c.refused = std::move(why);
    add(std::move(c));
  }
  void refuse_size(tried_plan c) {
    refuse(std::move(c), "more operators times micro-batches than " + std::to_string(o_.knobs.max_placed));
  }

  /// Every operator on all devices or some, micro-batches one after another. Returns whether more of these
  /// are worth a try: hardly where a plan keeps all that it makes, for smaller operators and more of them are
  /// no gain.
  bool shardings(int micro_batches) {
    tried_plan c;
    c.what = "shardings";
    c.micro_batches = micro_batches;
    if (too_large(micro_batches)) {
      refuse_size(std::move(c));
      return false;
    }
    told_.goes_on("shardings, " + std::to_string(micro_batches) + " micro-batches");
    search::search_options s = each_;
    s.micro_batches = micro_batches;
    computation_graph const graph = ir::rebatch(given_, batch_ / micro_batches / axes_.own());
    // each is compared with its like, so that rules end no search that goes on without them
    auto const consider = [&](char const* how, double& least, computation_graph const& made,
                              search::search_result found) {
      tried_plan x = c;
      x.what += how;
      if (!found.feasible()) {
        lacks(std::move(x), *found.infeasible);
        return true;
      }
      bool const saves = found.plan.saves_more_than_updates();
      offer(std::move(x), made, std::move(found.plan));
      double const before = std::exchange(least, std::min(least, r_.tried.back().seconds));
      return saves && r_.tried.back().seconds <= before;
    };
    micro_batches_.push_back(micro_batches);
    search::search_result found = search::optimize(graph, on_, model_, s);
    std::vector<op_strategy> const apart = found.plan.nodes;
    bool const short_of = !found.feasible() || found.plan.saves_more_than_updates();
    bool more = consider("", plain_, graph, std::move(found));
    constexpr double hopeless = 1.3;               // neither overlap nor more micro-batches gain that
    tried_plan const& last = r_.tried.back();
    if (last.feasible() ? last.seconds > hopeless * fastest() : o_.effort == effort::quick && r_.chosen >= 0)
      return false;
    if (on_.size() > 1 && (short_of || o_.effort != effort::quick))
      if (search::search_result other = overlapping(graph, s); other.plan.nodes != apart)
        more = consider(", overlapped", plain_, graph, std::move(other)) || more;
    if (o_.effort == effort::thorough)
      if (auto x = rewritten_shardings(graph, on_, model_, s, o_.knobs.rules))
        more = consider(", rewritten", rewritten_, x->graph, std::move(x->found)) || more;
    return more;
  }

  /// Plans of degrees for all operators alike, with ZeRO, and pipelines where 1F1B is asked for. Those that
  /// may be faster than any without rules, each once. `data_alone`: data parallelism, which is little work.
  void degrees(bool data_alone) {
    told_.begins(data_alone ? "data parallelism" : "degrees of parallelism");
    search::degree_limits const limits = degrees_of(o_, each_, data_alone);
    if (!ranking_) ranking_.emplace(configured_.emplace(asked_, on_, model_), asked_, model_);
    int offered = 0;
    for (search::ranked_config const& x : ranking_->run(limits, declared_)) {
      if (++offered > 2 && x.seconds >= declared_) return;
      search::parallel_config const& g = x.config;
      tried_plan c{"degrees: " + search::text_of(g), static_cast<int>(batch_ / g.data / g.micro_batch),
                   g.pipeline > 1 ? g.pipeline * g.virtual_stages : 0,
                   g.prefetch, x.seconds, x.peak, x.infeasible, {}};
      constexpr double gain = 0.02;                    // that another prefetch may bring
      if (x.infeasible || x.seconds * (1 - gain) >= declared_) add(std::move(c));
      else if (too_large(c.micro_batches)) refuse_size(std::move(c));
      else {
        search::configured_plan made = configured_->plan_of(g);
        auto const ahead = search::prefetch_of_few(*configured_, g, asked_, model_);
        offer(std::move(c), made.graph, std::move(made.plan), ahead);
      }
    }
  }

  /// Shardings for steps that communicate while they compute: what is communicated counts for what it slows
  /// computing down, and there is room for what is prefetched.
  search::search_result overlapping(computation_graph const& graph, search::search_options s) const {
    s.prefetch = 2;
    s.compare = false;
    double const slower = std::max(0.05, 1 - search::speed_while_communicating(on_));
    return search::optimize(graph, on_, search::weighed_lanes<M>{model_, 1, slower}, s);
  }
  /// No step of the numbers of micro-batches that were looked at is shorter. This is about operators on the
  /// space's meshes from the first device on. If the plan runs operators side by side, it is about all that
  /// do so, too; if it has stages, about all plans.
  double bound_of_steps() const {
    plan const& p = r_.plan;
    auto const step = [&](int k) {
      computation_graph const g = ir::rebatch(given_, batch_ / k / axes_.own());
      return differentiate(g, {each_.loss, each_.optimizer, k, each_.reduction});
    };
    if (!p.pipeline.empty())
      return std::min(p.step_seconds,
                      search::detail::work_bound(step(1), on_, model_, each_.scalar_bytes));
    bool together = true;
    for (op_strategy const& n : p.nodes) together = together && n.sharding.start == p.nodes[0].sharding.start;
    double least = p.step_seconds;
    std::vector<int> tried = micro_batches_;
    if (std::find(tried.begin(), tried.end(), p.micro_batches) == tried.end())
      tried.push_back(p.micro_batches);
    for (int k : tried) {
      search::search_options s = each_;
      s.micro_batches = k;
      search::search_space const space = search::space_for(on_, s);
      search::objective_options const o{together ? on_.size() : space.grain, s.scalar_bytes, k};
      least = std::min(least, search::step_bound_of(step(k), on_, model_, o, space.shardings,
                                                    s.mapping.elimination, communicates_longer_).seconds);
    }
    return least;
  }

  /// Stages by this schedule; where those that keep everything do not fit, also such that compute again and
  /// share the optimizer's state.
  void stages(search::schedule_kind kind, char const* how, computation_graph const& few,
              plan const& rewritten) {
    std::string const name = std::string(name_of(kind)) + how;
    told_.begins("pipelines, " + name);
    tried_plan c;
    c.what = name;
    search::stage_options some = o_.knobs.stages;
    if (!some.threads) some.threads = o_.threads;
    if (some.micro_batches.empty())
      for (i64 n : divisors_in_a_row(batch_ / axes_.own())) some.micro_batches.push_back(n * axes_.own());
    std::erase_if(some.micro_batches, [&](i64 b) { return too_large(batch_ / b); });
    if (some.micro_batches.empty()) return refuse_size(std::move(c));
    std::vector<std::vector<int>> before;
    for (int v = 0; v < few.node_count(); ++v) before.push_back(few.predecessors(v));
    auto const offered = [&](tried_plan x, plan p) {
      p.serial = rewritten.serial;
      p.rewrites = rewritten.rewrites;
      offer(std::move(x), few, std::move(p));
    };
    try {
      search::fitted_stages found;
      for (bool const saving : {false, true}) {
        search::graph_stages<M> const model(few, on_, model_,
                                            stages_of(asked_, o_, on_, each_, batch_, saving));
        found = search::fit_stages(before, few, on_, model, some, kind, 12, fastest());
        if (found.feasible() || !each_.save_memory) break;
      }
      if (!found.feasible()) return lacks(std::move(c), *found.infeasible);
      for (std::size_t s = 0; s < found.plan.pipeline.stages.size(); ++s)
        c.micro_batches = std::max(c.micro_batches, found.plan.pipeline.micro_batches(static_cast<int>(s)));
      search::mapped_stages mapped = search::map_within(few, found.plan, model_, each_);
      bool const other = !(mapped.plan == found.plan);
      tried_plan within = c;
      within.what += ", mapped";
      offered(std::move(c), std::move(found.plan));
      if (other) offered(std::move(within), std::move(mapped.plan));
    // a schedule for other stages, operators that cut samples apart
    } catch (error const& e) {
      c.what = name;
      refuse(std::move(c), e.what());
    }
  }

 public:
  plan_search(training_problem const& p, machine const& on, M const& model, planning_options const& o)
      : asked_(p),
        format_(p.format()),
        given_(at_precision(p.graph, format_)),
        axes_(given_),
        batch_(p.samples == 0 ? axes_.own() : p.samples),
        on_(at_precision(on, format_)),
        model_(model),
        o_(o),
        schedules_(schedules_of(o)),
        each_(search_of(p, o)),
        told_{o.watch, on_.size() == 1 ? 1 : 3 + schedules_.size() * (o.effort == effort::thorough ? 2 : 1)} {
    char const* const here = "plan_training";
    require_machine(on_);
    search::detail::require_bound(given_);
    require_scratch(p.scratch, each_.scalar_bytes, here);
    if (batch_ < 1 || batch_ % axes_.own())
      throw error("a batch of " + std::to_string(batch_) + " samples for a graph of " +
                  std::to_string(axes_.own()), here, "a multiple of the graph's batch");
    i64 const parts = batch_ / axes_.own();
    bool const several = parts > 1 && (o.micro_batches != std::vector{1} || !schedules_.empty());
    if (int const loss = given_.output(p.loss); loss >= 0)
      each_.reduction = ir::reduction_of(given_, loss, p.reduction, several, true);
    std::string const whole = std::to_string(parts) + ", the batch by the graph's own";
    for (int k : o.micro_batches)
      if (k < 1 || k > max_micro_batches || parts % k)
        throw error(std::to_string(k) + " micro-batches", here, "numbers that divide " + whole);
    for (i64 b : o.knobs.stages.micro_batches)
      if (b < axes_.own() || b % axes_.own() || parts % (b / axes_.own()))
        throw error("micro-batches of " + std::to_string(b) + " samples", here,
                    std::to_string(axes_.own()) + " times numbers that divide " + whole);
    if (o.effort != effort::thorough && o.knobs.rules.rules)
      throw error("rules for a search that applies none", here, "effort::thorough");
  }

  planned run() {
    std::vector<int> numbers = o_.micro_batches;
    if (numbers.empty())
      for (i64 k : divisors_in_a_row(batch_ / axes_.own()))
        if (k <= max_micro_batches) numbers.push_back(static_cast<int>(k));
    if (on_.size() > 1) degrees(true);
    told_.begins("shardings");
    bool const all = !o_.micro_batches.empty();
    bool more = shardings(numbers.front()) || all;
    if (on_.size() > 1) degrees(false);                // a bar for more micro-batches, which take longer
    for (std::size_t i = 1; i < numbers.size() && more; ++i) more = shardings(numbers[i]) || all;
    return pipelines();
  }
  /// Pipelines, and what was tried before.
  planned pipelines() {
    if (on_.size() > 1) {
      for (search::schedule_kind k : schedules_) stages(k, "", given_, {});
      std::optional<rewritten_candidate> x;
      if (o_.effort == effort::thorough && !schedules_.empty())
        x = rewritten_for_stages(given_, usual_samples(), on_, model_, each_, o_.knobs.rules);
      if (x) for (search::schedule_kind k : schedules_) stages(k, ", rewritten", x->graph, x->found.plan);
    }
    return answer();
  }

 private:
  planned answer() { return r_.chosen >= 0 ? sealed() : nothing_found(); }
  /// The plan that was chosen, with its step: for all devices, unless these are too many.
  planned sealed() {
    bool const all = placed(r_.best().micro_batches) * on_.size() <= static_cast<double>(o_.knobs.max_listed);
    r_.step = all ? step_of(r_.graph, r_.plan, asked_.loss, asked_.scratch)
                  : step_to_simulate(r_.graph, r_.plan, asked_.loss, asked_.scratch);
    for (plan* p : {&r_.plan, &r_.step.plan}) {
      p->model = asked_.name;
      p->step_seconds = r_.tried[idx(r_.chosen)].seconds;
      p->cost = p->pipeline.empty() ? p->step_seconds : 0;
      p->bound = 0;
      p->batch = batch_;
      p->scratch = asked_.scratch.policy;
    }
    if (r_.plan.rewrites.empty()) r_.plan.bound = r_.step.plan.bound = bound_of_steps();
    program_seal const s = seal_of(r_.step.program, on_.size());
    s.write(r_.plan);
    s.write(r_.step.plan);
    return std::move(r_);
  }
  planned nothing_found() {
    bool proven = false;
    for (tried_plan const& c : r_.tried)
      if (c.infeasible) {
        proven = proven || c.infeasible->proven;
        if (!r_.infeasible || c.infeasible->missing < r_.infeasible->missing) r_.infeasible = c.infeasible;
      }
    if (r_.infeasible) r_.infeasible->proven = proven;
    r_.plan.infeasible = r_.infeasible;
    r_.plan.model = asked_.name;
    if (!r_.infeasible)
      throw error("nothing to choose from: " +
                      (r_.tried.empty() ? "no kind of plan is allowed" : r_.tried.front().refused),
                  "plan_training", "fewer operators or micro-batches, or a larger max_placed");
    return std::move(r_);
  }
};

/// `plan_training` by one type of model.
template <cost::cost_model M>
planned fastest_plan(training_problem const& problem, machine const& on, M const& model,
                     planning_options const& options) {
  return plan_search<M>(problem, on, model, options).run();
}

}  // namespace tensorpar::detail
