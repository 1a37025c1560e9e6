// tensorpar/report/page/data.hpp - the numbers of the report page, as JSON that may stand inside a script
// element
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/core/json.hpp>
#include <tensorpar/report/critical_chain.hpp>
#include <tensorpar/report/page/device_groups.hpp>
#include <tensorpar/report/page/folds.hpp>

namespace tensorpar::report {

/// Bytes that a timeline's tasks keep alive, from the lifetimes of their buffers: on every device from the
/// start of the first task of a lifetime that runs there to the end of the last. For timelines that carry no
/// samples of their own. O((buffers + spans) log) per device.
inline std::vector<memory_sample> memory_over_time(program const& q, timeline const& t) {
  std::vector<memory_sample> r;
  std::map<int, std::map<int, std::pair<double, double>>> seen;  // device -> task -> start, end
  for (span const& s : t.spans) seen[s.device][s.task] = {s.start, s.end};
  for (auto const& [device, tasks] : seen) {
    std::map<double, i64> change;
    for (buffer const& b : q.buffers) {
      if (!std::binary_search(b.devices.begin(), b.devices.end(), device)) continue;
      auto const first = tasks.lower_bound(b.first), after = tasks.upper_bound(b.last);
      double const from = b.persistent || first == tasks.end() ? 0 : first->second.first;
      double to = from;
      for (auto it = first; it != after; ++it) to = std::max(to, it->second.second);
      if (!b.persistent && first == after) continue;
      change[from] += b.bytes;
      if (!b.persistent) change[to] -= b.bytes;
    }
    i64 now = 0;
    for (auto const& [time, bytes] : change)
      if (bytes) r.push_back({device, time, now += bytes});
  }
  return r;
}

/// A timeline to be shown beside the predicted one. Refers to it.
struct named_timeline {
  std::string name;
  timeline const& time;
};

namespace detail {

inline i64 nanoseconds(double s) { return static_cast<i64>(std::llround(s * 1e9)); }
/// Devices on which the same happens at the same time share a row: {device, text, spans of the compute lane,
/// of each lane of communication}, spans as task, start, duration, task, ... in whole nanoseconds.
inline core::json timeline_json(std::string const& name, timeline const& t) {
  using row = std::vector<std::vector<i64>>;
  std::size_t lanes = 2;
  for (span const& s : t.spans) lanes = std::max(lanes, 2 + idx(s.link));
  std::map<int, row> of;
  for (span const& s : t.spans) {
    row& all = of.try_emplace(s.device, lanes).first->second;
    std::vector<i64>& lane_of = all[s.where == lane::communication ? 1 + idx(s.link) : 0];
    i64 const start = nanoseconds(s.start);
    lane_of.insert(lane_of.end(), {s.task, start, nanoseconds(s.end) - start});
  }
  std::map<row, std::vector<int>> alike;
  for (auto const& [device, spans] : of) alike[spans].push_back(device);
  std::vector<std::pair<std::vector<int>, row const*>> rows;
  for (auto const& [spans, devices] : alike) rows.push_back({devices, &spans});
  std::sort(rows.begin(), rows.end());
  core::json r = core::json::object(), list = core::json::array();
  for (auto const& [devices, spans] : rows)
    {
      core::json line = {devices, devices_text(devices)};
      for (std::vector<i64> const& one : *spans) line.push_back(one);
      list.push_back(std::move(line));
    }
  r["name"] = name;
  r["seconds"] = nanoseconds(t.seconds);
  r["rows"] = std::move(list);
  return r;
}
/// Devices with the same curve share it: {devices, text, samples as time, bytes, time, ...}.
inline core::json memory_json(std::vector<memory_sample> const& samples, int devices) {
  std::map<int, std::vector<i64>> of;
  for (memory_sample const& m : samples)
    if (m.device >= 0 && m.device < devices) {
      std::vector<i64>& x = of[m.device];
      x.insert(x.end(), {nanoseconds(m.time), m.bytes});
    }
  std::map<std::vector<i64>, std::vector<int>> alike;
  for (auto const& [device, x] : of) alike[x].push_back(device);
  std::vector<std::pair<std::vector<int>, std::vector<i64> const*>> lines;
  for (auto const& [x, who] : alike) lines.push_back({who, &x});
  std::sort(lines.begin(), lines.end());
  core::json r = core::json::array();
  for (auto const& [who, x] : lines) r.push_back({who, devices_text(who), *x});
  return r;
}

/// Name, colour and devices of every group.
inline core::json groups_json(device_groups const& all) {
  core::json r = core::json::array();
  for (int g = 0; g < all.size(); ++g) {
    core::json x = core::json::object();
    x["name"] = all.size() > 1 ? group_name(g) : "";
    x["colour"] = "group-" + std::to_string(g);
    x["text"] = group_text(all, g);
    r.push_back(std::move(x));
  }
  return r;
}
/// An operator; what is nothing is left out, for there may be ten thousand.
inline core::json operator_json(computation_graph const& g, operator_summary const& o, i64 scalar_bytes,
                                device_groups const& groups, folding const& folds) {
  graph_node const& n = g.node(o.node);
  core::json x = core::json::object(), bytes = core::json::object();
  for (int k = 0; k < move_kinds; ++k)
    if (double const b = o.bytes[idx(k)]; b > 0)
      bytes[move_text(static_cast<ir::reshard_kind>(k))] = std::llround(b);
  i64 parameters = 0;
  for (int v : n.in)
    if (g.value(v).role == value_role::parameter)
      parameters = core::saturating_add(
          parameters, core::saturating_mul(g.type(v).elements(), bytes_of(g.type(v).type, scalar_bytes)));
  auto const v = idx(o.node);
  x["node"] = o.node;
  x["name"] = o.name;
  x["op"] = o.op;
  x["shape"] = n.out.empty() ? "" : op::spell(g.type(n.out[0]));
  x["sharding"] = o.sharding;
  x["groups"] = groups.among(o.devices);
  x["devices"] = devices_text(o.devices);
  x["count"] = o.devices.size();
  x["compute"] = nanoseconds(o.compute);
  x["move"] = nanoseconds(o.move);
  if (core::json choice = choice_words(o.choice); !choice.empty()) x["saves"] = std::move(choice);
  if (!bytes.empty()) x["bytes"] = std::move(bytes);
  if (o.sent() > 0) x["sent"] = std::llround(o.sent());
  if (parameters > 0) x["parameters"] = parameters;
  if (folds.fold_of[v] >= 0) {
    x["fold"] = folds.fold_of[v];
    x["shown"] = folds.shown[v];
  }
  return x;
}
/// The chain as task, device, task, device, ...: the script marks its spans.
inline core::json chain_json(std::vector<chain_link> const& chain, timeline const& t) {
  core::json r = core::json::array();
  for (chain_link const& l : chain) {
    r.push_back(t.spans[l.span].task);
    r.push_back(t.spans[l.span].device);
  }
  return r;
}

/// What a page is made from, besides graph and program.
struct page_parts {
  plan_summary const& summary;
  device_groups const& groups;
  folding const& folds;
  std::vector<chain_link> const& chain;
};
/// What the script needs. Names of tasks stand once, spans refer to them by number.
inline core::json report_data(training_graph const& t, page_parts const& parts, program const& q,
                              timeline const& predicted, std::vector<named_timeline> const& others) {
  computation_graph const& g = t.graph;
  core::json r = core::json::object(), tasks = core::json::array(), operators = core::json::array(),
             peaks = core::json::array(), folds = core::json::array(), lines = core::json::array();
  int const devices = static_cast<int>(parts.summary.devices.size());
  for (device_summary const& d : parts.summary.devices) peaks.push_back(d.peak);
  for (task const& x : q.tasks) {
    bool const known = x.node >= 0 && x.node < g.node_count();
    int const phase = x.kind != task_kind::compute ? 3 : known ? static_cast<int>(g.node(x.node).phase) : 0;
    tasks.push_back({x.name, phase, int{served(g, x)}});
  }
  for (operator_summary const& o : parts.summary.operators)
    operators.push_back(operator_json(g, o, q.scalar_bytes, parts.groups, parts.folds));
  for (fold const& f : parts.folds.folds) folds.push_back({f.first, f.unit, f.times});
  lines.push_back(timeline_json("predicted", predicted));
  for (named_timeline const& x : others) lines.push_back(timeline_json(x.name, x.time));
  std::vector<memory_sample> const samples =
      predicted.memory.empty() ? memory_over_time(q, predicted) : predicted.memory;
  r["groups"] = groups_json(parts.groups);
  r["groupOf"] = parts.groups.of;
  r["operators"] = std::move(operators);
  r["folds"] = std::move(folds);
  r["tasks"] = std::move(tasks);
  r["chain"] = chain_json(parts.chain, predicted);
  r["timelines"] = std::move(lines);
  r["memory"] = memory_json(samples, devices);
  r["memoryEnd"] = nanoseconds(predicted.seconds);
  r["peaks"] = std::move(peaks);
  return r;
}
/// JSON that may stand inside a script element: nothing in it can end the element.
inline std::string script_json(core::json const& j) {
  std::string r;
  for (char c : j.dump(-1, ' ', false, core::json::error_handler_t::replace))
    r += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return r;
}

}  // namespace detail

}  // namespace tensorpar::report
