// tensorpar/simulate/pipeline.hpp - a pipeline's passes run in virtual time, nothing but dependencies and
// durations
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/program/schedule.hpp>

namespace tensorpar::simulation {

/// Seconds of a stage's passes over one of its own micro-batches. A stage that does not split its backward
/// pass takes
/// `backward + weights` for it, so the same numbers serve every schedule.
struct stage_seconds {
  double forward = 1, backward = 1, weights = 0;
  double update = 0;       // once, after the last pass of the stage's group
  double activation = 1;   // what one micro-batch keeps, in any unit: bytes, or shares of a micro-batch
  // once, when the first forward pass could start: until weights of other stages are there
  double wait = 0;
  friend bool operator==(stage_seconds const&, stage_seconds const&) = default;
};

/// What moves between two stages: seconds from the end of the producer's pass until the consumer's may start.
/// Occupies no one.
struct stage_transfer {
  int from = 0, to = 0;
  double forward = 0, backward = 0;
  friend bool operator==(stage_transfer const&, stage_transfer const&) = default;
};

struct pipeline_costs {
  std::vector<stage_seconds> stages;
  std::vector<stage_transfer> transfers;   // edges not named take no time
  // where a stage splits: the share of its activations that B frees; W frees the rest
  double freed_at_backward = 0;
  friend bool operator==(pipeline_costs const&, pipeline_costs const&) = default;
};

struct pass_times { double start = 0, end = 0; };

struct pipeline_run {
  double makespan = 0;                            // until all passes and updates have ended
  // by group: seconds at work, start of the first pass, end of the last or of the update
  std::vector<double> busy, first, last;
  // by stage: most samples between the start of forward and the end of backward
  std::vector<i64> in_flight;
  std::vector<double> activations;                // by group: most activation units held at once
  std::vector<std::vector<pass_times>> passes;    // by group, beside the order; empty unless asked for

  double idle(int group) const { return makespan - busy[idx(group)]; }
  double busiest() const { return busy.empty() ? 0 : *std::max_element(busy.begin(), busy.end()); }
  /// The longest time from a group's first pass to its last: an iteration where the next may start without
  /// waiting for all.
  double span() const {
    double most = 0;
    for (std::size_t g = 0; g < first.size(); ++g) most = std::max(most, last[g] - first[g]);
    return most;
  }
  /// Idle time of the busiest group: within the iteration, and within the longest span (Qi et al. 2024 count
  /// the latter).
  double bubble() const { return makespan - busiest(); }
  double span_bubble() const { return span() - busiest(); }
};

/// Runs orders of one pipeline: what follows from stages, edges and costs is prepared once, so that a search
/// may run many orders.
class pipeline_simulator {
 public:
  /// O(stages + edges * transfers). Throws `error` if `require_schedulable` does, or costs are missing,
  /// negative or not finite.
  pipeline_simulator(pipeline const& p, passes::stage_edges const& edges, pipeline_costs const& c);

  /// Every group runs its order, a pass starting when the group is free and the passes that it depends on
  /// have ended (C4, C5) and their results have arrived. An order may lack passes at its end that no other
  /// pass waits for. O(passes * edges per stage), about 20 ns a pass. Throws `error` naming the pass for an
  /// order that is not one of this pipeline or that waits for ever.
  pipeline_run run(std::vector<std::vector<pass_entry>> const& order, bool keep_passes = false);

  /// The same for searches: null instead of an error for an order that waits for ever; overwritten by the
  /// next call.
  pipeline_run const* attempt(std::vector<std::vector<pass_entry>> const& order, bool keep_passes = false) {
    latest_idle_.assign(idx(groups_), infinity);
    return execute(order, keep_passes);
  }
  /// The same for complete orders, and null as soon as it shows that `group` (-1: any) ends later than `most`
  /// seconds.
  pipeline_run const* attempt_within(std::vector<std::vector<pass_entry>> const& order, double most,
                                     int group = -1) {
    latest_idle_.assign(idx(groups_), infinity);
    for (std::size_t g = 0; g < latest_idle_.size(); ++g)
      if (group < 0 || g == idx(group)) latest_idle_[g] = most * (1 + 1e-9) - work_[g];
    pipeline_run const* r = execute(order, false);
    return r && (group < 0 ? r->makespan : r->last[idx(group)]) <= most ? r : nullptr;
  }

 private:
  /// Another stage that a pass waits for: its micro-batch number ((k + 1) * mul - 1) / div, one of the two
  /// being 1.
  struct wait { int stage; int mul, div; double delay; };
  struct state {
    int group, micro_batches;
    i64 samples;
    bool split;
    double seconds[3], update, wait, kept, freed[3];
    std::size_t base;                                         // where its micro-batches start in ended_
    int wait_begin[3];                                        // of forward, of backward, end
  };
  std::vector<state> stages_;
  std::vector<wait> waits_;
  int groups_ = 0;
  // one run
  // by group: all its seconds; how long it may wait
  std::vector<double> work_, latest_idle_;
  std::vector<double> ended_[2], clock_, held_;
  // by 3 stage + pass; list heads; links by group; groups to look at
  std::vector<int> done_, waiting_, next_, ready_;
  std::vector<std::size_t> at_;
  bool too_late_ = false;
  pipeline_run run_;

  [[noreturn]] static void bad(pass_entry const& e, std::size_t group, std::size_t place, std::string what,
                               std::string valid) {
    throw error(std::string(name_of(e.what)) + " " + std::to_string(e.micro_batch) + " of stage " +
                    std::to_string(e.stage) + what,
                "order of group " + std::to_string(group) + ", entry " + std::to_string(place),
                std::move(valid));
  }
  pipeline_run const* execute(std::vector<std::vector<pass_entry>> const& order, bool keep_passes);
  void advance(std::size_t g, std::vector<pass_entry> const& order, pipeline_run& r,
               std::vector<pass_times>* times);
  bool starts(state const& x, pass_entry const& e, int g, double& start);
  void wake(std::size_t slot) {
    for (int g = waiting_[slot]; g >= 0; g = next_[idx(g)]) ready_.push_back(g);
    waiting_[slot] = -1;
  }
};

inline pipeline_simulator::pipeline_simulator(pipeline const& p, passes::stage_edges const& edges,
                                              pipeline_costs const& c)
    : groups_(static_cast<int>(p.groups.size())) {
  passes::require_schedulable(p, edges);
  if (c.stages.size() != p.stages.size())
    throw error("costs of " + std::to_string(c.stages.size()) + " stages", "pipeline costs",
                std::to_string(p.stages.size()) + " of them");
  auto const good = [](double x) { return x >= 0 && x < infinity; };
  if (!(c.freed_at_backward >= 0 && c.freed_at_backward <= 1))
    throw error("a share of " + std::to_string(c.freed_at_backward), "pipeline_costs.freed_at_backward",
                "from 0 to 1");
  for (std::size_t i = 0; i < c.transfers.size(); ++i) {
    stage_transfer const& t = c.transfers[i];
    std::string const where = "pipeline_costs.transfers[" + std::to_string(i) + "]";
    if (!good(t.forward) || !good(t.backward))
      throw error("times of " + std::to_string(t.forward) + " and " + std::to_string(t.backward) + " s",
                  where, "finite and not negative");
    bool edge = t.from >= 0 && t.to >= 0 && idx(t.to) < edges.size();
    if (edge) {
      auto const& before = edges[idx(t.to)];
      edge = std::find(before.begin(), before.end(), t.from) != before.end();
    }
    if (!edge)
      throw error("from stage " + std::to_string(t.from) + " to stage " + std::to_string(t.to), where,
                  "an edge of the pipeline");
  }
  passes::stage_edges const out = passes::reversed_edges(edges);
  work_.assign(p.groups.size(), 0);
  std::size_t base = 0;
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    pipeline_stage const& x = p.stages[s];
    stage_seconds const& t = c.stages[s];
    struct { char const* name; double value;
    } const all[] = {{"forward", t.forward}, {"backward", t.backward},     {"weights", t.weights},
                     {"update", t.update},   {"activation", t.activation}, {"wait", t.wait}};
    for (auto const& field : all)
      if (!good(field.value))
        throw error(std::string(field.name) + " of " + std::to_string(field.value),
                    "pipeline_costs.stages[" + std::to_string(s) + "]", "finite and not negative");
    bool const split = x.split_backward;
    double const early = split ? c.freed_at_backward * t.activation : t.activation;
    state y{x.group,
            p.micro_batches(static_cast<int>(s)),
            x.micro_batch,
            split,
            {t.forward, split ? t.backward : t.backward + t.weights, t.weights},
            t.update,
            t.wait,
            t.activation,
            {0, early, t.activation - early},
            base,
            {0, 0, 0}};
    base += idx(y.micro_batches);
    work_[idx(x.group)] +=
        (t.forward + t.backward + t.weights) * y.micro_batches + t.update;
    for (int way = 0; way < 2; ++way) {
      y.wait_begin[way] = static_cast<int>(waits_.size());
      for (int o : way == 0 ? edges[s] : out[s]) {
        i64 const theirs = p.stages[idx(o)].micro_batch, mine = x.micro_batch;
        wait w{o, static_cast<int>(std::max<i64>(1, mine / theirs)),
               static_cast<int>(std::max<i64>(1, theirs / mine)), 0};
        for (stage_transfer const& z : c.transfers)
          if (z.from == (way == 0 ? o : static_cast<int>(s)) && z.to == (way == 0 ? static_cast<int>(s) : o))
            w.delay = way == 0 ? z.forward : z.backward;
        waits_.push_back(w);
      }
    }
    y.wait_begin[2] = static_cast<int>(waits_.size());
    stages_.push_back(y);
  }
  for (auto& e : ended_) e.resize(base);
}

// May the pass start, and when? If not, the group is filed under the pass it waits for.
inline bool pipeline_simulator::starts(state const& x, pass_entry const& e, int g, double& start) {
  int const way = e.what == pass::forward ? 0 : 1;
  for (int i = x.wait_begin[way]; i < x.wait_begin[way + 1]; ++i) {
    wait const& w = waits_[idx(i)];
    int const k = w.div > 1 ? e.micro_batch / w.div : (e.micro_batch + 1) * w.mul - 1;
    std::size_t const slot = 3 * idx(w.stage) + idx(way);
    if (done_[slot] <= k) {
      next_[idx(g)] = waiting_[slot];
      waiting_[slot] = g;
      return false;
    }
    start = std::max(
        start,
        ended_[way][stages_[idx(w.stage)].base + idx(k)] + w.delay);
  }
  return true;
}

inline void pipeline_simulator::advance(std::size_t g, std::vector<pass_entry> const& order, pipeline_run& r,
                                        std::vector<pass_times>* times) {
  std::size_t i = at_[g];
  double now = clock_[g], held = held_[g], most = r.activations[g], busy = r.busy[g];
  for (; i < order.size(); ++i) {
    pass_entry const& e = order[i];
    if (e.stage < 0 || idx(e.stage) >= stages_.size() ||
        stages_[idx(e.stage)].group != static_cast<int>(g))
      bad(e, g, i, "", "a stage of this group");
    state const& x = stages_[idx(e.stage)];
    std::size_t const kind = idx(e.what), slot = 3 * idx(e.stage);
    if (kind > 2 || (kind == 2 && !x.split))
      bad(e, g, i, "", "forward and backward, and weights where the stage splits");
    if (e.micro_batch != done_[slot + kind] || e.micro_batch >= x.micro_batches)
      bad(e, g, i, "",
          "micro-batches of each kind in ascending order, " + std::to_string(x.micro_batches) + " of them");
    if (kind > 0 && done_[slot + kind - 1] <= e.micro_batch)
      bad(e, g, i, "", "after the forward pass, weights after the backward pass");
    double start = now;
    if (kind < 2 && !starts(x, e, static_cast<int>(g), start)) break;
    if (kind == 0 && e.micro_batch == 0) start += x.wait;
    if (start - busy > latest_idle_[g]) {
      too_late_ = true;
      break;
    }
    if (i == 0) r.first[g] = start;
    now = start + x.seconds[kind];
    busy += x.seconds[kind];
    if (times) times->push_back({start, now});
    if (kind < 2) ended_[kind][x.base + idx(e.micro_batch)] = now;
    if (kind == 0) {
      held += x.kept;
      most = std::max(most, held);
      i64 const flying = (e.micro_batch + 1 - done_[slot + 1]) * x.samples;
      r.in_flight[idx(e.stage)] =
          std::max(r.in_flight[idx(e.stage)], flying);
    } else {
      held -= x.freed[kind];
    }
    ++done_[slot + kind];
    if (waiting_[slot + kind] >= 0) wake(slot + kind);
  }
  at_[g] = i;
  clock_[g] = now;
  held_[g] = held;
  r.activations[g] = most;
  r.busy[g] = busy;
}

inline pipeline_run const* pipeline_simulator::execute(std::vector<std::vector<pass_entry>> const& order,
                                                       bool keep_passes) {
  std::size_t const n = idx(groups_);
  if (order.size() != n)
    throw error("orders of " + std::to_string(order.size()) + " groups", "pipeline",
                std::to_string(n) + " of them");
  pipeline_run& r = run_;
  r.makespan = 0;
  for (auto* by_group : {&r.busy, &r.first, &r.last, &r.activations, &clock_, &held_}) by_group->assign(n, 0);
  r.in_flight.assign(stages_.size(), 0);
  r.passes.assign(keep_passes ? n : 0, {});
  for (std::size_t g = 0; g < r.passes.size(); ++g) r.passes[g].reserve(order[g].size());
  done_.assign(3 * stages_.size(), 0);
  waiting_.assign(3 * stages_.size(), -1);
  next_.assign(n, -1);
  at_.assign(n, 0);
  ready_.clear();
  too_late_ = false;
  for (int g = groups_ - 1; g >= 0; --g) ready_.push_back(g);
  while (!ready_.empty() && !too_late_) {
    std::size_t const g = idx(ready_.back());
    ready_.pop_back();
    advance(g, order[g], r, keep_passes ? &r.passes[g] : nullptr);
  }
  for (std::size_t g = 0; g < n; ++g)
    if (at_[g] < order[g].size()) return nullptr;
  for (state const& x : stages_) {
    std::size_t const g = idx(x.group);
    clock_[g] += x.update;
    r.busy[g] += x.update;
  }
  for (std::size_t g = 0; g < n; ++g) r.makespan = std::max(r.makespan, r.last[g] = clock_[g]);
  return &r;
}

inline pipeline_run pipeline_simulator::run(std::vector<std::vector<pass_entry>> const& order,
                                            bool keep_passes) {
  if (pipeline_run const* r = attempt(order, keep_passes)) return *r;
  std::size_t g = 0;
  while (at_[g] == order[g].size()) ++g;
  bad(order[g][at_[g]], g, at_[g], " waits for ever",
      "orders in which what a pass waits for comes first (see check_orders)");
}

/// One run with the pipeline's own order; see `pipeline_simulator`.
inline pipeline_run simulate_pipeline(pipeline const& p, passes::stage_edges const& edges,
                                      pipeline_costs const& c, bool keep_passes = false) {
  return pipeline_simulator(p, edges, c).run(p.schedule, keep_passes);
}

}  // namespace tensorpar::simulation
