// tensorpar/report/html.hpp - one page about a plan: graph, placement, timelines, memory; needs no network
#pragma once
#include <tensorpar/core/json.hpp>
#include <tensorpar/report/graph_svg.hpp>
#include <tensorpar/report/html_script.hpp>
#include <tensorpar/report/html_style.hpp>
#include <tensorpar/report/text.hpp>

namespace tensorpar {

/// Bytes that a timeline's tasks keep alive, from the lifetimes of their buffers: on every device from the start of the first task of a
/// lifetime that runs there to the end of the last. For timelines that carry no samples of their own. O((buffers + spans) log) per device.
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

namespace detail {

inline i64 nanoseconds(double s) { return static_cast<i64>(std::llround(s * 1e9)); }
inline json timeline_json(std::string const& name, timeline const& t) {
  json spans = json::array();
  for (span const& s : t.spans)
    spans.push_back({s.device, s.where == lane::communication ? 1 : 0, s.task, nanoseconds(s.start), nanoseconds(s.end)});
  json r = json::object();
  r["name"] = name;
  r["seconds"] = nanoseconds(t.seconds);
  r["spans"] = std::move(spans);
  return r;
}

/// What the script needs. Names of tasks stand once, spans refer to them by number.
inline json report_data(training_graph const& t, plan_summary const& s, program const& q, timeline const& predicted,
                        timeline const* measured) {
  computation_graph const& g = t.graph;
  json r = json::object(), tasks = json::array(), operators = json::array(), memory = json::array(), peaks = json::array(),
       colours = json::array(), lines = json::array();
  int const devices = static_cast<int>(s.devices.size());
  for (int d = 0; d < devices; ++d) {
    colours.push_back(palette(d, devices));
    peaks.push_back(s.devices[static_cast<std::size_t>(d)].peak);
  }
  for (task const& x : q.tasks) {
    int const phase = x.kind == task_kind::move ? 3 : x.node >= 0 && x.node < g.node_count() ? static_cast<int>(g.node(x.node).phase) : 0;
    tasks.push_back({x.name, phase, served(g, x)});
  }
  for (operator_summary const& o : s.operators) {
    graph_node const& n = g.node(o.node);
    json x = json::object(), bytes = json::object();
    for (int k = 0; k < move_kinds; ++k)
      if (double const b = o.bytes[static_cast<std::size_t>(k)]; b > 0) bytes[name_of(static_cast<move_kind>(k))] = std::llround(b);
    i64 parameters = 0;
    for (int v : n.in)
      if (g.value(v).role == value_role::parameter) parameters += g.type(v).elements() * q.scalar_bytes;
    x["node"] = o.node;
    x["name"] = o.name;
    x["op"] = o.op;
    x["shape"] = n.out.empty() ? "" : spell(g.type(n.out[0]));
    x["spread"] = o.spread;
    x["devices"] = o.devices;
    x["deviceText"] = devices_text(o.devices);
    x["compute"] = nanoseconds(o.compute);
    x["move"] = nanoseconds(o.move);
    x["sent"] = std::llround(o.sent());
    x["bytes"] = std::move(bytes);
    x["parameters"] = parameters;
    operators.push_back(std::move(x));
  }
  lines.push_back(timeline_json("predicted", predicted));
  if (measured) lines.push_back(timeline_json("measured", *measured));
  std::vector<memory_sample> const samples = predicted.memory.empty() ? memory_over_time(q, predicted) : predicted.memory;
  std::vector<json> of(static_cast<std::size_t>(devices), json::array());
  for (memory_sample const& m : samples)
    if (m.device >= 0 && m.device < devices) of[static_cast<std::size_t>(m.device)].push_back({nanoseconds(m.time), m.bytes});
  for (int d = 0; d < devices; ++d) memory.push_back({{"device", d}, {"samples", std::move(of[static_cast<std::size_t>(d)])}});
  r["colours"] = std::move(colours);
  r["operators"] = std::move(operators);
  r["tasks"] = std::move(tasks);
  r["timelines"] = std::move(lines);
  r["memory"] = samples.empty() ? json::array() : std::move(memory);
  r["memoryEnd"] = nanoseconds(predicted.seconds);
  r["peaks"] = std::move(peaks);
  return r;
}
/// JSON that may stand inside a script element: nothing in it can end the element.
inline std::string script_json(json const& j) {
  std::string r;
  for (char c : j.dump(-1, ' ', false, json::error_handler_t::replace)) r += c == '<' ? std::string("\\u003c") : std::string(1, c);
  return r;
}

inline std::string card(std::string const& big, std::string const& what, std::string const& more = "") {
  return "<div><p class=\"soft\">" + html_text(what) + "</p><p class=\"big\">" + html_text(big) + "</p><p class=\"soft\">" +
         html_text(more) + "</p></div>\n";
}
inline std::string meter_row(std::string const& name, std::string const& value, double part, std::string const& more,
                             std::string const& colour = "") {
  std::string const width = printed("%.1f", 100 * std::min(1.0, std::max(0.0, part)));
  return "<tr><td>" + html_text(name) + "</td><td class=\"n\">" + html_text(value) +
         "</td><td><div class=\"meter\"><i style=\"width:" + width + "%" + (colour.empty() ? "" : ";background:" + colour) +
         "\"></i></div></td><td class=\"n soft\">" + html_text(more) + "</td></tr>\n";
}
inline std::string legend(std::vector<std::pair<std::string, std::string>> const& entries) {
  std::string r = "<div class=\"legend\">";
  for (auto const& [colour, text] : entries) r += "<span><i style=\"background:" + colour + "\"></i>" + html_text(text) + "</span>";
  return r + "</div>\n";
}

}  // namespace detail

/// A page that opens in any browser without a network: the graph with its placement, what dominates, both timelines (zoomable), memory over
/// time, bytes by collective, peak per device, every operator. All text is escaped, nothing outside is referred to. Light or dark as the
/// reader prefers. Size: about 25 bytes per span.
inline std::string html_report(training_graph const& t, plan const& p, program const& q, timeline const& predicted,
                               timeline const* measured = nullptr) {
  using namespace detail;
  plan_summary const s = summary_of("", t, p, q, predicted);
  int const devices = static_cast<int>(s.devices.size());
  std::string const title =
      (s.model.empty() ? "plan" : s.model) + " on " + std::to_string(devices) + (devices == 1 ? " device" : " devices");
  std::string r =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<title>" +
      html_text(title) + "</title>\n<style>" + html_style + "</style>\n</head>\n<body>\n<main>\n";
  r += "<header><div><h1>" + html_text(title) + "</h1><p class=\"soft\">" +
       html_text((s.cluster.empty() ? "" : "cluster " + s.cluster + " \xc2\xb7 ") + std::to_string(s.operators.size()) +
                 " operators \xc2\xb7 " + std::to_string(q.tasks.size()) + " tasks per step \xc2\xb7 " + std::to_string(s.micro_batches) +
                 (s.micro_batches == 1 ? " micro-batch" : " micro-batches")) +
       "</p></div><button id=\"theme\" type=\"button\">light / dark</button></header>\n";
  r += "<div class=\"cards\">\n" + card(seconds_text(s.seconds), "predicted step",
                                        s.bound > 0 && s.cost > 0 ? "search: " + seconds_text(s.cost) + ", bound " + seconds_text(s.bound) +
                                                                        ", gap " + printed("%.1f", 100 * (1 - s.bound / s.cost)) + " %"
                                                                  : "simulated");
  if (measured)
    r += card(seconds_text(measured->seconds), "measured step",
              s.seconds > 0 ? printed("%+.0f", 100 * (measured->seconds / s.seconds - 1)) + " % against the prediction" : "");
  i64 const room = s.devices.empty() ? 0 : s.devices.front().capacity;
  r += card(bytes_text(static_cast<double>(s.peak())), "peak memory of a device",
            room > 0 ? printed("%.2f", 100 * static_cast<double>(s.peak()) / static_cast<double>(room)) + " % of " +
                           bytes_text(static_cast<double>(room))
                     : "");
  r += card(bytes_text(s.sent()), "moved per step", "by all devices together");
  r += "</div>\n<section class=\"why\"><h2>What dominates</h2><p>" + html_text(s.dominated) + "</p></section>\n";
  std::vector<std::pair<std::string, std::string>> device_legend;
  for (int d = 0; d < std::min(devices, 16); ++d) device_legend.push_back({palette(d, devices), "device " + std::to_string(d)});
  if (devices > 16) device_legend.push_back({"transparent", "and " + std::to_string(devices - 16) + " more"});
  r += "<section>\n<div class=\"bar\"><h2>Graph and placement</h2><button id=\"graph-out\" type=\"button\">\xe2\x88\x92</button><button "
       "id=\"graph-in\" type=\"button\">+</button><button id=\"graph-fit\" type=\"button\">fit</button></div>\n<div class=\"two\">\n<div "
       "class=\"scroll graph\">\n" +
       graph_svg(t.graph, t.forward_nodes, s) + "</div>\n<div><div id=\"details\"></div>\n<h2 style=\"margin-top:20px\">Devices</h2>\n" +
       legend(device_legend) +
       "<p class=\"soft\" style=\"font-size:12.5px;margin-top:10px\">The stripe in a box shows the devices that an operator runs on; the "
       "warmer the box, the larger its share of the step.</p></div>\n</div>\n</section>\n";
  r += "<section>\n<div class=\"bar\"><h2>Timeline of one step</h2>" +
       legend({{"var(--forward)", "forward"}, {"var(--backward)", "backward"}, {"var(--update)", "update"}, {"var(--move)", "movement"}}) +
       "<label class=\"check\"><input type=\"checkbox\" id=\"together\">one time scale</label><button id=\"time-out\" "
       "type=\"button\">\xe2\x88\x92</button><button id=\"time-in\" type=\"button\">+</button><button id=\"time-all\" "
       "type=\"button\">all</button></div>\n<div class=\"chart\"><canvas id=\"timeline\"></canvas></div>\n"
       "<p class=\"soft\" style=\"font-size:12.5px;margin-top:8px\">Drag to move, double-click or Ctrl + wheel to zoom, click a span to "
       "find its operator. \xe2\x87\x84 marks the communication lane of a device.</p>\n</section>\n";
  r += "<section>\n<div class=\"bar\"><h2>Memory over time, predicted</h2>" + legend(device_legend) +
       "</div>\n<div class=\"chart\"><canvas id=\"memory\"></canvas></div>\n<p class=\"soft\" "
       "style=\"font-size:12.5px;margin-top:8px\">Bytes alive on each device; dashed: the arena that is allocated once.</p>\n</section>\n";
  r += "<div class=\"halves\">\n<section><h2>Bytes moved per step, all devices</h2><div class=\"table\"><table class=\"plain\"><tbody>\n";
  double most = 0;
  for (double b : s.bytes) most = std::max(most, b);
  for (int k = 0; k < move_kinds; ++k) {
    auto const i = static_cast<std::size_t>(k);
    if (static_cast<move_kind>(k) == move_kind::keep) continue;
    std::string name = name_of(static_cast<move_kind>(k));
    std::replace(name.begin(), name.end(), '_', '-');
    r += meter_row(name, bytes_text(s.bytes[i]), most > 0 ? s.bytes[i] / most : 0,
                   std::to_string(s.times[i]) + (s.times[i] == 1 ? " task" : " tasks"), "var(--move)");
  }
  r += "</tbody></table></div></section>\n<section><h2>Peak memory per device</h2><div class=\"table\"><table class=\"plain\"><tbody>\n";
  for (int d = 0; d < devices; ++d) {
    device_summary const& x = s.devices[static_cast<std::size_t>(d)];
    r += meter_row("device " + std::to_string(d), bytes_text(static_cast<double>(x.peak)),
                   s.peak() > 0 ? static_cast<double>(x.peak) / static_cast<double>(s.peak()) : 0,
                   x.capacity > 0 ? "of " + bytes_text(static_cast<double>(x.capacity)) : "", palette(d, devices));
  }
  r += "</tbody></table></div></section>\n</div>\n<section><h2>Operators</h2><div class=\"table\"><table "
       "id=\"operator-table\"><thead><tr><th>name</th><th>operator</th><th>split</th><th>devices</th><th class=\"n\">compute</th><th "
       "class=\"n\">moves</th><th class=\"n\">bytes moved</th></tr></thead><tbody "
       "id=\"operators\"></tbody></table></div></section>\n</main>\n<div id=\"tip\"></div>\n";
  r += "<script type=\"application/json\" id=\"data\">" + script_json(report_data(t, s, q, predicted, measured)) + "</script>\n<script>" +
       html_script + "</script>\n</body>\n</html>\n";
  return r;
}

}  // namespace tensorpar
