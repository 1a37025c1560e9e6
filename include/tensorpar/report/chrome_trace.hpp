// tensorpar/report/chrome_trace.hpp - timelines for Perfetto and chrome://tracing: predicted and measured as
// two processes
#pragma once
#include <cmath>
#include <cstdio>
#include <set>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/json.hpp>
#include <tensorpar/program/core/timeline.hpp>
#include <tensorpar/report/summary.hpp>

namespace tensorpar::report {

namespace detail {

/// What a span is: "compute", or the kind of its reshard ("all-reduce"). Without a program: its lane, which
/// may hold both.
inline std::string category(span const& s, program const* of) {
  if (!of || s.task < 0 || s.task >= static_cast<int>(of->tasks.size()))
    return s.where == lane::compute ? "compute" : "communication";
  task const& t = of->tasks[idx(s.task)];
  return t.kind == task_kind::compute ? "compute" : move_text(t.step.kind);
}
inline void trace_process(std::string& out, timeline const& t, int pid, std::string const& name,
                          program const* of) {
  auto line = [&](core::json const& e) {
    out += (out.back() == '[' ? "\n" : ",\n") + e.dump(-1, ' ', false, core::json::error_handler_t::replace);
  };
  auto meta = [&](char const* what, int tid, core::json const& args) {
    line({{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", args}});
  };
  auto thread = [](int device, lane w) { return 2 * device + (w == lane::communication) + 1; };
  meta("process_name", 0, {{"name", name}});
  meta("process_sort_index", 0, {{"sort_index", pid}});
  std::set<std::pair<int, int>> lanes;
  for (span const& s : t.spans) lanes.insert({s.device, static_cast<int>(s.where)});
  for (auto const& [device, where] : lanes) {
    int const tid = thread(device, static_cast<lane>(where));
    meta("thread_name", tid,
         {{"name", "device " + std::to_string(device) + (where ? " communication" : " compute")}});
    meta("thread_sort_index", tid, {{"sort_index", tid}});
  }
  // in whole nanoseconds, ends rounded as starts are: neighbours on a lane never overlap
  auto micro = [](double seconds) {
    long long const n = std::llround(seconds * 1e9);
    char b[40];
    std::snprintf(b, sizeof b, "%s%lld.%03lld", n < 0 ? "-" : "", std::abs(n) / 1000, std::abs(n) % 1000);
    return std::string(b);
  };
  auto whole = [](double seconds) { return static_cast<double>(std::llround(seconds * 1e9)) / 1e9; };
  std::string const process = ",\"pid\":" + std::to_string(pid);
  for (span const& s : t.spans)
    out += ",\n{\"ph\":\"X\",\"name\":" + core::json(s.name).dump(-1, ' ', false,
                                                                  core::json::error_handler_t::replace) +
           ",\"cat\":\"" + category(s, of) + "\"" + process +
           ",\"tid\":" + std::to_string(thread(s.device, s.where)) + ",\"ts\":" + micro(s.start) +
           ",\"dur\":" + micro(whole(s.end) - whole(s.start)) +
           ",\"args\":{\"task\":" + std::to_string(s.task) + "}}";
  for (memory_sample const& m : t.memory)
    out += ",\n{\"ph\":\"C\",\"name\":\"memory of device " + std::to_string(m.device) + "\"" + process +
           ",\"ts\":" + micro(m.time) + ",\"args\":{\"bytes\":" + std::to_string(m.bytes) + "}}";
}

}  // namespace detail

/// The trace event format (JSON object form, times in microseconds): devices as threads, one per lane, memory
/// as counters. Every span of both timelines is there once, about 130 bytes each. `of`: the program that both
/// are of; then categories are kinds of reshard, the same in both, whatever lane a span is in. O(spans +
/// samples).
inline std::string chrome_trace(timeline const& predicted, timeline const* measured = nullptr,
                                program const* of = nullptr) {
  std::string r = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  detail::trace_process(r, predicted, 1, "predicted", of);
  if (measured) detail::trace_process(r, *measured, 2, "measured", of);
  return r + "\n]}\n";
}

}  // namespace tensorpar::report
