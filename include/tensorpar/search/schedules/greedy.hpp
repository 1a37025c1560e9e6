// tensorpar/search/schedules/greedy.hpp - a backward pass wherever it costs no time: Algorithm 4 of the thesis
#pragma once
#include <tensorpar/search/schedules/orders.hpp>
#include <tensorpar/simulate/pipeline.hpp>

namespace tensorpar {

namespace detail {

/// A stage and all that depends on it as a pipeline of its own, the stage first: it can take in a micro-batch at any time.
class stage_and_below {
  pipeline p_;
  stage_edges e_;
  pipeline_costs c_;
  int stage_;
  std::vector<std::vector<pass_entry>> order_;   // of those below, in this pipeline's numbers

 public:
  stage_and_below(pipeline const& p, stage_edges const& e, pipeline_costs const& c, int stage) : stage_(stage) {
    std::vector<int> number(p.stages.size(), -1);
    p_.mini_batch = p.mini_batch;
    c_.freed_at_backward = c.freed_at_backward;
    for (std::size_t s = static_cast<std::size_t>(stage); s < p.stages.size(); ++s) {
      std::vector<int> from;
      for (int u : e[s])
        if (number[static_cast<std::size_t>(u)] >= 0) from.push_back(number[static_cast<std::size_t>(u)]);
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
      for (pass_entry x : p.order[static_cast<std::size_t>(p.stages[s].group)]) {
        x.stage = i;
        order_.back().push_back(x);
      }
    }
    for (stage_transfer t : c.transfers) {
      if (t.from < 0 || t.to < 0 || std::max(t.from, t.to) >= static_cast<int>(number.size())) continue;
      t.from = number[static_cast<std::size_t>(t.from)];
      t.to = number[static_cast<std::size_t>(t.to)];
      if (t.from >= 0 && t.to >= 0) c_.transfers.push_back(t);
    }
  }

  /// The stage's order of `forwards` (f forward passes before backward pass number k, for each k) as entries.
  std::vector<pass_entry> entries(std::vector<int> const& forwards, int stage) const {
    std::vector<pass_entry> o;
    int f = 0;
    for (std::size_t k = 0; k < forwards.size(); ++k) {
      for (; f < forwards[k]; ++f) o.push_back({stage, pass::forward, f});
      o.push_back({stage, pass::backward, static_cast<int>(k)});
      if (p_.stages[0].split_backward) o.push_back({stage, pass::weights, static_cast<int>(k)});
    }
    return o;
  }
  /// Algorithm 4. `forwards[k]`: how many forward passes precede backward pass k.
  std::vector<pass_entry> greedy() {
    pipeline_simulator run(p_, e_, c_);
    int const m = p_.micro_batches(0);
    std::vector<int> forwards(static_cast<std::size_t>(m), m);
    auto const seconds = [&] {
      order_[0] = entries(forwards, 0);
      pipeline_run const* r = run.attempt(order_);
      return r ? r->last[0] : 1e300;   // it may wait for ever: a successor's micro-batch is larger than what is in flight
    };
    // All forward passes first: whatever lies below gets its input as early as it can, so nothing is faster.
    double const best = seconds() * (1 + 1e-12);
    int f = 1;
    for (int b = 0; b < m;) {
      bool fits = b < f;
      if (fits) {  // this backward pass now, then one forward and one backward in turn
        for (int k = b; k < m; ++k) forwards[static_cast<std::size_t>(k)] = std::min(m, f + k - b);
        fits = seconds() <= best;
      }
      if (fits || f == m) forwards[static_cast<std::size_t>(b++)] = f;
      else ++f;
    }
    return entries(forwards, stage_);
  }
};

}  // namespace detail

/// The greedy scheduler (thesis, section 3.10.1, Algorithm 4): from the last stage to the first, and in each stage as many backward passes
/// as early as the stage's running time allows, its successors' orders given. Theorem 3.1 as far as it holds: of all orders of a stage
/// with the least running time, this one keeps the fewest samples in flight, given the orders of those below. O(stages * micro-batches *
/// passes). Throws `error` if a group has several stages or costs are bad.
inline pipeline greedy_schedule(pipeline p, stage_edges const& e, pipeline_costs const& c) {
  detail::require_own_groups(p, e, "the greedy schedule");
  pipeline_simulator const checked(p, e, c);
  p.order.assign(p.groups.size(), {});
  for (int s = static_cast<int>(p.stages.size()) - 1; s >= 0; --s)
    p.order[static_cast<std::size_t>(p.stages[static_cast<std::size_t>(s)].group)] = detail::stage_and_below(p, e, c, s).greedy();
  return p;
}

}  // namespace tensorpar
