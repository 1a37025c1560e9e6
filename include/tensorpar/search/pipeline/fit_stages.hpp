// tensorpar/search/pipeline/fit_stages.hpp - the pipeline whose program is fastest of those that fit into
// memory: programs are unrolled
#pragma once
#include <algorithm>
#include <cstdio>
#include <optional>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/core/thread_pool.hpp>
#include <tensorpar/cost/model_ref.hpp>
#include <tensorpar/program/unroll.hpp>
#include <tensorpar/search/intra/fitting.hpp>
#include <tensorpar/search/pipeline/schedules/microbatch.hpp>
#include <tensorpar/search/pipeline/to_plan.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <thread>

namespace tensorpar::search {

/// A pipeline as a plan, and what its program comes to. Exactly one of `infeasible` and a plan with stages.
struct fitted_stages {
  // what the program lacks that lacked least of those tried; of estimates if none was unrolled
  std::optional<shortage> infeasible;
  tensorpar::plan plan;                // under the schedule that was asked for
  stage_result stages;
  // bytes by device; with kernels' scratch where plan.scratch names their policy
  std::vector<i64> arena;
  double seconds = 0;                  // of a step: the program simulated
  int tried = 0;                       // programs unrolled
  bool feasible() const { return !infeasible; }
};

namespace detail {

/// By device, what a pipeline's stages are estimated to take.
inline std::vector<double> estimated_bytes(stage_result const& r, int devices) {
  std::vector<double> bytes(idx(devices), 0);
  for (std::size_t s = 0; s < r.choices.size(); ++s) {
    device_range const g = r.pipeline.groups[idx(r.pipeline.stages[s].group)];
    for (int d = g.first; d < g.first + g.count; ++d) bytes[idx(d)] += r.cost.bytes[s];
  }
  return bytes;
}

/// `found` with the stages of another pipeline of the same search, priced by this model.
template <stage_model M> stage_result with_stages(M const& m, stage_result found, stage_result const& other) {
  std::vector<found_stage> stages;
  for (std::size_t s = 0; s < other.choices.size(); ++s) {
    pipeline_stage const& x = other.pipeline.stages[s];
    stages.push_back(
        {x.nodes, other.choices[s], other.pipeline.groups[idx(x.group)].first});
  }
  found.pipeline = other.pipeline;
  found.choices = other.choices;
  found.source = other.source;
  found.cost = cost_of(m, stages);
  found.family_bound = std::min(found.family_bound, found.cost.bottleneck);
  found.bound = std::min(found.bound, found.cost.bottleneck);
  found.gap = (found.cost.bottleneck - found.bound) / found.cost.bottleneck;
  return found;
}

/// Schedules and unrolls pipelines, each once: what their steps take when simulated, and whether they fit
/// into memory.
template <cost::cost_model C> class program_judge final : public step_judge {
 public:
  struct program_of {
    stage_result stages;
    tensorpar::plan plan;
    std::vector<i64> arena;
    std::optional<shortage> lacks;
    double seconds = 0;
    std::optional<error> refused;      // then nothing of the above but the stages
  };

 private:
  computation_graph const& forward_;
  machine const& on_;
  graph_stages<C> const& model_;
  schedule_kind kind_;
  double bar_;
  std::vector<i64> room_;
  std::vector<program_of> all_;
  int best_ = -1;
  core::thread_pool workers_;

  static constexpr int at_once = 4;        // programs
  static int members(int threads) {
    return std::min(
        at_once, threads > 0 ? threads : std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
  }
  program_of const* known(stage_result const& r) const {
    for (program_of const& p : all_)
      if (p.stages.pipeline == r.pipeline && p.stages.choices == r.choices) return &p;
    return nullptr;
  }
  /// Whoever found them, they are priced and scheduled by the model, which the calling thread alone asks.
  void unroll_all(std::vector<stage_result const*> const& found) {
    std::vector<program_of> made(found.size());
    std::vector<std::optional<program>> programs(found.size());
    std::vector<simulation::task_prices> prices(found.size());
    auto const attempt = [&](std::size_t i, auto const& f) {
      if (made[i].refused) return;
      try { f(made[i]); } catch (error const& e) { made[i].refused = e; }
    };
    for (std::size_t i = 0; i < found.size(); ++i) {
      made[i].stages = *found[i];
      attempt(i, [&](program_of& p) {
        stage_result r = with_stages(model_, *found[i], *found[i]);
        auto const scheduled = make_schedule(kind_, r.pipeline, edges_of(r), costs_of(r));
        if (!scheduled)
          throw error("schedule " + std::string(name_of(kind_)) + " does not fit these stages", "fit_stages",
                      "another schedule");
        require_near(r, *scheduled);
        p.plan = plan_of(forward_, on_, model_, *scheduled, r.choices);
        p.stages = std::move(r);
      });
    }
    int const n = static_cast<int>(found.size());
    workers_.run(n, [&](int k, int) {
      std::size_t const i = idx(k);
      graph_stage_options const& asked = model_.options();
      attempt(i, [&](program_of& p) {
        programs[i] = unroll(passes::pipeline_pass(forward_, p.plan, asked.loss),
                             {.workspace = asked.scratch.rule, .lockstep = true});
      });
    });
    for (std::size_t i = 0; i < found.size(); ++i)
      attempt(i, [&](program_of&) { prices[i] = simulation::price(*programs[i], on_, model_.prices()); });
    workers_.run(n, [&](int k, int) {
      std::size_t const i = idx(k);
      attempt(i, [&](program_of& p) {
        p.seconds = simulate(*programs[i], on_, prices[i], {true, false}).seconds;
        p.arena = std::move(programs[i]->arena);
      });
      programs[i].reset();                 // large
    });
    for (std::size_t i = 0; i < found.size(); ++i) {
      program_of& p = made[i];
      if (!p.refused) {
        p.lacks = shortage_in(p.arena, room_, false);
        if (!p.lacks && (best_ < 0 || p.seconds < best()->seconds * (1 - 1e-9)))
          best_ = static_cast<int>(all_.size());
      }
      all_.push_back(std::move(p));
    }
  }

  /// Throws `error` where passes that do nothing but compute, in the schedule's order, take a tenth longer
  /// than what there is already.
  void require_near(stage_result const& r, pipeline const& scheduled) const {
    if (bar_ == infinity) return;
    simulation::pipeline_costs alone;
    for (std::size_t s = 0; s < r.choices.size(); ++s) {
      double forward = 0, whole = 0;
      int const first = r.pipeline.groups[idx(r.pipeline.stages[s].group)].first;
      for (int v : r.pipeline.stages[s].nodes) {
        auto const [own, all] = model_.min_seconds(v, r.choices[s], first);
        forward += own;
        whole += all;
      }
      stage_work const& w = r.cost.work[s];
      double const rest = w.backward + w.weights, weights = rest > 0 ? w.weights / rest : 0;
      alone.stages.push_back({forward, (whole - forward) * (1 - weights), (whole - forward) * weights});
    }
    double const least = simulation::simulate_pipeline(scheduled, edges_of(r), alone).makespan;
    if (least <= 1.1 * bar_) return;
    char text[64];
    std::snprintf(text, sizeof text, "passes alone take %.3g s, a step of %.3g s is known", least, bar_);
    throw error(text, "fit_stages", "stages that may be faster");
  }

 public:
  program_judge(computation_graph const& forward, machine const& on, graph_stages<C> const& model,
                schedule_kind kind, int threads = 1, double bar = infinity)
      : forward_(forward), on_(on), model_(model), kind_(kind), bar_(bar), room_(on.memories()),
        workers_(members(threads)) {}
  /// The fastest that fits, of those asked about.
  program_of const* best() const { return best_ < 0 ? nullptr : &all_[idx(best_)]; }
  int unrolled() const {
    return static_cast<int>(
        std::count_if(all_.begin(), all_.end(), [](program_of const& p) { return !p.refused; }));
  }

  /// No program of the pipeline takes less: operators alone keep some device busy for so many seconds. Stages
  /// whose operators may run side by side with what they send each other, or of which the program may compute
  /// less than is priced, count for nothing.
  double least(stage_result const& r) const {
    double most = 0;
    for (std::size_t s = 0; s < r.choices.size(); ++s) {
      stage_choice const& c = r.choices[s];
      if (c.tensor > 1 || c.recompute) continue;
      double sum = 0;
      int const first = r.pipeline.groups[idx(r.pipeline.stages[s].group)].first;
      for (int v : r.pipeline.stages[s].nodes) sum += model_.min_seconds(v, c, first).second;
      most = std::max(most,
                      sum * static_cast<double>(r.pipeline.mini_batch) / static_cast<double>(c.micro_batch));
    }
    return most;
  }
  bool hopeless(stage_result const& r) const { return best() && least(r) > best()->seconds * (1 + 1e-9); }

  /// Unrolls some at a time, always as many, so that what is found does not depend on the threads.
  void look_ahead(std::vector<stage_result> const& all) override {
    std::vector<stage_result const*> some;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!known(all[i]) && !hopeless(all[i])) some.push_back(&all[i]);
      if (some.size() < idx(at_once) && i + 1 < all.size()) continue;
      if (workers_.size() > 1) unroll_all(some);
      else for (stage_result const* r : some) unroll_all({r});
      some.clear();
    }
  }
  double seconds(stage_result const& r) override {
    if (hopeless(r)) return infinity;
    program_of const& p = of(r);
    return p.lacks ? infinity : p.seconds;
  }
  /// What lacked least, of those asked about; null if all fit, or none was.
  shortage const* closest() const {
    shortage const* least = nullptr;
    for (program_of const& p : all_)
      if (p.lacks && (!least || p.lacks->missing < least->missing)) least = &*p.lacks;
    return least;
  }
  /// Throws `error` where the schedule does not fit the stages, and as `pipeline_pass` does.
  program_of const& of(stage_result const& found) {
    if (!known(found)) unroll_all({&found});
    program_of const& p = *known(found);
    if (p.refused) throw error(*p.refused);
    return p;
  }
};

}  // namespace detail

/// `find_stages`, judged by simulated programs. Estimates of steps take a pass for a whole that waits for all
/// its input, and count what crosses a border in both stages. They price all transfers over the links between
/// the stages furthest apart. Estimates of memory add up over operators. They know neither what lives for
/// part of a pass only, nor how buffers lie beside each other. So candidates (see `find_stages`: `judge`) are
/// scheduled, unrolled and simulated. Of those whose arenas fit into the devices' memories the fastest is
/// taken.
/// Candidates come from transfers over the outermost links, and once more for each level of links below, from
/// transfers that stay within it. Where none fits, pipelines are sought whose estimates leave as much more
/// room as was lacking, in up to `most` searches, until the estimate finds none. Objectives other than
/// `iteration` have one candidate, their answer.
/// `bar`: seconds of a step that is known already. Pipelines whose passes take a tenth longer even if they
/// only compute are not unrolled.
/// `model`: of this graph on this machine; loss, optimizer and size of numbers are its own. Throws `error` as
/// `find_stages` and `make_schedule` do, where the schedule does not fit the stages, and where none is left.
/// Deterministic. O(levels * find_stages + tried * unrolling), each as often as searches are made.
template <graph::topology G, cost::cost_model C>
fitted_stages fit_stages(G const& graph, computation_graph const& forward, machine const& on,
                         graph_stages<C> const& model, stage_options const& o = {},
                         schedule_kind kind = schedule_kind::one_f_one_b, int most = 12,
                         double bar = infinity) {
  using namespace detail;
  fitted_stages r;
  program_judge<C> judge(forward, on, model, kind, o.threads, bar);
  auto const nearer = model.nearer();
  double share = 1;  // of all memories, that estimates may fill
  for (int round = 0; round < most; ++round) {
    stage_result const found =
        find_stages(graph, stages_with_memory<graph_stages<C>>(model, share), o, &judge);
    if (!found.feasible()) {
      if (round > 0) break;
      i64 const lacks = static_cast<i64>(found.infeasible->lacks),
                room = on.kind_of(found.infeasible->device).memory;
      r.plan.infeasible = r.infeasible = shortage{found.infeasible->device, lacks, room + lacks, room, false};
      return r;
    }
    if (o.objective == stage_objective::iteration)
      for (graph_stages<C> const& x : nearer)
        find_stages(graph, stages_with_memory<graph_stages<C>>(x, share), o, &judge);
    auto const& p = judge.best() ? *judge.best() : judge.of(found);
    r.tried = judge.unrolled();
    if (!p.lacks) {
      r.infeasible.reset();
      r.plan = p.plan;
      r.stages = with_stages(model, found, p.stages);
      r.arena = p.arena;
      r.seconds = p.seconds;
      return r;
    }
    r.infeasible = *judge.closest();
    std::vector<double> const said = estimated_bytes(found, on.size());
    double next = share * 0.98;
    for (std::size_t d = 0; d < said.size(); ++d)
      if (p.arena[d] > on.kind_of(static_cast<int>(d)).memory)
        next = std::min(next, said[d] / static_cast<double>(p.arena[d]));
    share = next;
  }
  r.plan.infeasible = r.infeasible;
  return r;
}

#ifdef TENSORPAR_COMPILED
extern template class graph_stages<cost::model_ref>;
extern template stage_result find_stages(std::vector<std::vector<int>> const&,
    detail::stages_with_memory<graph_stages<cost::model_ref>> const&, stage_options const&, step_judge*);
extern template fitted_stages fit_stages(std::vector<std::vector<int>> const&, computation_graph const&,
    machine const&, graph_stages<cost::model_ref> const&, stage_options const&, schedule_kind, int, double);
#endif

}  // namespace tensorpar::search
