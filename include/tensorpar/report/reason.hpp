// tensorpar/report/reason.hpp - why one plan's step is faster than another's: what its busiest device
// computes and waits for
#pragma once
#include <array>
#include <cmath>
#include <string>
#include <tensorpar/core/index.hpp>
#include <tensorpar/program/core/planned_step.hpp>
#include <tensorpar/report/exposed_communication.hpp>
#include <tensorpar/report/summary.hpp>
#include <vector>

namespace tensorpar::report {

/// What a step's time is made of on the device that is busy longest, in seconds:
/// computing + exposed + waiting = seconds. Bytes are what all devices send, by kind of reshard.
struct step_account {
  double seconds = 0;
  double computing = 0, recomputing = 0;  // of the first the second is done again
  double exposed = 0;                     // communicating while nothing is computed
  double waiting = 0;                     // neither
  std::array<double, move_kinds> bytes{};
};

/// O(tasks + spans log).
inline step_account account_of(planned_step const& s, timeline const& t) {
  step_account r;
  communication_time const busiest = exposed_communication(s.program, t);
  r.seconds = t.seconds;
  r.exposed = busiest.exposed;
  r.computing = busiest.busy - busiest.exposed;
  r.waiting = t.seconds - busiest.busy;
  for (span const& x : t.spans) {
    if (x.device != busiest.device || x.task < 0 || idx(x.task) >= s.program.tasks.size()) continue;
    task const& k = s.program.tasks[idx(x.task)];
    if (communicates(k) || k.node < 0 || k.node >= s.graph.graph.node_count()) continue;
    if (s.graph.graph.node(k.node).recomputed) r.recomputing += x.end - x.start;
  }
  for (task const& k : s.program.tasks)
    if (is_movement(k)) r.bytes[idx(k.step.kind)] += bytes_of_move(s.program, k);
  return r;
}

/// "takes 0.12 s more: computes 80 ms longer (75 ms of it again), waits 40 ms longer for communication (sends
/// 12.0 GB more by all-gather)". What makes less than a hundredth of the difference is left out.
inline std::string reason_text(step_account const& chosen, step_account const& other) {
  double const more = other.seconds - chosen.seconds;
  if (std::abs(more) <= 1e-9 * chosen.seconds) return "takes as long";
  std::string const head = "takes " + seconds_text(std::abs(more)) + (more > 0 ? " more" : " less");
  std::vector<std::string> parts;
  auto const counts = [&](double x) { return std::abs(x) > 0.01 * std::abs(more); };
  auto const longer = [](double x) { return seconds_text(std::abs(x)) + (x > 0 ? " longer" : " shorter"); };
  if (double const x = other.computing - chosen.computing; counts(x)) {
    double const again = other.recomputing - chosen.recomputing;
    parts.push_back("computes " + longer(x));
    if (counts(again) && again * x > 0)
      parts.back() +=
          " (" + seconds_text(std::abs(again)) + (again > 0 ? " more" : " less") + " of it again)";
  }
  if (double const x = other.exposed - chosen.exposed; counts(x)) {
    parts.push_back("waits " + longer(x) + " for communication");
    std::size_t most = 0;                                            // the kind that differs most, that way
    std::array<double, move_kinds> change{};
    for (std::size_t k = 0; k < change.size(); ++k) {
      change[k] = (other.bytes[k] - chosen.bytes[k]) * (x > 0 ? 1 : -1);
      if (change[k] > change[most]) most = k;
    }
    if (change[most] > 0)
      parts.back() += " (sends " + bytes_text(change[most]) + (x > 0 ? " more by " : " less by ") +
                      move_text(static_cast<ir::reshard_kind>(most)) + ")";
  }
  if (double const x = other.waiting - chosen.waiting; counts(x)) parts.push_back("idles " + longer(x));
  std::string r = head;
  for (std::size_t k = 0; k < parts.size(); ++k) r += (k ? ", " : ": ") + parts[k];
  return r;
}

}  // namespace tensorpar::report
