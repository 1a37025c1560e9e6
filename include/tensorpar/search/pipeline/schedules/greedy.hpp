// tensorpar/search/pipeline/schedules/greedy.hpp - a backward pass wherever it costs no time: Algorithm 4 of
// the thesis
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/pipeline/schedules/orders.hpp>
#include <tensorpar/simulate/pipeline.hpp>

namespace tensorpar::search {

namespace detail {

/// A stage's order, written as how many forward passes precede each backward pass, as entries under the
/// number `as`.
inline std::vector<pass_entry> entries(pipeline const& p, int stage, std::vector<int> const& forwards,
                                       int as) {
  bool const split = p.stages[idx(stage)].split_backward;
  std::vector<pass_entry> o;
  o.reserve(forwards.size() * 3);
  int f = 0;
  for (std::size_t k = 0; k < forwards.size(); ++k) {
    for (; f < forwards[k]; ++f) o.push_back({as, pass::forward, f});
    o.push_back({as, pass::backward, static_cast<int>(k)});
    if (split) o.push_back({as, pass::weights, static_cast<int>(k)});
  }
  return o;
}

/// The loop of Algorithm 4: from the first pass to the last a backward pass wherever `good` says that it and
/// from then on one forward and one backward pass in turn will do, else a forward pass.
template <class Good> std::vector<int> earliest_backwards(int m, Good const& good) {
  std::vector<int> forwards(idx(m), m);
  int f = 1, known = -1;
  for (int b = 0; b < m;) {
    bool now = b < f;
    if (now && f < m && f != known) {
      for (int k = b; k < m; ++k) forwards[idx(k)] = std::min(m, f + k - b);
      now = good(forwards);
    }
    if (now) {
      forwards[idx(b++)] = f;
      known = f + 1;   // one more forward pass and then this one: what has just been found good
    } else {
      ++f;
    }
  }
  return forwards;
}

/// A stage and all that depends on it as a pipeline of its own, the stage first: it can take in a micro-batch
/// at any time.
class stage_and_below {
  pipeline p_;
  passes::stage_edges e_;
  simulation::pipeline_costs c_;
  int stage_;
  std::vector<std::vector<pass_entry>> order_;   // of those below, in this pipeline's numbers

 public:
  stage_and_below(pipeline const& p, passes::stage_edges const& e, simulation::pipeline_costs const& c,
                  int stage)
      : stage_(stage) {
    std::vector<int> number(p.stages.size(), -1);
    p_.mini_batch = p.mini_batch;
    c_.freed_at_backward = c.freed_at_backward;
    for (std::size_t s = idx(stage); s < p.stages.size(); ++s) {
      std::vector<int> from;
      for (int u : e[s])
        if (number[idx(u)] >= 0) from.push_back(number[idx(u)]);
      if (from.empty() && static_cast<int>(s) != stage) continue;
      int const i = static_cast<int>(p_.stages.size());
      number[s] = i;
      p_.stages.push_back(p.stages[s]);
      p_.stages.back().group = i;
      p_.groups.push_back({i, 1});
      c_.stages.push_back(c.stages[s]);
      c_.stages.back().update = 0;
      e_.push_back(from);
      order_.emplace_back();
      for (pass_entry x : p.schedule[idx(p.stages[s].group)]) {
        x.stage = i;
        order_.back().push_back(x);
      }
    }
    for (simulation::stage_transfer t : c.transfers) {
      if (t.from < 0 || t.to < 0 || std::max(t.from, t.to) >= static_cast<int>(number.size())) continue;
      t.from = number[idx(t.from)];
      t.to = number[idx(t.to)];
      if (t.from >= 0 && t.to >= 0) c_.transfers.push_back(t);
    }
  }

  /// Algorithm 4.
  std::vector<pass_entry> greedy() {
    simulation::pipeline_simulator run(p_, e_, c_);
    // All forward passes first: whatever lies below gets its input as early as it can, so nothing is faster.
    int const m = p_.micro_batches(0);
    order_[0] = entries(p_, 0, std::vector<int>(idx(m), m), 0);
    double const best = run.run(order_).last[0] * (1 + 1e-12);
    auto const forwards = earliest_backwards(m, [&](std::vector<int> const& f) {
      order_[0] = entries(p_, 0, f, 0);
      return run.attempt_within(order_, best, 0) != nullptr;
    });
    return entries(p_, 0, forwards, stage_);
  }
};

}  // namespace detail

/// The greedy scheduler (thesis, section 3.10.1, Algorithm 4): from the last stage to the first, and in each
/// stage backward passes as early as the stage's running time allows, its successors' orders given. Theorem
/// 3.1 as far as it holds: a stage that can take in micro-batches at any time has the least running time, and
/// the fewest samples in flight for it, given the orders below. The whole pipeline is as fast as any where
/// all stages have one micro-batch size and take equally long (as far as exhaustive search went); else it may
/// be beaten, even by 1F1B (docs/algorithms.md), see `refined_greedy`. O(stages * micro-batches * passes).
/// Throws `error` if a group has several stages or costs are bad.
inline pipeline greedy_schedule(pipeline p, passes::stage_edges const& e,
                                simulation::pipeline_costs const& c) {
  detail::require_own_groups(p, e, "the greedy schedule");
  simulation::pipeline_simulator const checked(p, e, c);
  p.schedule.assign(p.groups.size(), {});
  for (int s = static_cast<int>(p.stages.size()) - 1; s >= 0; --s)
    p.schedule[idx(p.stages[idx(s)].group)] =
        detail::stage_and_below(p, e, c, s).greedy();
  return p;
}

/// The greedy idea on the whole pipeline. It starts from the best of five orders: Algorithm 4's, 1F1B, GPipe,
/// and kFkB with the stages' k, once with the in-flight samples of the table and once with those that are
/// always enough. Sweeps go from the last stage to the first. Each gives a stage the earliest backward passes
/// that the iteration's time allows, all other orders given. They end when a sweep changes neither time nor
/// samples in flight, or after `sweeps`. Never slower than the five. O(sweeps * stages * micro-batches *
/// passes).
inline pipeline refined_greedy(pipeline p, passes::stage_edges const& e, simulation::pipeline_costs const& c,
                               int sweeps = 3) {
  pipeline best = greedy_schedule(p, e, c);
  simulation::pipeline_simulator run(p, e, c);
  auto const held = [&](simulation::pipeline_run const& r) {
    double all = 0;
    for (i64 i : r.in_flight) all += static_cast<double>(i);
    return all;
  };
  simulation::pipeline_run const first = run.run(best.schedule);
  double least = first.makespan, samples = held(first);
  auto const better = [&](simulation::pipeline_run const* r) {
    if (!r || r->makespan > least * (1 + 1e-12)) return false;
    return r->makespan < least * (1 - 1e-12) || held(*r) < samples;
  };
  for (pipeline const& o : {one_f_one_b(p, e), k_f_k_b(p, e, in_flight_samples(p, e, in_flight)),
                            k_f_k_b(p, e, in_flight_samples(p, e, in_flight_grouped)), gpipe(p, e)})
    if (simulation::pipeline_run const* r = run.attempt(o.schedule); better(r)) {
      least = r->makespan;
      samples = held(*r);
      best.schedule = o.schedule;
    }
  for (bool changed = true; changed && sweeps > 0; --sweeps) {
    changed = false;
    for (int s = static_cast<int>(p.stages.size()) - 1; s >= 0; --s) {
      int const m = p.micro_batches(s);
      auto& mine = best.schedule[idx(p.stages[idx(s)].group)];
      std::vector<pass_entry> const before = mine;
      mine = detail::entries(p, s, std::vector<int>(idx(m), m), s);
      simulation::pipeline_run const* r = run.attempt(best.schedule);
      double const wanted = (r ? std::min(least, r->makespan) : least) * (1 + 1e-12);
      auto const forwards = detail::earliest_backwards(m, [&](std::vector<int> const& f) {
        mine = detail::entries(p, s, f, s);
        return run.attempt_within(best.schedule, wanted) != nullptr;
      });
      mine = detail::entries(p, s, forwards, s);
      r = run.attempt(best.schedule);
      if (better(r)) {
        least = r->makespan;
        samples = held(*r);
        changed = true;
      } else {
        mine = before;
      }
    }
  }
  return best;
}

}  // namespace tensorpar::search
