// tensorpar/report/chrome_trace.hpp - timelines for Perfetto and chrome://tracing: predicted and measured as two processes
#pragma once
#include <set>
#include <tensorpar/core/json.hpp>
#include <tensorpar/plan/timeline.hpp>

namespace tensorpar {

namespace detail {

inline void trace_process(std::string& out, timeline const& t, int pid, std::string const& name) {
  auto line = [&](json const& e) { out += (out.back() == '[' ? "\n" : ",\n") + e.dump(-1, ' ', false, json::error_handler_t::replace); };
  auto meta = [&](char const* what, int tid, json const& args) {
    line({{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", args}});
  };
  auto thread = [](int device, lane w) { return 2 * device + (w == lane::communication) + 1; };
  meta("process_name", 0, {{"name", name}});
  meta("process_sort_index", 0, {{"sort_index", pid}});
  std::set<std::pair<int, int>> lanes;
  for (span const& s : t.spans) lanes.insert({s.device, static_cast<int>(s.where)});
  for (auto const& [device, where] : lanes) {
    int const tid = thread(device, static_cast<lane>(where));
    meta("thread_name", tid, {{"name", "device " + std::to_string(device) + (where ? " communication" : " compute")}});
    meta("thread_sort_index", tid, {{"sort_index", tid}});
  }
  for (span const& s : t.spans) {
    json e = json::object();
    e["ph"] = "X";
    e["name"] = s.name;
    e["cat"] = s.where == lane::compute ? "compute" : "communication";
    e["pid"] = pid;
    e["tid"] = thread(s.device, s.where);
    e["ts"] = s.start * 1e6;
    e["dur"] = (s.end - s.start) * 1e6;
    e["args"] = {{"task", s.task}, {"device", s.device}};
    line(e);
  }
  for (memory_sample const& m : t.memory)
    line({{"ph", "C"},
          {"name", "memory of device " + std::to_string(m.device)},
          {"pid", pid},
          {"ts", m.time * 1e6},
          {"args", {{"bytes", m.bytes}}}});
}

}  // namespace detail

/// The trace event format (JSON object form, times in microseconds): devices as threads, one per lane, memory as counters. Every span of
/// both timelines is there once. O(spans + samples).
inline std::string chrome_trace(timeline const& predicted, timeline const* measured = nullptr) {
  std::string r = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  detail::trace_process(r, predicted, 1, "predicted");
  if (measured) detail::trace_process(r, *measured, 2, "measured");
  return r + "\n]}\n";
}

}  // namespace tensorpar
