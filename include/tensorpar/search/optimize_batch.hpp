// tensorpar/search/optimize_batch.hpp - from a graph of few samples, a batch and a machine to a plan:
// micro-batches, shardings, stages
#pragma once
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <tensorpar/program/planned_step.hpp>
#include <tensorpar/search/intra/optimize.hpp>
#include <tensorpar/search/pipeline/fit_stages.hpp>
#include <tensorpar/search/pipeline/map_within.hpp>

namespace tensorpar {

struct batch_options {
  search_options search;                 // `micro_batches`, `order` and `compare` are not looked at
  // of plans without stages: numbers that are tried; empty: 1 and, where memory is short, more
  std::vector<int> micro_batches;
  // of pipelines; empty: none
  std::vector<schedule_kind> schedules{schedule_kind::one_f_one_b, schedule_kind::zb_h1};
  stage_options stages;                  // `threads` is that of `search`
  // parts of an operator inside stages; 0: as many as the innermost links join
  int max_tensor = 0;
  // operators times micro-batches times devices of a program that is looked at. A seventh of that takes 260
  // MB; of pipelines there are as many at once as threads, up to 4
  i64 max_placed = i64{1} << 21;
};

/// One of the plans that were compared. Only what is feasible is a plan.
struct batch_candidate {
  // "shardings", or the schedule of a pipeline; ", rewritten": of a graph that rules made
  std::string what;
  int micro_batches = 1;                 // of stages the largest number
  int stages = 0;
  // of a step: its program simulated, where there is one
  double seconds = std::numeric_limits<double>::infinity();
  i64 peak = 0;                          // bytes of the largest arena
  std::optional<shortage> infeasible;    // then no plan of this kind was found
  std::string refused;                   // why none was looked for
  bool feasible() const { return !infeasible && refused.empty(); }
};

struct batch_result {
  std::optional<shortage> infeasible;    // what lacked least; then there is no plan
  // that the plan runs: the given one on more samples, and after the plan's rewrites
  computation_graph graph;
  tensorpar::plan plan;                  // `step_seconds` is its program's
  // bytes by device; with kernels' scratch where plan.scratch names their policy
  std::vector<i64> arena;
  std::vector<batch_candidate> tried;
  int chosen = -1;                       // of those
  bool feasible() const { return !infeasible; }
};

namespace detail {

/// Divisors of n from 1 to n, each a multiple of the one before by n's next prime factor, which is as small
/// as it may be. Factors above `max_micro_batches` are not told apart. O(max_micro_batches) at most.
inline std::vector<i64> divisors_in_a_row(i64 n) {
  std::vector<i64> r{1};
  for (i64 p = 2; n > 1;) {
    while (n % p != 0 && p <= max_micro_batches && p * p <= n) ++p;
    i64 const factor = n % p == 0 ? p : n;
    r.push_back(r.back() * factor);
    n /= factor;
  }
  return r;
}

/// What rules make of a graph; nothing where no rule is applied (search/optimize_batch_jointly.hpp).
struct batch_rules {
  struct changed {
    computation_graph graph;
    search_result found;                                           // its plan has the rewrites
  };
  virtual ~batch_rules() = default;
  // for the machine
  virtual std::optional<changed> sharding(computation_graph const&, search_options const&) const = 0;
  // the graph of few samples, changed for a device that has so many
  virtual std::optional<changed> alone(i64 samples) const = 0;
};

/// Keeps the fastest of the plans that it is told of.
template <cost_model M> class batch_search {
  computation_graph const& given_;
  i64 batch_;
  machine const& on_;
  M const& model_;
  batch_options const& o_;
  batch_rules const* rules_;
  batch_axes axes_;
  loss_reduction reduction_ = loss_reduction::as_graph;  // the same in all of them
  // seconds of the fastest shardings
  double plain_ = std::numeric_limits<double>::infinity(), rewritten_ = plain_;
  batch_result r_;

  /// Of a device, if all have as many, or fewer.
  i64 usual_samples() const {
    i64 most = axes_.own();
    for (i64 n : divisors_in_a_row(batch_ / axes_.own()))
      if (n * axes_.own() * on_.size() <= batch_) most = n * axes_.own();
    return most;
  }
  bool too_large(i64 micro_batches) const {
    return static_cast<double>(micro_batches) * given_.node_count() * on_.size() >
           static_cast<double>(o_.max_placed);
  }

  /// A plan's program, simulated and compared with the fastest so far.
  void offer(batch_candidate c, computation_graph const& graph, plan p) {
    planned_step const s = step_of(graph, p, o_.search.loss, o_.search.scratch);
    std::vector<i64> room;
    for (int d = 0; d < on_.size(); ++d) room.push_back(on_.kind_of(d).memory);
    c.infeasible = shortage_in(s.program.arena, room, false);
    c.seconds = simulate(s.program, on_, model_, {true, false}).seconds;
    c.peak = *std::max_element(s.program.arena.begin(), s.program.arena.end());
    c.stages = static_cast<int>(p.pipeline.stages.size());
    bool const better =
        c.feasible() && (r_.chosen < 0 || c.seconds < r_.tried[idx(r_.chosen)].seconds * (1 - 1e-9));
    r_.tried.push_back(std::move(c));
    if (!better) return;
    r_.chosen = static_cast<int>(r_.tried.size()) - 1;
    r_.graph = graph;
    r_.arena = s.program.arena;
    r_.plan = std::move(p);
    r_.plan.model = o_.search.model;
    r_.plan.step_seconds = r_.tried.back().seconds;
    r_.plan.batch = batch_;
    r_.plan.scratch = o_.search.scratch.policy;
  }
  void lacks(batch_candidate c, shortage const& s) {
    c.infeasible = s;
    r_.tried.push_back(std::move(c));
  }
  void refuse(batch_candidate c, std::string why) {
    c.refused = std::move(why);
    r_.tried.push_back(std::move(c));
  }

  /// Every operator on all devices or some, micro-batches one after another. Returns whether more of these
  /// are worth a try: hardly where a plan keeps all that it makes, for smaller operators and more of them are
  /// no gain.
  bool shardings(int micro_batches) {
    batch_candidate c;
    c.what = "shardings";
    c.micro_batches = micro_batches;
    if (too_large(micro_batches)) {
      refuse(std::move(c), "more operators on devices than " + std::to_string(o_.max_placed));
      return false;
    }
    search_options s = o_.search;
    s.micro_batches = micro_batches;
    s.reduction = reduction_;
    s.compare = false;
    s.max_listed = std::numeric_limits<i64>::max();                // max_placed is what counts here
    s.order.clear();
    computation_graph const graph = rebatch(given_, batch_ / micro_batches / axes_.own());
    // each is compared with its like, so that rules end no search that goes on without them
    auto const consider = [&](char const* how, double& least, computation_graph const& made,
                              search_result found) {
      batch_candidate x = c;
      x.what += how;
      if (!found.feasible()) {
        lacks(std::move(x), *found.infeasible);
        return true;
      }
      bool const saves = found.plan.saves_memory();
      offer(std::move(x), made, std::move(found.plan));
      double const before = std::exchange(least, std::min(least, r_.tried.back().seconds));
      return saves && r_.tried.back().seconds <= before;
    };
    bool more = consider("", plain_, graph, optimize(graph, on_, model_, s));
    if (rules_)
      if (auto x = rules_->sharding(graph, s))
        more = consider(", rewritten", rewritten_, x->graph, std::move(x->found)) || more;
    return more;
  }

  graph_stage_options stage_degrees(bool saving) const {
    graph_stage_options g;
    g.mini_batch = batch_;
    g.loss = o_.search.loss;
    g.optimizer = o_.search.optimizer;
    g.reduction = reduction_;
    g.scalar_bytes = o_.search.scalar_bytes;
    g.scratch = o_.search.scratch;
    g.max_tensor = o_.max_tensor > 0  ? o_.max_tensor
                    : on_.links.empty() ? 1
                                        : static_cast<int>(on_.links.front().group);
    g.recompute = g.shard_optimizer = saving;
    return g;
  }
  /// Stages by this schedule; where those that keep everything do not fit, also such that compute again and
  /// share the optimizer's state.
  void stages(schedule_kind kind, char const* how, computation_graph const& few, plan const& rewritten) {
    std::string const name = std::string(name_of(kind)) + how;
    batch_candidate c;
    c.what = name;
    stage_options some = o_.stages;
    some.threads = o_.search.threads;
    if (some.micro_batches.empty())
      for (i64 n : divisors_in_a_row(batch_ / axes_.own())) some.micro_batches.push_back(n * axes_.own());
    std::erase_if(some.micro_batches, [&](i64 b) { return too_large(batch_ / b); });
    if (some.micro_batches.empty())
      return refuse(std::move(c), "more operators on devices than " + std::to_string(o_.max_placed));
    std::vector<std::vector<int>> before;
    for (int v = 0; v < few.node_count(); ++v) before.push_back(few.predecessors(v));
    auto const offered = [&](batch_candidate x, plan p) {
      p.serial = rewritten.serial;
      p.rewrites = rewritten.rewrites;
      offer(std::move(x), few, std::move(p));
    };
    try {
      fitted_stages found;
      for (bool const saving : {false, true}) {
        graph_stages<M> const model(few, on_, model_, stage_degrees(saving));
        found = fit_stages(before, few, on_, model, some, kind);
        if (found.feasible() || !o_.search.save_memory) break;
      }
      if (!found.feasible()) return lacks(std::move(c), *found.infeasible);
      for (std::size_t s = 0; s < found.plan.pipeline.stages.size(); ++s)
        c.micro_batches = std::max(c.micro_batches, found.plan.pipeline.micro_batches(static_cast<int>(s)));
      mapped_stages mapped = map_within(few, found.plan, model_, o_.search);
      bool const other = !(mapped.plan == found.plan);
      batch_candidate within = c;
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
  batch_search(computation_graph const& given, i64 samples, machine const& on, M const& model,
               batch_options const& o, batch_rules const* rules = nullptr)
      : given_(given), batch_(samples), on_(on), model_(model), o_(o), rules_(rules), axes_(given) {
    require_machine(on);
    require_bound(given);
    require_scratch(o.search.scratch, o.search.scalar_bytes, "optimize_batch");
    if (samples < 1 || samples % axes_.own())
      throw error(
          "a batch of " + std::to_string(samples) + " samples for a graph of " + std::to_string(axes_.own()),
          "optimize_batch", "a multiple of the graph's batch");
    i64 const parts = samples / axes_.own();
    bool const several = parts > 1 && (o.micro_batches != std::vector{1} || !o.schedules.empty());
    if (int const loss = given.output(o.search.loss); loss >= 0)
      reduction_ = reduction_of(given, loss, o.search.reduction, several, true);
    std::string const whole = std::to_string(parts) + ", the batch by the graph's own";
    for (int k : o.micro_batches)
      if (k < 1 || k > max_micro_batches || parts % k)
        throw error(std::to_string(k) + " micro-batches", "optimize_batch", "numbers that divide " + whole);
    for (i64 b : o.stages.micro_batches)
      if (b < axes_.own() || b % axes_.own() || parts % (b / axes_.own()))
        throw error("micro-batches of " + std::to_string(b) + " samples", "optimize_batch",
                    std::to_string(axes_.own()) + " times numbers that divide " + whole);
  }
  batch_result run() {
    for (int k : o_.micro_batches) shardings(k);
    if (o_.micro_batches.empty())
      for (i64 k : divisors_in_a_row(batch_ / axes_.own()))
        if (k > max_micro_batches || !shardings(static_cast<int>(k))) break;
    if (on_.size() > 1) {
      for (schedule_kind k : o_.schedules) stages(k, "", given_, {});
      std::optional<batch_rules::changed> x;
      if (rules_ && !o_.schedules.empty()) x = rules_->alone(usual_samples());
      if (x) for (schedule_kind k : o_.schedules) stages(k, ", rewritten", x->graph, x->found.plan);
    }
    if (r_.chosen >= 0) return std::move(r_);
    bool proven = false;
    for (batch_candidate const& c : r_.tried)
      if (c.infeasible) {
        proven = proven || c.infeasible->proven;
        if (!r_.infeasible || c.infeasible->missing < r_.infeasible->missing) r_.infeasible = c.infeasible;
      }
    if (r_.infeasible) r_.infeasible->proven = proven;
    r_.plan.infeasible = r_.infeasible;
    r_.plan.model = o_.search.model;
    if (!r_.infeasible)
      throw error("nothing to choose from: " +
                      (r_.tried.empty() ? "no kind of plan is allowed" : r_.tried.front().refused),
                  "optimize_batch", "fewer devices, fewer operators, or a larger max_placed");
    return std::move(r_);
  }
};

}  // namespace detail

/// The fastest plan for a training step on so many `samples`: how many micro-batches, and whether these run
/// through sharding operators one after another (`optimize`, for one number of micro-batches after another)
/// or through the stages of a pipeline (`fit_stages` for each schedule, then `map_within`). What each comes
/// up with is unrolled and simulated under the same cost model, and the fastest program whose arenas fit is
/// taken; all are told. `forward`: the graph of as few samples as make sense (usually one), by which
/// micro-batches are counted; all its inputs have their samples along the first axis. The plan runs
/// `result.graph`, on batches of all samples: `executor<...> run(result.graph, result.plan)`.
/// More micro-batches without stages are tried while nothing fits or the plan for fewer computes again or
/// keeps parts, and until a step gets longer. A pipeline may have one stage: that is another way to shard
/// the same operators.
/// Rewrites and functions computed with their operators are for `optimize_batch_jointly`; orders of stages
/// that come back to a device are not looked for. Operators that mix samples (batch normalisation) do so
/// within each micro-batch, as everywhere.
/// Throws `error` as `optimize` and `rebatch` (operators that fix how many samples there are) do, for a batch
/// that is no multiple of the graph's, and where nothing may be looked at; why a schedule cannot be stands
/// beside it. Deterministic. Takes as long as all of these together, nearly all of it for unrolling
/// pipelines.
template <cost_model M>
batch_result optimize_batch(computation_graph const& forward, i64 samples, machine const& on, M const& model,
                            batch_options const& o = {}) {
  return detail::batch_search<M>(forward, samples, on, model, o).run();
}
template <class M>
  requires(!cost_model<M>)
cost_model_lack<M> optimize_batch(computation_graph const&, i64, machine const&, M const&,
                                  batch_options const& = {});

}  // namespace tensorpar
