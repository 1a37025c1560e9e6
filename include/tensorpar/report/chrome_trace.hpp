// tensorpar/report/chrome_trace.hpp - timelines for Perfetto and chrome://tracing: predicted and measured as
// two processes
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/json.hpp>
#include <tensorpar/op/core/spelling.hpp>
#include <tensorpar/report/tasks.hpp>
#include <tensorpar/report/units.hpp>

namespace tensorpar::report {

namespace detail {

/// What a task moves or makes: "[64,128] -> [64,32]", logical shapes. Operands that are weights count, too.
inline std::string shapes_text(program const& q, task const& t) {
  auto const list = [&](std::vector<int> const& buffers) {
    std::string r;
    for (int b : buffers) r += (r.empty() ? "" : ", ") + op::spell(q.buffers[idx(b)].type);
    return r;
  };
  return list(t.in) + " -> " + list(t.out);
}
/// A task's arguments without the last brace, once for all devices: its number, kind of operator or reshard,
/// bytes that all its devices send together, devices and shapes.
inline std::string trace_arguments(program const& q, int number) {
  task const& t = q.tasks[idx(number)];
  core::json a = core::json::object();
  a["task"] = number;
  a["kind"] = t.kind != task_kind::compute ? move_text(t.step.kind)
              : t.op.op                    ? std::string(t.op.op->name)
                                           : "";
  if (t.kind != task_kind::compute) a["bytes"] = std::llround(bytes_of_move(q, t));
  a["devices"] = devices_text(t.devices);
  a["shapes"] = shapes_text(q, t);
  std::string r = a.dump(-1, ' ', false, core::json::error_handler_t::replace);
  r.pop_back();
  return r;
}
/// The devices that a device meets in a collective of several groups, as one more argument; else "".
inline std::string trace_group(task const& t, int device) {
  if (!communicates(t) || t.step.kind == ir::reshard_kind::exchange) return "";
  if (t.step.group_size() == static_cast<i64>(t.step.after.size())) return "";
  std::vector<int> group = t.step.members(device);
  std::sort(group.begin(), group.end());
  return ",\"group\":\"" + devices_text(group) + "\"";
}
inline void trace_process(std::string& out, timeline const& t, int pid, std::string const& name,
                          program const* of) {
  auto line = [&](core::json const& e) {
    out += (out.back() == '[' ? "\n" : ",\n") + e.dump(-1, ' ', false, core::json::error_handler_t::replace);
  };
  auto meta = [&](char const* what, int tid, core::json const& args) {
    line({{"ph", "M"}, {"name", what}, {"pid", pid}, {"tid", tid}, {"args", args}});
  };
  int links = 1;                                             // lanes of communication
  for (span const& s : t.spans) links = std::max(links, s.link + 1);
  auto thread = [links](span const& s) {
    return (1 + links) * s.device + (s.where == lane::communication ? 1 + s.link : 0) + 1;
  };
  meta("process_name", 0, {{"name", name}});
  meta("process_sort_index", 0, {{"sort_index", pid}});
  std::map<int, std::string> lanes;
  for (span const& s : t.spans) {
    std::string& title = lanes[thread(s)];
    if (!title.empty()) continue;
    title = "device " + std::to_string(s.device) +
           (s.where == lane::compute ? " compute" : " communication");
    if (links > 1 && s.where == lane::communication) title += ", link level " + std::to_string(s.link);
  }
  for (auto const& [tid, title] : lanes) {
    meta("thread_name", tid, {{"name", title}});
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
  program const none;
  std::string const process = ",\"pid\":" + std::to_string(pid);
  std::map<int, std::string> arguments;                      // by task: many devices carry out the same one
  auto const arguments_of = [&](span const& s) {
    if (!of || s.task < 0 || idx(s.task) >= of->tasks.size())
      return "{\"task\":" + std::to_string(s.task) + "}";
    std::string& a = arguments[s.task];
    if (a.empty()) a = trace_arguments(*of, s.task);
    return a + trace_group(of->tasks[idx(s.task)], s.device) + "}";
  };
  for (span const& s : t.spans)
    out += ",\n{\"ph\":\"X\",\"name\":" + core::json(s.name).dump(-1, ' ', false,
                                                                  core::json::error_handler_t::replace) +
           ",\"cat\":\"" + (communicates(of ? *of : none, s) ? "communication" : "compute") + "\"" + process +
           ",\"tid\":" + std::to_string(thread(s)) + ",\"ts\":" + micro(s.start) +
           ",\"dur\":" + micro(whole(s.end) - whole(s.start)) +
           ",\"args\":" + arguments_of(s) + "}";
  for (memory_sample const& m : t.memory)
    out += ",\n{\"ph\":\"C\",\"name\":\"memory of device " + std::to_string(m.device) + "\"" + process +
           ",\"ts\":" + micro(m.time) + ",\"args\":{\"bytes\":" + std::to_string(m.bytes) + "}}";
}

}  // namespace detail

/// The trace event format (JSON object form, times in microseconds): devices as threads, one per lane, memory
/// as counters. Every span of both timelines is there once, about 250 bytes each. Its category is "compute"
/// or "communication", the same for a task in both timelines. `of`: the program that both are of. With it
/// spans tell the kind of their operator or reshard, bytes, devices and shapes. A task that only cuts a part
/// out of what its device has counts as computing, whatever lane it is in. O(spans + samples).
inline std::string chrome_trace(timeline const& predicted, timeline const* measured = nullptr,
                                program const* of = nullptr) {
  std::string r = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  detail::trace_process(r, predicted, 1, "predicted", of);
  if (measured) detail::trace_process(r, *measured, 2, "measured", of);
  return r + "\n]}\n";
}

}  // namespace tensorpar::report
