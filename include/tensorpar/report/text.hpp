// tensorpar/report/text.hpp - a plan for the terminal: why it is as it is, plans side by side, progress
#pragma once
#include <tensorpar/report/summary.hpp>

namespace tensorpar {

/// Above this many operators, those that are alike (operator and spread) share a line.
inline constexpr std::size_t explain_lines = 40;

namespace detail {

inline std::string moved_text(std::array<double, move_kinds> const& bytes) {
  std::string r;
  for (int k = 0; k < move_kinds; ++k)
    if (bytes[static_cast<std::size_t>(k)] > 0)
      r += (r.empty() ? "" : ", ") + std::string(name_of(static_cast<move_kind>(k))) + " " + bytes_text(bytes[static_cast<std::size_t>(k)]);
  return r.empty() ? "-" : r;
}

/// Devices with the same peak and capacity in one row.
inline std::string memory_lines(plan_summary const& s) {
  std::vector<std::vector<std::string>> rows;
  std::vector<bool> told(s.devices.size(), false);
  for (std::size_t d = 0; d < s.devices.size(); ++d) {
    if (told[d]) continue;
    std::vector<int> same;
    for (std::size_t e = d; e < s.devices.size(); ++e)
      if (s.devices[e].peak == s.devices[d].peak && s.devices[e].capacity == s.devices[d].capacity) {
        same.push_back(static_cast<int>(e));
        told[e] = true;
      }
    double const peak = static_cast<double>(s.devices[d].peak), room = static_cast<double>(s.devices[d].capacity);
    rows.push_back({"device " + devices_text(same), bytes_text(peak), room > 0 ? "of " + bytes_text(room) : "",
                    room > 0 ? "(" + detail::printed("%.1f", 100 * peak / room) + " %)" : ""});
  }
  return columns(rows, {}, "    ");
}

}  // namespace detail

/// Several lines: predicted step time and the search's bound, what dominated, how every operator is spread and what that costs, bytes per
/// kind of collective, peak memory per device.
inline std::string explain(plan_summary const& s) {
  std::string r = "plan" + (s.model.empty() ? "" : " of " + s.model) + ": " + std::to_string(s.devices.size()) +
                  (s.devices.size() == 1 ? " device" : " devices");
  if (!s.cluster.empty()) r += " (" + s.cluster + ")";
  if (s.micro_batches > 1) r += ", " + std::to_string(s.micro_batches) + " micro-batches";
  r += "\n  predicted step " + seconds_text(s.seconds);
  if (s.bound > 0 && s.cost > 0)
    r += "; no plan of the searched space is estimated below " + seconds_text(s.bound) + ", this one at " + seconds_text(s.cost) +
         " (gap " + detail::printed("%.1f", 100 * (1 - s.bound / s.cost)) + " %)";
  r += "\n  dominated by " + s.dominated + "\n  spread\n";
  struct line {
    operator_summary sum;
    int count;
  };
  std::vector<line> lines;
  bool const join = s.operators.size() > explain_lines;
  for (operator_summary const& o : s.operators) {
    line* same = nullptr;
    if (join)
      for (line& l : lines)
        if (l.sum.op == o.op && l.sum.spread == o.spread && l.sum.devices == o.devices) same = &l;
    if (!same) {
      lines.push_back({o, 1});
      continue;
    }
    ++same->count;
    same->sum.compute += o.compute;
    same->sum.move += o.move;
    for (std::size_t k = 0; k < o.bytes.size(); ++k) same->sum.bytes[k] += o.bytes[k];
  }
  std::vector<std::vector<std::string>> rows{{"operator", "", "split", "devices", "compute", "moves", "bytes moved for it"}};
  for (line const& l : lines)
    rows.push_back({l.count > 1          ? std::to_string(l.count) + " x"
                    : l.sum.name.empty() ? std::to_string(l.sum.node)
                                         : l.sum.name,
                    l.sum.op, l.sum.spread, devices_text(l.sum.devices), seconds_text(l.sum.compute), seconds_text(l.sum.move),
                    detail::moved_text(l.sum.bytes)});
  r += columns(rows, {true, true, true, true, false, false, true}, "    ");
  r += "  moved in a step by all devices\n";
  rows.clear();
  for (int k = 0; k < move_kinds; ++k) {
    auto const i = static_cast<std::size_t>(k);
    if (s.times[i] && static_cast<move_kind>(k) != move_kind::keep)
      rows.push_back({name_of(static_cast<move_kind>(k)), bytes_text(s.bytes[i]),
                      "in " + std::to_string(s.times[i]) + (s.times[i] == 1 ? " task" : " tasks")});
  }
  if (rows.empty()) rows.push_back({"nothing"});
  r += columns(rows, {}, "    ");
  r += "  peak memory\n" + detail::memory_lines(s);
  return r;
}
inline std::string explain(training_graph const& t, plan const& p, program const& q, timeline const& predicted) {
  return explain(summary_of("", t, p, q, predicted));
}

/// Plans side by side; times relative to the first.
inline std::string comparison(std::vector<plan_summary> const& all) {
  if (all.empty()) return "";
  std::vector<std::vector<std::string>> rows{{"plan", "step", "", "peak memory"}};
  for (int k = 0; k < move_kinds; ++k) {
    bool used = false;
    for (plan_summary const& s : all) used = used || s.bytes[static_cast<std::size_t>(k)] > 0;
    if (used) rows[0].push_back(name_of(static_cast<move_kind>(k)));
  }
  for (plan_summary const& s : all) {
    double const ratio = all[0].seconds > 0 ? s.seconds / all[0].seconds : 1;
    rows.push_back(
        {s.name, seconds_text(s.seconds), &s == &all[0] ? "" : detail::printed("%.2fx", ratio), bytes_text(static_cast<double>(s.peak()))});
    for (int k = 0; k < move_kinds; ++k) {
      bool used = false;
      for (plan_summary const& o : all) used = used || o.bytes[static_cast<std::size_t>(k)] > 0;
      double const b = s.bytes[static_cast<std::size_t>(k)];
      if (used) rows.back().push_back(b > 0 ? bytes_text(b) : "-");
    }
  }
  return columns(rows, {});
}

/// One line per epoch.
struct progress {
  int epoch = 0, epochs = 0;
  double loss = 0, accuracy = -1;  // accuracy below 0: not measured
  double samples_per_second = 0, measured_step = 0, predicted_step = 0;
};
inline std::string progress_line(progress const& p) {
  std::string r = "epoch " + std::to_string(p.epoch) + "/" + std::to_string(p.epochs) + "  loss " + detail::printed("%.4f", p.loss);
  if (p.accuracy >= 0) r += "  accuracy " + detail::printed("%.2f", 100 * p.accuracy) + " %";
  r += "  " + detail::printed("%.0f", p.samples_per_second) + " samples/s  step " + seconds_text(p.measured_step);
  if (p.predicted_step > 0)
    r += " (predicted " + seconds_text(p.predicted_step) + ", " + detail::printed("%+.0f", 100 * (p.measured_step / p.predicted_step - 1)) +
         " %)";
  return r;
}

}  // namespace tensorpar
