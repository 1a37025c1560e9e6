// tensorpar/tool/file_commands.hpp - `tensorpar show`, `check` and `simulate`: what a plan file says
#pragma once
#include <map>
#include <set>
#include <string>
#include <tensorpar/program/evidence/certificate.hpp>
#include <tensorpar/report/chrome_trace.hpp>
#include <tensorpar/report/text.hpp>
#include <tensorpar/tool/plan_command.hpp>
#include <tensorpar/tool/stored.hpp>

namespace tensorpar::tools {

namespace detail {

/// Name and value of what a plan says besides its operators, in words. O(operators + devices).
inline std::vector<std::pair<std::string, std::string>> plan_facts(plan const& p) {
  std::vector<std::pair<std::string, std::string>> r;
  std::string optimizer;
  for (std::string const& name : optimizer_names())
    if (optimizer_named(name) == p.optimizer.kind) optimizer = name;
  r.push_back({"model", p.model.empty() ? "not named" : p.model});
  std::string const lanes = p.cluster.lane_per_link ? ", a lane of communication per level of links" : "";
  r.push_back({"cluster", p.cluster.name + ", " + std::to_string(p.cluster.size()) + " devices" + lanes});
  i64 const batch = p.pipeline.empty() ? p.batch : p.pipeline.mini_batch;
  r.push_back({"batch", batch ? std::to_string(batch) + " samples" : "not said"});
  r.push_back({"precision", precision_names[static_cast<int>(p.precision)]});
  r.push_back({"optimizer", optimizer});
  if (p.optimizer.moments != dtype::f32) r.push_back({"moments", name_of(p.optimizer.moments)});
  if (p.optimizer.gradients != dtype::f32) r.push_back({"gradients", name_of(p.optimizer.gradients)});
  if (p.optimizer.masters != dtype::f32) r.push_back({"masters", "none"});
  int micro_batches = p.micro_batches;
  for (std::size_t k = 0; k < p.pipeline.stages.size(); ++k)
    micro_batches = std::max(micro_batches, p.pipeline.micro_batches(static_cast<int>(k)));
  r.push_back({"micro-batches", std::to_string(micro_batches)});
  r.push_back({"collectives", report::prefetch_text(p.prefetch)});
  r.push_back({"pipeline", p.pipeline.empty()
                               ? "none"
                               : std::to_string(p.pipeline.stages.size()) + " stages on " +
                                     std::to_string(p.pipeline.groups.size()) + " groups of devices"});
  r.push_back({"rewrites", std::to_string(p.rewrites.size())});
  if (!p.scratch.empty()) r.push_back({"scratch", "of " + p.scratch});
  r.push_back({"step", report::seconds_text(p.step_seconds)});
  i64 peak = 0;
  for (i64 b : p.peak_bytes) peak = std::max(peak, b);
  r.push_back({"largest arena", report::bytes_text(static_cast<double>(peak))});
  return r;
}
inline core::json facts_json(plan const& p) {
  core::json r = core::json::object();
  for (auto const& [name, value] : plan_facts(p)) r[name] = value;
  r["step_s"] = p.step_seconds;
  return r;
}

}  // namespace detail

/// Explains a plan file: all of it where its model is known, else what the file itself says, and what cannot
/// be told. Throws `error` for a file that cannot be read.
inline exit_code show_command(settings const& s, console const& io, std::optional<own_model> const& own) {
  stored_plan const x = read_stored(s.files.front(), s, own);
  bool const known = x.forward && x.plan.scratch.empty();
  std::string const unknown = x.forward ? "its kernels' scratch space is not known here" : x.unknown;
  if (s.json) {
    core::json line = detail::facts_json(x.plan);
    if (known)
      line.update(outcome_json(outcome_of("plan", *x.forward, x.plan), true));
    else
      line["unknown"] = unknown;
    io.out << report::event_line("show", line);
    return x.plan.infeasible ? exit_code::no_plan : exit_code::fine;
  }
  std::vector<std::vector<std::string>> rows;
  for (auto const& [name, value] : detail::plan_facts(x.plan)) rows.push_back({name, value});
  io.out << x.file << "\n" << report::columns(rows, {true, true}, "  ");
  if (!known) {
    io.out << "its operators cannot be told: " << unknown << "\n";
    return x.plan.infeasible ? exit_code::no_plan : exit_code::fine;
  }
  outcome const o = outcome_of("plan", *x.forward, x.plan);
  io.out << "  " << o.strategy << "\n" << devices_text(o) << report::explain(o.sum);
  return exit_code::fine;
}

/// Replays the plan's evidence (`check_certificate`): a line for each finding. Throws `error` where the
/// plan's graph cannot be told.
inline exit_code check_command(settings const& s, console const& io, std::optional<own_model> const& own) {
  stored_plan const x = read_runnable(s.files.front(), s, own);
  auto const start = std::chrono::steady_clock::now();
  std::vector<finding> const all = check_certificate(*x.declared, x.plan);
  double const took = detail::seconds_since(start);
  for (finding const& f : all) {
    if (s.json)
      io.out << report::event_line("finding", {{"fault", name_of(f.code)},
                                               {"task", f.task},
                                               {"device", f.device},
                                               {"node", f.node},
                                               {"text", f.text}});
    else
      io.out << x.file << ": " << name_of(f.code) << ": " << f.text << "\n";
  }
  if (s.json)
    io.out << report::event_line("checked", {{"file", x.file},
                                             {"findings", all.size()},
                                             {"check_s", took},
                                             {"operators", x.plan.nodes.size()},
                                             {"devices", x.plan.cluster.size()},
                                             {"rewrites", x.plan.rewrites.size()}});
  else if (all.empty())
    io.out << x.file << ": nothing is wrong with " << x.plan.rewrites.size() << " rewrites, "
           << x.plan.nodes.size() << " operators and the program of " << x.plan.cluster.size()
           << (x.plan.cluster.size() == 1 ? " device" : " devices") << " (checked in "
           << report::seconds_text(took) << ")\n";
  return all.empty() ? exit_code::fine : exit_code::found_something;
}

/// Runs the plan's step in virtual time, and writes its trace and its page. Throws `error` where the plan's
/// graph cannot be told.
inline exit_code simulate_command(settings const& s, console const& io, std::optional<own_model> const& own) {
  stored_plan const x = read_runnable(s.files.front(), s, own);
  bool const files = !s.trace.empty() || !s.html.empty();
  outcome const o = files ? outcome_of("plan", *x.forward, x.plan, step_of(*x.forward, x.plan), true)
                          : outcome_of("plan", *x.forward, x.plan);
  if (!s.trace.empty())
    core::write_whole_file(s.trace, report::chrome_trace(o.time, nullptr, &o.step.program));
  if (!s.html.empty()) detail::write_page(o, s, {});
  if (s.json) {
    core::json line = outcome_json(o);
    line["recorded_step_s"] = x.plan.step_seconds;
    line["tasks"] = o.step.program.tasks.size();
    io.out << report::event_line("simulated", line);
    return exit_code::fine;
  }
  io.out << x.file << ": " << o.step.program.tasks.size() << " tasks\n" << outcome_text(o);
  if (double const before = x.plan.step_seconds; before > 0 && std::abs(o.seconds() / before - 1) > 1e-9)
    io.out << "  the file says " << report::seconds_text(before) << "\n";
  io.out << "  dominated by " << o.sum.dominated << "\n";
  return exit_code::fine;
}

}  // namespace tensorpar::tools
