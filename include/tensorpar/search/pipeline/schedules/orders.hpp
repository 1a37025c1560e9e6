// tensorpar/search/pipeline/schedules/orders.hpp - the orders that fixed rules give: GPipe, 1F1B, kFkB
#pragma once
#include <algorithm>
#include <tensorpar/core/index.hpp>
#include <tensorpar/program/schedule.hpp>
#include <tensorpar/search/pipeline/schedules/in_flight.hpp>

namespace tensorpar::search {

namespace detail {

/// A backward pass, and where the stage splits its weights pass at once: as if it did not split.
inline void put_backward(std::vector<pass_entry>& o, pipeline const& p, int stage, int micro_batch) {
  o.push_back({stage, pass::backward, micro_batch});
  if (p.stages[idx(stage)].split_backward)
    o.push_back({stage, pass::weights, micro_batch});
}

inline void require_own_groups(pipeline const& p, passes::stage_edges const& e, char const* schedule) {
  passes::require_schedulable(p, e);
  if (!passes::one_stage_per_group(p))
    throw error(std::string("several stages on one group under ") + schedule, "pipeline",
                "one stage per group, or another schedule");
}

}  // namespace detail

/// By stage, the samples to keep in flight: the last stages k b, the others what `rule(k_x, b_x, k_y, b_y,
/// i_y)` says, the most of all successors y (thesis, section 3.10.2), in whole micro-batches and never more
/// than the mini-batch. Rules: `in_flight_table`, `in_flight_grouped`, an `in_flight_ratio`. O(stages +
/// edges) calls. Throws `error` if `require_schedulable` does.
template <class Rule>
std::vector<i64> in_flight_samples(pipeline const& p, passes::stage_edges const& e, Rule&& rule) {
  passes::require_schedulable(p, e);
  std::vector<i64> least(p.stages.size(), 0);
  for (std::size_t s = p.stages.size(); s-- > 0;) {
    pipeline_stage const& x = p.stages[s];
    i64 const whole =
        (std::max<i64>(least[s], x.k * x.micro_batch) + x.micro_batch - 1) / x.micro_batch * x.micro_batch;
    least[s] = std::min(p.mini_batch, whole);
    for (int u : e[s]) {
      pipeline_stage const& y = p.stages[idx(u)];
      i64& i = least[idx(u)];
      i = std::max<i64>(i, rule(i64{y.k}, y.micro_batch, i64{x.k}, x.micro_batch, least[s]));
    }
  }
  return least;
}

/// kFkB for one stage (thesis, section 3.6, footnote 7): `warm_up` forward passes, then k backward and k
/// forward passes in turn until no forward pass is left, then the rest. 1F1B: k = 1. O(micro-batches).
inline std::vector<pass_entry> k_f_k_b_order(pipeline const& p, int stage, i64 warm_up, int k) {
  int const m = p.micro_batches(stage), first = static_cast<int>(std::clamp<i64>(warm_up, std::min(m, k), m));
  std::vector<pass_entry> o;
  o.reserve(idx(m) * 3);
  int f = 0, b = 0;
  for (; f < first; ++f) o.push_back({stage, pass::forward, f});
  while (b < m) {
    for (int i = 0; i < k && b < f; ++i) detail::put_backward(o, p, stage, b++);
    for (int i = 0; i < k && f < m; ++i) o.push_back({stage, pass::forward, f++});
  }
  return o;
}

/// kFkB with every stage's own k, given the samples each keeps in flight (from `in_flight_samples`). Several
/// stages of one size in a chain, p of them: bubble (p-1)(F+B+W), at stage s k(p-s) micro-batches in flight
/// with `in_flight_grouped` (Wang et al. 2023, Ada-Grouper), k+2(p-1-s) with the table where F = B and k > 1.
/// O(passes). Throws `error` if a group has several stages.
inline pipeline k_f_k_b(pipeline p, passes::stage_edges const& e, std::vector<i64> const& in_flight) {
  detail::require_own_groups(p, e, "kFkB");
  if (in_flight.size() != p.stages.size())
    throw error(std::to_string(in_flight.size()) + " in-flight samples", "kFkB",
                std::to_string(p.stages.size()) + ", one per stage");
  p.schedule.assign(p.groups.size(), {});
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    pipeline_stage const& x = p.stages[s];
    p.schedule[idx(x.group)] =
        k_f_k_b_order(p, static_cast<int>(s), in_flight[s] / x.micro_batch, x.k);
  }
  return p;
}

/// One forward, one backward (Narayanan et al. 2021, arXiv 2104.04473; Fan et al. 2021, DAPPLE), for any
/// stages that form a DAG and any micro-batch sizes: kFkB with k = 1. A chain of p stages: bubble
/// (p-1)(F+B+W), min(p-s, m) micro-batches in flight at stage s.
inline pipeline one_f_one_b(pipeline p, passes::stage_edges const& e) {
  for (pipeline_stage& s : p.stages) s.k = 1;
  auto const in_flight = in_flight_samples(p, e, search::in_flight);
  return k_f_k_b(std::move(p), e, in_flight);
}

/// All forward passes, then all backward passes (Huang et al. 2019, arXiv 1811.06965). Several stages of a
/// group one after the other, so with v chunks on each of p groups this is the breadth-first schedule
/// (Lamy-Poirier 2023, arXiv 2211.05953). A chain of p stages on p groups: bubble (p-1)(F+B+W), all m
/// micro-batches in flight. O(passes). Throws `error` if `require_schedulable` does.
inline pipeline gpipe(pipeline p, passes::stage_edges const& e) {
  passes::require_schedulable(p, e);
  p.schedule.assign(p.groups.size(), {});
  int const n = static_cast<int>(p.stages.size());
  auto const order = [&](int s) -> auto& {
    return p.schedule[idx(p.stages[idx(s)].group)];
  };
  for (int s = 0; s < n; ++s)
    for (int k = 0; k < p.micro_batches(s); ++k) order(s).push_back({s, pass::forward, k});
  for (int s = n - 1; s >= 0; --s)
    for (int k = 0; k < p.micro_batches(s); ++k) detail::put_backward(order(s), p, s, k);
  return p;
}

}  // namespace tensorpar::search
