// tensorpar/search/pipeline/schedules/zero_bubble.hpp - weight gradients put off, so that input gradients
// come sooner: ZB-H1 and ZB-H2
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/pipeline/schedules/orders.hpp>

namespace tensorpar::search {

namespace detail {

/// 1F1B after `warm_up` forward passes; a weights pass follows a backward pass once more than `pending` of
/// them are put off.
inline std::vector<pass_entry> zero_bubble_order(pipeline const& p, int stage, i64 warm_up, i64 pending) {
  int const m = p.micro_batches(stage), first = static_cast<int>(std::clamp<i64>(warm_up, 1, m));
  std::vector<pass_entry> o;
  o.reserve(idx(m) * 3);
  int f = 0, b = 0, w = 0;
  for (; f < first; ++f) o.push_back({stage, pass::forward, f});
  while (b < m) {
    o.push_back({stage, pass::backward, b++});
    if (b - w > pending) o.push_back({stage, pass::weights, w++});
    if (f < m) o.push_back({stage, pass::forward, f++});
  }
  while (w < m) o.push_back({stage, pass::weights, w++});
  return o;
}

/// Warm-up of `factor` i - (factor - 1) b samples where 1F1B has i, so much put off that every stage holds as
/// much as the first.
inline pipeline zero_bubble(pipeline p, passes::stage_edges const& e, i64 factor) {
  require_own_groups(p, e, "a zero-bubble schedule");
  for (pipeline_stage& s : p.stages) {
    s.k = 1;
    s.split_backward = true;
  }
  std::vector<i64> const i = in_flight_samples(p, e, search::in_flight);
  i64 most = 0;
  for (i64 x : i) most = std::max(most, x);
  p.schedule.assign(p.groups.size(), {});
  for (std::size_t s = 0; s < p.stages.size(); ++s) {
    i64 const b = p.stages[s].micro_batch;
    p.schedule[idx(p.stages[s].group)] = zero_bubble_order(
        p, static_cast<int>(s), factor * (i[s] / b) - factor + 1, factor * ((most - i[s]) / b));
  }
  return p;
}

}  // namespace detail

/// ZB-H1 (Qi et al. 2024, arXiv 2401.10241, section 2): the forward and backward passes of 1F1B, weights
/// passes put off where 1F1B would wait and as long as no stage holds more than 1F1B's first. Splits every
/// stage. A chain of p stages of one size: bubble (p-1)(F+B-W) for W <= B, p micro-batches of activations on
/// every stage. For other DAGs the same rule on the in-flight samples of 1F1B. O(passes). Throws `error` if a
/// group has several stages.
inline pipeline zb_h1(pipeline p, passes::stage_edges const& e) {
  return detail::zero_bubble(std::move(p), e, 1);
}

/// ZB-H2 (the same paper): twice the warm-up, less one, and twice as much put off. A chain of p stages of one
/// size with at least 2p - 1 micro-batches: bubble (p-1)(F+B-2W) within the longest span for W <= B and F+B
/// >= 2W, 2p - 1 micro-batches of activations on every stage. The iteration's own bubble is at least (p-1)F:
/// the last stage cannot start sooner. O(passes).
inline pipeline zb_h2(pipeline p, passes::stage_edges const& e) {
  return detail::zero_bubble(std::move(p), e, 2);
}

}  // namespace tensorpar::search
