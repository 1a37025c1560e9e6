// tensorpar/peers/rivals.hpp - what users of other trainers and planners run, at its best: the fastest of
// each kind that fits, under the same prices, simulator and memory
#pragma once
#include <algorithm>
#include <string>
#include <tensorpar/cost/model_ref.hpp>
#include <tensorpar/ir/rebatch.hpp>
#include <tensorpar/peers/strategies.hpp>
#include <tensorpar/search/candidates.hpp>
#include <tensorpar/search/degrees/ranking.hpp>
#include <tensorpar/search/joint/joint.hpp>
#include <tensorpar/search/overlapped.hpp>
#include <utility>
#include <vector>

namespace tensorpar::peers {

/// A plan of another system's kind. Executors, checker and reports take it as any other.
struct rival {
  std::string name;                      // "Megatron"
  // "tensor 8, pipeline 4 x 2, data 8, ..."; of planners what they choose among
  std::string settings;
  computation_graph graph;               // that the plan runs
  tensorpar::plan plan;
  search::simulated_plan step;           // step.infeasible: what it lacks at least
  std::string refused;                   // why there is none
  bool fits() const { return refused.empty() && !step.infeasible; }
};

struct rival_options {
  // configurations of a kind that are simulated at most, those of least estimates
  int simulated = 32;
  bool planners = true;                  // Alpa's, Unity's and experts' kinds too; these take longest
  int threads = 0;                       // 0: one per processor. The result is the same for any number
};

namespace detail {

template <cost::cost_model M> class rival_search {
  training_problem const& asked_;
  machine const on_;
  M const model_;
  rival_options const& o_;
  search::configurations<M> all_;
  std::vector<rival> r_;

  /// The fastest of these configurations, in full and with the prefetch that suits it.
  void configured(char const* name, search::degree_limits limits) {
    limits.simulated = o_.simulated;
    limits.threads = o_.threads;
    rival best;
    best.name = name;
    best.refused = "no such degrees divide " + std::to_string(all_.samples()) + " samples on " +
                   std::to_string(on_.size()) + " devices";
    for (search::ranked_config const& x : search::rank_configurations(all_, asked_, model_, limits)) {
      if (best.refused.empty() && (x.infeasible || (best.fits() && x.seconds >= best.step.seconds))) break;
      search::configured_plan made = all_.plan_of(x.config);
      rival now{name, {}, std::move(made.graph), std::move(made.plan), {}, {}};
      std::optional<int> const ahead = search::prefetch_of_few(all_, x.config, asked_, model_);
      now.step = search::overlapped(now.graph, now.plan, asked_, model_, infinity, ahead);
      search::parallel_config told = x.config;
      told.prefetch = now.plan.prefetch = now.step.prefetch;
      now.settings = search::text_of(told);
      if (!best.refused.empty() || (now.fits() && (!best.fits() || now.step.seconds < best.step.seconds)))
        best = std::move(now);
    }
    r_.push_back(std::move(best));
  }
  /// Stages and shardings inside them, by 1F1B (Zheng et al. 2022): two levels, without overlap.
  void alpa() {
    planning_options o{.schedules = std::vector{search::schedule_kind::one_f_one_b}, .threads = o_.threads};
    rival x{"Alpa's kind", "stages by 1F1B, shardings inside them", {}, {}, {}, {}};
    try {
      planned p = tensorpar::detail::plan_search<M>(asked_, on_, model_, o).pipelines();
      if (p.infeasible) x.step.infeasible = p.infeasible;
      else {
        x.graph = std::move(p.graph);
        x.plan = std::move(p.plan);
        x.step = search::simulated(x.graph, x.plan, asked_, model_);
      }
    } catch (error const& e) {
      x.refused = e.what();
    }
    r_.push_back(std::move(x));
  }
  /// The whole batch at once, one sharding by operator without regard to overlap, all kept: with rules first
  /// (Unger et al. 2022), and as experts shard (`expert`).
  void whole_batch() {
    planning_options const o{.effort = effort::thorough, .threads = o_.threads};
    search::joint_options joint;
    static_cast<search::rewriting_knobs&>(joint) = o.knobs.rules;
    joint.search = tensorpar::detail::search_of(asked_, o);
    joint.search.save_memory = false;
    precision const format = asked_.format();
    computation_graph const few = at_precision(asked_.graph, format);
    computation_graph const g = ir::rebatch(few, all_.samples() / all_.own());
    auto const put = [&](char const* name, char const* settings, computation_graph graph, plan p) {
      p.precision = format;
      p.batch = all_.samples();
      rival x{name, settings, std::move(graph), std::move(p), {}, {}};
      x.step = search::simulated(x.graph, x.plan, asked_, model_);
      r_.push_back(std::move(x));
    };
    search::joint_result u = search::optimize_jointly(g, all_.on(), model_, joint);
    if (u.feasible()) put("Unity's kind", "rules and shardings, without overlap", u.graph, u.plan);
    else r_.push_back({"Unity's kind", "rules and shardings, without overlap", {}, {}, {}, {}});
    if (!u.feasible()) r_.back().step.infeasible = u.infeasible;
    for (search::baseline const& b : strategies(g, all_.on(), model_, joint.search, {.mcmc_steps = 0})) {
      if (b.name != "expert") continue;
      plan p = one_device_plan(g, {asked_.loss, asked_.optimizer, 1, asked_.reduction});
      p.cluster = all_.on();
      p.nodes = b.nodes;
      put("experts' kind", "heavy weights split, the rest by samples", g, std::move(p));
    }
  }

 public:
  rival_search(training_problem const& asked, machine const& on, M const& model, rival_options const& o)
      : asked_(asked), on_(on), model_(model), o_(o), all_(asked, on, model_) {}

  std::vector<rival> run() {
    using ir::zero_stage;
    using search::recomputation;
    std::vector<recomputation> const any{recomputation::none, recomputation::selective, recomputation::full};
    search::degree_limits data{.max_tensor = 1, .max_pipeline = 1};
    data.sharding = {zero_stage::none};
    data.recompute = {recomputation::none};
    configured("DDP", data);
    data.recompute = any;
    data.sharding = {zero_stage::updates, zero_stage::gradients};
    configured("ZeRO-2", data);
    data.sharding = {zero_stage::weights};
    configured("FSDP", data);
    search::degree_limits megatron;
    megatron.sharding = {zero_stage::none, zero_stage::updates};
    configured("Megatron", megatron);
    if (o_.planners && on_.size() > 1) {
      alpa();
      whole_batch();
    }
    return std::move(r_);
  }
};

}  // namespace detail

/// What a plan has to beat, each with its settings:
/// - DDP: data parallelism, everything kept; ZeRO-2: updates shared, and gradients where that helps; FSDP:
///   weights shared (ZeRO-3). All with the size of micro-batches, recomputation and prefetch that suit them
///   best.
/// - Megatron: tensor parallelism within the innermost links x pipeline x virtual stages x data x size of
///   micro-batches x recomputation x distributed optimizer, with sequence parallelism.
/// - planners' kinds, where asked for: Alpa's, Unity's and experts'. They are this library's searches put
///   under those systems' restrictions, not those systems.
/// Of configurations those with the least estimates are simulated (`search::rank_configurations`). Throws
/// `error` as `plan_training` does. Deterministic.
template <cost::cost_model M>
std::vector<rival> rivals(training_problem const& asked, machine const& on, M const& model,
                          rival_options const& o = {}) {
  return detail::rival_search<cost::model_ref>(asked, on, cost::model_ref(model), o).run();
}
template <class M>
  requires(!cost::cost_model<M>)
cost::cost_model_lack<M> rivals(training_problem const&, machine const&, M const&, rival_options const& = {});

}  // namespace tensorpar::peers
