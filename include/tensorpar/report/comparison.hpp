// tensorpar/report/comparison.hpp - plans side by side, and which operators make the difference
#pragma once
#include <cmath>
#include <tensorpar/core/infinity.hpp>
#include <tensorpar/program/planned.hpp>
#include <tensorpar/report/text.hpp>

namespace tensorpar::report {

/// A heading and a row per plan: name, step, relative to the first plan, peak memory of the fullest device,
/// bytes per kind of collective, and whether it fits in the memory of every device.
inline std::vector<std::vector<std::string>> comparison_rows(std::vector<plan_summary> const& all) {
  if (all.empty()) return {};
  std::vector<std::vector<std::string>> rows{{"plan", "step", "relative", "peak memory"}};
  std::vector<std::size_t> kinds;
  for (std::size_t k = 0; k < move_kinds; ++k) {
    bool used = false;
    for (plan_summary const& s : all) used = used || s.bytes[k] > 0;
    if (!used) continue;
    kinds.push_back(k);
    rows[0].push_back(move_text(static_cast<ir::reshard_kind>(k)));
  }
  for (plan_summary const& s : all) {
    bool const first = &s == &all[0];
    rows.push_back(
        {s.name, seconds_text(s.seconds),
         first || all[0].seconds <= 0 ? "-" : detail::printed("%.2f", s.seconds / all[0].seconds) + "x",
         bytes_text(static_cast<double>(s.peak()))});
    for (std::size_t k : kinds) rows.back().push_back(s.bytes[k] > 0 ? bytes_text(s.bytes[k]) : "-");
    if (i64 const lacks = s.lacks(); lacks > 0)
      rows.back().push_back("does not fit: lacks " + bytes_text(static_cast<double>(lacks)));
  }
  return rows;
}
inline std::string comparison(std::vector<plan_summary> const& all) {
  std::vector<std::vector<std::string>> const rows = comparison_rows(all);
  std::vector<bool> left(rows.empty() ? 0 : rows[0].size() + 1, false);
  if (!left.empty()) left.back() = true;
  return columns(rows, left);
}

/// Why not `other`: one sentence, then the operators that make most of the difference in time (at most
/// `most`), with both shardings, times and what is moved. Precondition: both are of one graph.
inline std::vector<std::string> why_not(plan_summary const& chosen, plan_summary const& other,
                                        std::size_t most = 3) {
  std::vector<std::string> r;
  double const more = other.seconds - chosen.seconds;
  std::string head = other.name + " ";
  if (i64 const lacks = other.lacks(); lacks > 0)
    head += "does not fit (a device lacks " + bytes_text(static_cast<double>(lacks)) + "), and ";
  head += more == 0 ? std::string("takes as long")
                    : "takes " + seconds_text(std::abs(more)) + (more > 0 ? " more" : " less");
  r.push_back(head);
  if (chosen.operators.size() != other.operators.size()) return r;
  auto const &a = chosen.operators, &b = other.operators;
  std::vector<detail::alike> const groups =
      detail::joined(a, a.size() > explain_lines, [&](std::size_t i, std::size_t j) {
        return detail::same_choice(a[i], a[j]) && detail::same_choice(b[i], b[j]);
      });
  struct change {
    operator_summary here, there;
    std::string label;
    double gain() const { return there.compute + there.move - here.compute - here.move; }
  };
  std::vector<change> changes;
  for (detail::alike const& g : groups) {
    change c{g.sum, b[g.which.front()], g.label()};
    for (std::size_t k = 1; k < g.which.size(); ++k) detail::accumulate(c.there, b[g.which[k]]);
    if (g.which.size() > 1) c.label += " " + c.here.op.substr(0, c.here.op.find('{'));
    if (!detail::same_choice(c.here, c.there) || c.here.bytes != c.there.bytes)
      changes.push_back(std::move(c));
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](change const& x, change const& y) { return std::abs(x.gain()) > std::abs(y.gain()); });
  for (std::size_t k = 0; k < changes.size() && k < most; ++k) {
    change const& c = changes[k];
    auto times = [](operator_summary const& o) {
      return o.sharding + ": " + seconds_text(o.compute) + " computing" +
             (o.move > 0 ? ", " + seconds_text(o.move) + " moving (" + detail::moved_text(o.bytes) + ")"
                         : "");
    };
    r.push_back(c.label + ", " + times(c.there) + "; here " + times(c.here));
  }
  return r;
}
/// why_not of all plans against the first, as text.
inline std::string reasons(std::vector<plan_summary> const& all) {
  std::string r;
  for (std::size_t k = 1; k < all.size(); ++k) {
    std::vector<std::string> const lines = why_not(all[0], all[k]);
    for (std::size_t i = 0; i < lines.size(); ++i) r += (i ? "      " : "  ") + lines[i] + "\n";
  }
  return r;
}

/// A plan that another is compared with, as its planner tells it.
struct rival {
  std::string name, settings;    // settings in words: "tensor 8, data 8, 4 micro-batches"
  double seconds = 0;            // of its step; 0: it has none
  i64 peak = 0, lacks = 0;       // bytes of the fullest device; how many a device lacks at most, 0: it fits
  std::string reason;            // why it lost, in a sentence
};
/// Another plan of the same graph, told as a rival.
inline rival rival_of(plan_summary const& chosen, plan_summary const& other) {
  return {other.name, settings_text(other), other.seconds, other.peak(), std::max<i64>(0, other.lacks()),
          why_not(chosen, other).front()};
}
/// What else a planner tried: settings, step and memory, or what it lacked, or why none was looked for.
/// O(plans tried).
inline std::vector<rival> rivals_of(planned const& x) {
  std::vector<rival> r;
  for (std::size_t i = 0; i < x.tried.size(); ++i) {
    tried_plan const& c = x.tried[i];
    if (static_cast<int>(i) == x.chosen) continue;
    std::string const settings = std::to_string(c.micro_batches) + " micro-batches, " +
                                 (c.stages ? std::to_string(c.stages) + " stages, " : "") +
                                 prefetch_text(c.prefetch);
    double const seconds = c.feasible() && c.seconds < infinity ? c.seconds : 0;
    r.push_back({c.what, settings, seconds, c.peak, c.infeasible ? c.infeasible->missing : 0,
                 !c.refused.empty() ? c.refused : c.infeasible ? "no plan of this kind fits" : "slower"});
  }
  return r;
}
/// A heading, the plan itself and its rivals: name, settings, step, step relative to the plan's, memory of
/// the fullest device, whether it fits, and the reason. O(rivals).
inline std::vector<std::vector<std::string>> rival_rows(rival const& chosen,
                                                        std::vector<rival> const& rivals) {
  std::vector<std::vector<std::string>> rows{
      {"plan", "settings", "step", "relative", "peak memory", "fits", "why not"}};
  auto const add = [&](rival const& x, bool first) {
    bool const timed = x.seconds > 0, compared = timed && chosen.seconds > 0 && !first;
    rows.push_back({x.name, x.settings, timed ? seconds_text(x.seconds) : "-",
                    compared ? detail::printed("%.2f", x.seconds / chosen.seconds) + "x" : "-",
                    x.peak > 0 ? bytes_text(static_cast<double>(x.peak)) : "-",
                    x.lacks > 0  ? "lacks " + bytes_text(static_cast<double>(x.lacks))
                    : x.peak > 0 ? "fits"
                                 : "-",
                    x.reason});
  };
  add(chosen, true);
  for (rival const& x : rivals) add(x, false);
  return rows;
}

}  // namespace tensorpar::report
