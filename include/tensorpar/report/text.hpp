// tensorpar/report/text.hpp - a plan for the terminal: what it costs and how every operator is sharded;
// progress
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/report/alike.hpp>

namespace tensorpar::report {

namespace detail {

/// Devices with the same peak and capacity in one row, and what fills them.
inline std::string memory_lines(plan_summary const& s) {
  std::vector<std::vector<std::string>> rows;
  std::vector<bool> told(s.devices.size(), false);
  for (std::size_t d = 0; d < s.devices.size(); ++d) {
    if (told[d]) continue;
    std::vector<int> same;
    for (std::size_t e = d; e < s.devices.size(); ++e)
      if (s.devices[e].peak == s.devices[d].peak && s.devices[e].capacity == s.devices[d].capacity &&
          s.devices[e].memory == s.devices[d].memory) {
        same.push_back(static_cast<int>(e));
        told[e] = true;
      }
    double const peak = static_cast<double>(s.devices[d].peak),
                 room = static_cast<double>(s.devices[d].capacity);
    rows.push_back({"device " + devices_text(same), bytes_text(peak),
                    room > 0 ? "of " + bytes_text(room) : "",
                    room > 0 ? "(" + detail::three(100 * peak / room) + " %)" : "",
                    memory_text(s.devices[d].memory)});
  }
  return columns(rows, {true, false, false, false, true}, "    ");
}

}  // namespace detail

/// "collectives start 2 operators ahead"; where they are needed for 0.
inline std::string prefetch_text(int ahead) {
  if (ahead == 0) return "collectives start where they are needed";
  return "collectives start " + std::to_string(ahead) + (ahead == 1 ? " operator ahead" : " operators ahead");
}
/// What a gap counts from: the search's estimate, or the simulated step of a plan with stages, without one.
inline double above_bound(plan_summary const& s) { return s.cost > 0 ? s.cost : s.seconds; }
/// What no plan is below, of which plans that is said, and how far this one is above it; "" without a bound.
/// Of a gap above a twentieth it says what the bound does not know: recomputation, as it is about time alone,
/// and communication that does not overlap.
inline std::string bound_text(plan_summary const& s) {
  bool const staged = s.cost <= 0 && s.seconds > 0, steps = s.of_steps || staged;
  double const cost = above_bound(s);
  if (s.bound <= 0 || cost <= 0) return "";
  std::string gap = " (gap " + gap_text(cost, s.bound);
  if (steps && cost > 1.05 * s.bound) {
    if (s.recomputing > 0)
      gap += "; " + seconds_text(s.recomputing) + " are recomputation for want of memory";
    if (s.communication.exposed > 0)
      gap += "; " + seconds_text(s.communication.exposed) + " are communication that nothing covers";
  }
  gap += ")";
  if (staged)
    return "no step of these operators is below " + seconds_text(s.bound) +
           ", in any stages, if no device ever waited" + gap;
  if (s.of_steps)
    return "no step whose operators run on all these devices or on the first alone is below " +
           seconds_text(s.bound) + ", whatever overlaps" + gap;
  return "the search's estimate, without overlap: " + seconds_text(s.cost) +
         "; no plan of its space, on these devices or the parts of them that it looked at, is below " +
         seconds_text(s.bound) + gap;
}
/// Settings besides shardings: "4 micro-batches, collectives start 2 operators ahead, 12 operators computed
/// again, ZeRO at 8 operators". O(operators).
inline std::string settings_text(plan_summary const& s) {
  int again = 0, zero = 0;
  for (operator_summary const& o : s.operators) {
    again += o.choice.recomputed;
    zero += o.choice.zero != ir::zero_stage::none;
  }
  auto const operators = [](int n) { return std::to_string(n) + (n == 1 ? " operator" : " operators"); };
  std::string r = std::to_string(s.micro_batches) + " micro-batch" + (s.micro_batches == 1 ? "" : "es");
  r += ", " + prefetch_text(s.prefetch);
  if (again) r += ", " + operators(again) + " computed again";
  if (zero) r += ", ZeRO at " + operators(zero);
  return r;
}

/// Several lines: predicted step time and the search's bound, what dominated, how every operator is sharded
/// and what that costs, bytes per kind of collective, peak memory per device.
inline std::string explain(plan_summary const& s) {
  std::string r = "plan" + (s.model.empty() ? "" : " of " + s.model) + ": " +
                  std::to_string(s.devices.size()) + (s.devices.size() == 1 ? " device" : " devices");
  if (!s.cluster.empty()) r += " (" + s.cluster + ")";
  if (s.micro_batches > 1) r += ", " + std::to_string(s.micro_batches) + " micro-batches";
  if (s.summed) r += ", the loss is a sum over samples";
  if (s.prefetch) r += ", " + prefetch_text(s.prefetch);
  if (s.ordered) r += ", operators in the plan's own order";
  if (!s.strategy.empty()) r += "\n  " + s.strategy;
  if (!s.numbers.empty()) r += "\n  numbers in " + s.numbers;
  r += "\n  predicted step " + seconds_text(s.seconds);
  if (std::string const rate = throughput_text(s); !rate.empty()) r += ": " + rate;
  if (std::string const bound = bound_text(s); !bound.empty()) r += "\n  " + bound;
  if (s.seconds > 0 && s.communication.exposed > 0)
    r += "\n  for " + seconds_text(s.communication.exposed) + " of it (" +
         percent_text(s.communication.exposed / s.seconds) + ") device " +
         std::to_string(s.communication.device) + " communicates and computes nothing";
  r += "\n  dominated by " + s.dominated + "\n  sharding\n";
  std::vector<detail::alike> const lines = detail::joined(
      s.operators, s.operators.size() > explain_lines,
      [&](std::size_t i, std::size_t j) { return detail::same_choice(s.operators[i], s.operators[j]); });
  std::vector<std::vector<std::string>> rows{
      {"operator", "", "split", "devices", "compute", "moves", "bytes moved for it"}};
  for (detail::alike const& l : lines)
    rows.push_back({l.label(), shortened(l.sum.op, 40), l.sum.sharding, devices_text(l.sum.devices),
                    seconds_text(l.sum.compute), seconds_text(l.sum.move), detail::moved_text(l.sum.bytes)});
  r += columns(rows, {true, true, true, true, false, false, true}, "    ");
  r += "  moved in a step by all devices\n";
  rows.clear();
  for (int k = 0; k < move_kinds; ++k) {
    auto const i = idx(k);
    if (s.times[i] && static_cast<ir::reshard_kind>(k) != ir::reshard_kind::slice)
      rows.push_back({move_text(static_cast<ir::reshard_kind>(k)), bytes_text(s.bytes[i]),
                      "in " + std::to_string(s.times[i]) + (s.times[i] == 1 ? " task" : " tasks")});
  }
  if (rows.empty()) rows.push_back({"nothing"});
  r += columns(rows, {}, "    ");
  r += "  peak memory" + (s.scratch.empty() ? "" : " (" + s.scratch + ")") + "\n" + detail::memory_lines(s);
  return r;
}
inline std::string explain(training_graph const& t, plan const& p, program const& q,
                           timeline const& predicted) {
  return explain(summary_of("", t, p, q, predicted));
}

/// One line per epoch.
struct progress {
  int epoch = 0, epochs = 0;
  double loss = 0, accuracy = -1;  // accuracy below 0: not measured
  double samples_per_second = 0, measured_step = 0, predicted_step = 0;
};
inline std::string progress_line(progress const& p) {
  std::string r = "epoch " + std::to_string(p.epoch) + "/" + std::to_string(p.epochs) + "  loss " +
                  detail::printed("%.4f", p.loss);
  if (p.accuracy >= 0) r += "  accuracy " + detail::printed("%.2f", 100 * p.accuracy) + " %";
  r += "  " + detail::printed("%.0f", p.samples_per_second) + " samples/s  step " +
       seconds_text(p.measured_step);
  if (p.predicted_step > 0)
    r += " (predicted " + seconds_text(p.predicted_step) + ", " +
         detail::printed("%+.0f", 100 * (p.measured_step / p.predicted_step - 1)) + " %)";
  return r;
}

}  // namespace tensorpar::report
