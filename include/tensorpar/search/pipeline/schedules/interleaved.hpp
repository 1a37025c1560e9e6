// tensorpar/search/pipeline/schedules/interleaved.hpp - 1F1B with several chunks of the chain on each group
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/search/pipeline/schedules/orders.hpp>

namespace tensorpar::search {

/// Interleaved 1F1B (Narayanan et al. 2021, arXiv 2104.04473, section 2.2): a chain of p v stages on p
/// groups, stage s on group s mod p, so that every group has v chunks. With F, B, W of a group's whole share
/// of a micro-batch: bubble (p-1)(F+B+W)/v, on the first group p + (p-1)/v micro-batches of activations
/// (arXiv 2205.05198). O(passes). Throws `error` unless the stages are such a chain, all micro-batches are of
/// one size and p divides their number.
inline pipeline interleaved_1f1b(pipeline p, passes::stage_edges const& e) {
  passes::require_schedulable(p, e);
  int const n = static_cast<int>(p.stages.size()), groups = static_cast<int>(p.groups.size());
  if (groups == 0 || n == 0 || n % groups != 0)
    throw error(std::to_string(n) + " stages on " + std::to_string(groups) + " groups", "interleaved 1F1B",
                "equally many on each");
  int const v = n / groups, m = p.micro_batches(0);
  for (int s = 0; s < n; ++s) {
    pipeline_stage const& x = p.stages[idx(s)];
    auto const& from = e[idx(s)];
    bool const chained = s == 0 ? from.empty() : from == std::vector<int>{s - 1};
    if (!chained || x.group != s % groups || x.micro_batch != p.stages[0].micro_batch)
      throw error("stage " + std::to_string(s), "interleaved 1F1B",
                  "a chain with one micro-batch size, stage s on group s mod p");
  }
  if (m % groups != 0)
    throw error(std::to_string(m) + " micro-batches on " + std::to_string(groups) + " groups",
                "interleaved 1F1B", "p divides m");
  p.schedule.assign(p.groups.size(), {});
  for (int g = 0; g < groups; ++g) {
    auto& o = p.schedule[idx(g)];
    int const all = m * v, warm_up = std::min(all, 2 * (groups - 1 - g) + (v - 1) * groups);
    // The i-th pass of a kind: p micro-batches of the first chunk, the same p of the next, ...; backward from
    // the last chunk.
    auto const micro_batch = [&](int i) { return i / (groups * v) * groups + i % groups; };
    auto const chunk = [&](int i) { return i / groups % v; };
    auto const forward = [&](int i) { o.push_back({chunk(i) * groups + g, pass::forward, micro_batch(i)}); };
    auto const backward = [&](int i) {
      detail::put_backward(o, p, (v - 1 - chunk(i)) * groups + g, micro_batch(i));
    };
    int f = 0, b = 0;
    while (f < warm_up) forward(f++);
    while (f < all) {
      forward(f++);
      backward(b++);
    }
    while (b < all) backward(b++);
  }
  return p;
}

}  // namespace tensorpar::search
