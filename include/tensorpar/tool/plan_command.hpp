// tensorpar/tool/plan_command.hpp - `tensorpar plan`: the fastest plan, what it comes to, and what if
#pragma once
#include <chrono>
#include <string>
#include <tensorpar/plan/plan_file.hpp>
#include <tensorpar/report/page/html.hpp>
#include <tensorpar/search/plan_training.hpp>
#include <tensorpar/tool/outcome.hpp>
#include <tensorpar/tool/progress.hpp>
#include <tensorpar/tool/repriced.hpp>
#include <tensorpar/tool/what_if.hpp>
#include <vector>

namespace tensorpar::tools {

namespace detail {

inline double seconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - t).count();
}
/// "5 % less", "as long".
inline std::string change_text(double now, double before) {
  double const x = now / before - 1;
  if (std::abs(x) < 5e-4) return "as long";
  return report::detail::printed("%.1f", 100 * std::abs(x)) + (x > 0 ? " % more" : " % less");
}
inline planned searched(subject const& x, settings const& s, console const& io) {
  search_progress watch(io, s.quiet);
  planning_options o = x.options;
  o.watch = &watch;
  return plan_training(x.asked, x.on, cost::analytical{}, o);
}
inline std::string lacks_text(shortage const& w) {
  return "no plan " + std::string(w.proven ? "fits" : "that was found fits") + ": device " +
         std::to_string(w.device) + " needs " + report::bytes_text(static_cast<double>(w.needed)) +
         " and has " + report::bytes_text(static_cast<double>(w.capacity)) + ", it lacks " +
         report::bytes_text(static_cast<double>(w.missing));
}
inline std::string heading(subject const& x, machine const& on) {
  return (x.asked.name.empty() ? std::string("the graph") : x.asked.name) + " on " + on.name + ": " +
         std::to_string(on.size()) + (on.size() == 1 ? " device, " : " devices, ") +
         std::to_string(x.asked.samples) + " samples a step\n  numbers in " +
         precision_text(tensorpar::at_precision(on, x.asked.format()), x.asked.format(), x.asked.optimizer) +
         "\n";
}
inline exit_code tell_no_plan(subject const& x, shortage const& w, settings const& s, console const& io) {
  if (s.json)
    io.out << report::event_line("infeasible", {{"model", x.asked.name},
                                                {"devices", x.on.size()},
                                                {"device", w.device},
                                                {"lacks_bytes", w.missing},
                                                {"needed_bytes", w.needed},
                                                {"capacity_bytes", w.capacity},
                                                {"proven", w.proven}});
  else
    io.out << lacks_text(w) << "; more devices, more memory or a smaller batch would help\n";
  return exit_code::no_plan;
}

/// Every plan that was compared, the chosen one marked.
inline void tell_tried(planned const& found, settings const& s, console const& io) {
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < found.tried.size(); ++i) {
    tried_plan const& c = found.tried[i];
    bool const taken = static_cast<int>(i) == found.chosen;
    if (s.json)
      io.out << report::event_line("tried", {{"what", c.what},
                                             {"micro_batches", c.micro_batches},
                                             {"stages", c.stages},
                                             {"prefetch", c.prefetch},
                                             {"step_s", c.seconds},
                                             {"peak_bytes", c.peak},
                                             {"fits", c.feasible()},
                                             {"taken", taken},
                                             {"lacks_bytes", c.infeasible ? c.infeasible->missing : 0},
                                             {"refused", c.refused}});
    rows.push_back(
        {taken ? "*" : " ", c.what, std::to_string(c.micro_batches) + " micro-batches", tried_text(c)});
  }
  if (s.json) return;
  io.out << "compared (* is the plan)\n" << report::columns(rows, {true, true, false, true}, "  ");
}

inline void write_page(outcome const& x, settings const& s, std::vector<report::rival> rivals) {
  // [quoted: page]
  report::page_notes notes = notes_of(x, s);
  notes.rivals = std::move(rivals);
  planned_step const& step = x.step;
  std::string const page = report::html_report(step.graph, step.plan, step.program, x.time, {}, {}, notes);
  core::write_whole_file(s.html, page);
  // [end]
}

/// The same plan on a machine that differs in links, memory or rates.
inline void tell_same_plan(what_if const& w, step_again const& again, planned const& found, settings const& s,
                           console const& io) {
  auto const start = std::chrono::steady_clock::now();
  repriced const x = again.on(changed_machine(w, found.plan.cluster));
  double const took = seconds_since(start);
  if (s.json) {
    io.out << report::event_line("what_if", {{"what", w.text},
                                             {"same_plan", true},
                                             {"step_s", x.seconds},
                                             {"relative", x.seconds / found.seconds()},
                                             {"lacks_bytes", x.lacks},
                                             {"answered_s", took}});
    return;
  }
  io.out << "what if " << w.text << ": the same plan would take " << report::seconds_text(x.seconds) << ", "
         << change_text(x.seconds, found.seconds());
  if (x.lacks)
    io.out << "; but it would not fit: device " << x.device << " lacks "
           << report::bytes_text(static_cast<double>(x.lacks)) << " (--what-if-effort looks for another)";
  io.out << " (answered in " << report::seconds_text(took) << ", without a search)\n";
}
/// Another plan, searched for.
inline void tell_other_plan(what_if const& w, subject const& given, planned const& found, settings const& s,
                            console const& io) {
  auto const start = std::chrono::steady_clock::now();
  subject x = changed_subject(w, given);
  std::string const how = s.what_if_effort.empty() ? "quick" : s.what_if_effort;
  x.options.effort = effort_named(how);
  planned const other = searched(x, s, io);
  double const took = seconds_since(start);
  std::string const strategy = other.feasible() ? report::strategy_text(other.graph, other.plan) : "";
  if (s.json) {
    core::json line{{"what", w.text}, {"same_plan", false}, {"effort", how}, {"fits", other.feasible()}};
    if (other.feasible())
      line.update({{"step_s", other.seconds()},
                   {"relative", other.seconds() / found.seconds()},
                   {"samples_per_s", static_cast<double>(x.asked.samples) / other.seconds()},
                   {"strategy", strategy}});
    else
      line["lacks_bytes"] = other.infeasible->missing;
    line["answered_s"] = took;
    io.out << report::event_line("what_if", line);
    return;
  }
  io.out << "what if " << w.text << ": ";
  if (other.feasible())
    io.out << "a plan of its own would take " << report::seconds_text(other.seconds()) << ", "
           << change_text(other.seconds(), found.seconds()) << ", "
           << report::detail::three(static_cast<double>(x.asked.samples) / other.seconds())
           << " samples/s: " << strategy;
  else
    io.out << lacks_text(*other.infeasible);
  io.out << " (searched in " << report::seconds_text(took) << ", effort " << how << ")\n";
}

}  // namespace detail

/// Searches, tells the plan and all that was compared, writes the plan and its page, and answers every
/// what-if. Throws `usage_error` before it searches, and `error` as `plan_training` does.
inline exit_code plan_command(settings const& s, console const& io, std::optional<own_model> const& own) {
  subject const x = subject_of(s, own);
  std::vector<what_if> questions;
  for (std::string const& text : s.what_if) {
    questions.push_back(parse_what_if(text));
    changed_subject(questions.back(), x);  // says at once what is wrong
  }
  auto const start = std::chrono::steady_clock::now();
  planned const found = detail::searched(x, s, io);
  double const took = detail::seconds_since(start);
  if (!s.json) io.out << detail::heading(x, x.on);
  if (!found.feasible()) {
    detail::tell_tried(found, s, io);
    return detail::tell_no_plan(x, *found.infeasible, s, io);
  }
  outcome const o = outcome_of("plan", found.graph, found.plan, found.step, !s.html.empty());
  if (!s.json) io.out << outcome_text(o);
  detail::tell_tried(found, s, io);
  if (s.json) {
    core::json line = outcome_json(o);
    line["search_s"] = took;
    io.out << report::event_line("plan", line);
  } else {
    io.out << "planned in " << report::seconds_text(took) << "\n";
  }
  if (!s.out_file.empty()) write_plan(found.plan, s.out_file);
  if (!s.html.empty()) detail::write_page(o, s, report::rivals_of(found));
  std::optional<step_again> again;
  for (what_if const& w : questions) {
    if (w.needs_search() || !s.what_if_effort.empty()) {
      detail::tell_other_plan(w, x, found, s, io);
      continue;
    }
    if (!again) again.emplace(found.graph, found.plan, x.asked.scratch);
    detail::tell_same_plan(w, *again, found, s, io);
  }
  return exit_code::fine;
}

}  // namespace tensorpar::tools
