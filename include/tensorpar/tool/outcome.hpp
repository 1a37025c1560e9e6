// tensorpar/tool/outcome.hpp - what a plan comes to: its step simulated, told in words and in JSON
#pragma once
#include <algorithm>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/cost/analytical.hpp>
#include <tensorpar/program/memory_by_kind.hpp>
#include <tensorpar/program/planned.hpp>
#include <tensorpar/program/step_of.hpp>
#include <tensorpar/report/json.hpp>
#include <tensorpar/report/page/notes.hpp>
#include <tensorpar/report/reason.hpp>
#include <tensorpar/report/strategy.hpp>
#include <tensorpar/simulate/engine.hpp>
#include <tensorpar/tool/settings.hpp>
#include <vector>

namespace tensorpar::tools {

/// A step and all that is told of it.
struct outcome {
  planned_step step;
  timeline time;
  report::plan_summary sum;
  report::step_account account;
  std::string strategy;                        // in a sentence
  std::size_t fullest = 0;                     // the device with the largest arena

  double seconds() const { return time.seconds; }
  i64 peak() const { return step.program.arena[fullest]; }
};

/// Of a step that is unrolled already. `forward`: the graph that the plan runs. O(tasks * devices).
inline outcome outcome_of(std::string name, computation_graph const& forward, plan const& p,
                          planned_step step, bool with_memory = false) {
  outcome r;
  r.step = std::move(step);
  r.time = simulate(r.step.program, p.cluster, cost::analytical{}, {.memory = with_memory});
  r.sum = report::summary_of(std::move(name), r.step.graph, r.step.plan, r.step.program, r.time);
  r.account = report::account_of(r.step, r.time);
  r.strategy = report::strategy_text(forward, p);
  std::vector<i64> const& arena = r.step.program.arena;
  r.fullest = idx(std::max_element(arena.begin(), arena.end()) - arena.begin());
  return r;
}
/// The same with one device listed of those that do the same. O(unrolling).
inline outcome outcome_of(std::string name, computation_graph const& forward, plan const& p) {
  return outcome_of(std::move(name), forward, p, step_to_simulate(forward, p));
}

/// Two lines: what the busiest device communicates, and what fills the memory of the fullest.
inline std::string devices_text(outcome const& x) {
  report::plan_summary const& s = x.sum;
  report::communication_time const& c = s.communication;
  std::string r = "  device " + std::to_string(c.device) + ", the busiest, communicates for " +
                  report::seconds_text(c.communicating) + ", of which it computes nothing for " +
                  report::seconds_text(c.exposed) + " (" + report::percent_text(c.exposed / x.seconds()) +
                  " of the step)\n";
  report::device_summary const& d = s.devices[x.fullest];
  r += "  device " + std::to_string(x.fullest) + ", the fullest, needs " +
       report::bytes_text(static_cast<double>(d.peak));
  if (d.capacity > 0) r += " of " + report::bytes_text(static_cast<double>(d.capacity));
  return r + ": " + report::memory_text(d.memory) + "\n";
}
/// Several lines: the strategy, step, throughput and MFU, bound and gap, exposed communication, and what
/// fills the memory of the fullest device.
inline std::string outcome_text(outcome const& x) {
  std::string r = "  " + x.strategy + "\n";
  r += "predicted step " + report::seconds_text(x.seconds()) + ": " + report::throughput_text(x.sum) + "\n";
  if (std::string const b = report::bound_text(x.sum); !b.empty()) r += "  " + b + "\n";
  return r + devices_text(x);
}
/// All of the summary but its operators, with the strategy and the memory by kind of the fullest device.
inline core::json outcome_json(outcome const& x, bool operators = false) {
  core::json r = report::to_json(x.sum);
  if (!operators) r.erase("operators");
  core::json memory = core::json::object();
  for (int k = 0; k < passes::memory_kinds; ++k)
    memory[passes::memory_kind_names[k]] = x.sum.devices[x.fullest].memory.bytes[idx(k)];
  r["strategy"] = x.strategy;
  r["fullest_device"] = x.fullest;
  r["peak_bytes"] = x.peak();
  r["memory_bytes"] = std::move(memory);
  return r;
}

/// What a page tells besides the plan.
inline report::page_notes notes_of(outcome const& x, settings const& s) {
  return {.strategy = x.strategy, .date = s.date, .command = s.typed};
}

/// One of the plans that were compared: step and largest arena, what it lacks, or why none was looked for.
inline std::string tried_text(tried_plan const& c) {
  if (!c.refused.empty()) return c.refused;
  if (c.infeasible) return "lacks " + report::bytes_text(static_cast<double>(c.infeasible->missing));
  return "step " + report::seconds_text(c.seconds) + ", largest arena " +
         report::bytes_text(static_cast<double>(c.peak));
}

}  // namespace tensorpar::tools
