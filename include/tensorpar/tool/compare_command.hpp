// tensorpar/tool/compare_command.hpp - `tensorpar compare`: the plan beside what users of other trainers run
#pragma once
#include <string>
#include <tensorpar/peers/rivals.hpp>
#include <tensorpar/report/comparison.hpp>
#include <tensorpar/tool/plan_command.hpp>
#include <vector>

namespace tensorpar::tools {

namespace detail {

/// A rival with what its step is made of; without a step, of one that has no plan.
struct told_rival {
  report::rival row;
  std::string strategy;
  bool fits = false;
};
inline told_rival told_of(peers::rival const& x, outcome const& chosen) {
  told_rival r{{x.name, x.settings, 0, 0, 0, x.refused}, "", x.fits()};
  if (x.step.infeasible) r.row.lacks = x.step.infeasible->missing;
  if (!x.refused.empty()) return r;
  if (x.plan.nodes.empty() || x.plan.infeasible) {  // a search that found nothing
    r.row.reason = "no plan of this kind fits";
    return r;
  }
  outcome const o = outcome_of(x.name, x.graph, x.plan);
  r.strategy = o.strategy;
  r.row.seconds = o.seconds();
  r.row.peak = o.peak();
  r.row.reason = report::reason_text(chosen.account, o.account);
  return r;
}
/// Which plan wins, and why: a sentence.
inline std::string verdict(outcome const& chosen, std::vector<told_rival> const& all) {
  told_rival const* best = nullptr;
  for (told_rival const& r : all)
    if (r.fits && r.row.seconds > 0 && (!best || r.row.seconds < best->row.seconds)) best = &r;
  if (!best) return "tensorpar's plan is the only one that fits";
  double const ratio = best->row.seconds / chosen.seconds();
  std::string const times = report::detail::printed("%.2f", ratio > 1 ? ratio : 1 / ratio);
  if (std::abs(ratio - 1) < 5e-4)
    return "tensorpar's plan takes as long as " + best->row.name + ", the fastest rival that fits";
  if (ratio < 1)
    return best->row.name + " wins, " + times + " times as fast as tensorpar's plan: it " + best->row.reason;
  return "tensorpar's plan wins, " + times + " times as fast as " + best->row.name +
         ", the fastest rival that fits: that one " + best->row.reason;
}

}  // namespace detail

/// Searches for the plan and for every rival at its best (`peers::rivals`), under the same prices, simulator
/// and memory, and says which wins and why. Throws as `plan_command`.
inline exit_code compare_command(settings const& s, console const& io, std::optional<own_model> const& own) {
  subject const x = subject_of(s, own);
  planned const found = detail::searched(x, s, io);
  if (!s.json) io.out << detail::heading(x, x.on);
  if (!found.feasible()) return detail::tell_no_plan(x, *found.infeasible, s, io);
  outcome const chosen = outcome_of("tensorpar", found.graph, found.plan, found.step, !s.html.empty());
  std::vector<detail::told_rival> all;
  {
    search_progress watch(io, s.quiet);
    watch.looks_at("what users of other trainers run", 0);
    peers::rival_options const o{.planners = s.planners, .threads = s.threads};
    for (peers::rival const& r : peers::rivals(x.asked, x.on, cost::analytical{}, o))
      all.push_back(detail::told_of(r, chosen));
  }
  std::vector<report::rival> rows;
  for (detail::told_rival const& r : all) rows.push_back(r.row);
  report::rival const first{
      "tensorpar", report::settings_text(chosen.sum), chosen.seconds(), chosen.peak(), 0, ""};
  std::string const says = detail::verdict(chosen, all);
  if (!s.html.empty()) detail::write_page(chosen, s, rows);
  if (s.json) {
    io.out << report::event_line("plan", outcome_json(chosen));
    for (detail::told_rival const& r : all)
      io.out << report::event_line("rival", {{"name", r.row.name},
                                             {"settings", r.row.settings},
                                             {"strategy", r.strategy},
                                             {"step_s", r.row.seconds},
                                             {"relative", r.row.seconds / chosen.seconds()},
                                             {"peak_bytes", r.row.peak},
                                             {"fits", r.fits},
                                             {"lacks_bytes", r.row.lacks},
                                             {"reason", r.row.reason}});
    io.out << report::event_line("verdict", {{"text", says}});
    return exit_code::fine;
  }
  io.out << report::columns(report::rival_rows(first, rows), {true, true, false, false, false, true, true},
                            "  ");
  io.out << "strategies\n";
  std::vector<std::vector<std::string>> told{{"tensorpar", chosen.strategy}};
  for (detail::told_rival const& r : all) told.push_back({r.row.name, r.strategy.empty() ? "-" : r.strategy});
  io.out << report::columns(told, {true, true}, "  ") << says << "\n";
  return exit_code::fine;
}

}  // namespace tensorpar::tools
