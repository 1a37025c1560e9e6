// tensorpar/report/page/html.hpp - one page about a plan: graph, placement, timelines, memory; no network
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/report/comparison.hpp>
#include <tensorpar/report/page/data.hpp>
#include <tensorpar/report/page/graph_svg.hpp>
#include <tensorpar/report/page/parallel_svg.hpp>
#include <tensorpar/report/page/script.hpp>
#include <tensorpar/report/page/style.hpp>
#include <tensorpar/report/page/timelines.hpp>

namespace tensorpar::report {

namespace detail {

inline std::string card(std::string const& big, std::string const& what, std::string const& more = "") {
  return "<div><p class=\"soft\">" + html_text(what) + "</p><p class=\"big\">" + html_text(big) +
         "</p><p class=\"soft\">" + html_text(more) + "</p></div>\n";
}
inline std::string meter_row(std::string const& name, std::string const& value, double part,
                             std::string const& more, std::string const& colour = "") {
  std::string const width = printed("%.1f", 100 * std::min(1.0, std::max(0.0, part)));
  return "<tr><td>" + html_text(name) + "</td><td class=\"n\">" + html_text(value) +
         "</td><td><div class=\"meter\"><i style=\"width:" + width + "%" +
         (colour.empty() ? "" : ";background:" + colour) + "\"></i></div></td><td class=\"n soft\">" +
         html_text(more) + "</td></tr>\n";
}
inline std::string legend(std::vector<std::pair<std::string, std::string>> const& entries) {
  std::string r = "<div class=\"legend\">";
  for (auto const& [colour, text] : entries)
    r += "<span><i style=\"background:" + colour + "\"></i>" + html_text(text) + "</span>";
  return r + "</div>\n";
}

/// How full a device's memory is; where its size is not known, beside the fullest device.
inline double filled(device_summary const& x, i64 fullest) {
  i64 const of = x.capacity > 0 ? x.capacity : fullest;
  return of > 0 ? std::min(1.0, static_cast<double>(x.peak) / static_cast<double>(of)) : 0;
}

/// The plan beside others, and which operators make the difference; nothing for fewer than two.
inline std::string comparison_section(std::vector<plan_summary> const& all) {
  if (all.size() < 2) return "";
  std::vector<std::vector<std::string>> const rows = comparison_rows(all);
  std::string r = "<section><h2>Compared</h2><div class=\"table\"><table class=\"plain\">";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    r += i == 0 ? "<thead><tr>" : "<tr>";
    std::string const tag = i == 0 ? "th" : "td";
    for (std::size_t k = 0; k < rows[i].size(); ++k)
      r += "<" + tag + (k > 0 ? " class=\"n\"" : "") + ">" + html_text(rows[i][k]) + "</" + tag + ">";
    r += i == 0 ? "</tr></thead><tbody>" : "</tr>\n";
  }
  r += "</tbody></table></div>\n<ul class=\"reasons\">\n";
  for (std::size_t k = 1; k < all.size(); ++k) {
    std::vector<std::string> const lines = why_not(all[0], all[k]);
    r += "<li>" + html_text(lines[0]);
    if (lines.size() > 1) {
      r += "<ul>";
      for (std::size_t i = 1; i < lines.size(); ++i) r += "<li>" + html_text(lines[i]) + "</li>";
      r += "</ul>";
    }
    r += "</li>\n";
  }
  return r + "</ul></section>\n";
}

}  // namespace detail

namespace detail {

inline std::string page_title(plan_summary const& s) {
  std::size_t const devices = s.devices.size();
  return (s.model.empty() ? "plan" : s.model) + " on " + std::to_string(devices) +
         (devices == 1 ? " device" : " devices");
}
/// Up to the first card.
inline std::string page_head(plan_summary const& s, std::size_t tasks) {
  std::string const title = page_title(s);
  std::string r =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
      "content=\"width=device-width, "
      "initial-scale=1\">\n<title>" +
      html_text(title) + "</title>\n<style>" + html_style + "</style>\n</head>\n<body>\n<main>\n";
  r +=
      "<header><div><h1>" + html_text(title) + "</h1><p class=\"soft\">" +
      html_text((s.cluster.empty() ? "" : "cluster " + s.cluster + " \xc2\xb7 ") +
                std::to_string(s.operators.size()) + " operators \xc2\xb7 " + std::to_string(tasks) +
                " tasks per step \xc2\xb7 " + std::to_string(s.micro_batches) +
                (s.micro_batches == 1 ? " micro-batch" : " micro-batches") +
                (s.numbers.empty() ? "" : " \xc2\xb7 " + s.numbers)) +
      "</p></div><button id=\"theme\" type=\"button\">light / dark</button></header>\n";
  return r;
}
/// The step by prediction and by others, memory, bytes.
inline std::string page_cards(plan_summary const& s, timeline const& predicted,
                              std::vector<named_timeline> const& others) {
  std::string r;
  std::string const least = (s.of_steps ? "operators on all devices or the first alone: at least "
                                        : "search: " + seconds_text(s.cost) +
                                              "; all plans that it may find: at least ") +
                            seconds_text(s.bound);
  r += "<div class=\"cards\">\n" + card(seconds_text(s.seconds), "predicted step",
                                        s.bound > 0 && s.cost > 0
                                            ? least + ", gap " + gap_text(s.cost, s.bound)
                                            : "simulated");
  if (s.rate.samples > 0)
    r += card(printed("%.1f", 100 * s.rate.mfu) + " %", "of the devices' FLOP/s (MFU)",
              three(s.rate.samples) + " samples/s" +
                  (s.rate.tokens > 0 ? "; " + three(s.rate.tokens) + " tokens/s" : ""));
  timeline const* before = &predicted;
  for (named_timeline const& x : others) {
    std::string const than = before == &predicted ? "against the prediction" : "against the one before";
    r += card(seconds_text(x.time.seconds), "step " + x.name,
              before->seconds > 0
                  ? printed("%+.0f", 100 * (x.time.seconds / before->seconds - 1)) + " % " + than
                  : "");
    before = &x.time;
  }
  i64 const room = s.devices.empty() ? 0 : s.devices.front().capacity;
  r += card(bytes_text(static_cast<double>(s.peak())), "peak memory of a device",
            (room > 0 ? three(100 * static_cast<double>(s.peak()) / static_cast<double>(room)) + " % of " +
                            bytes_text(static_cast<double>(room)) + "; "
                      : "") +
                html_text(s.scratch));
  r += card(bytes_text(s.sent()), "moved per step", "by all devices together");
  return r + "</div>\n";
}
/// Pages show parallel computation graphs of at most so many forward operators.
inline constexpr int max_parallel_nodes = 200;
inline std::string graph_section(training_graph const& t, plan_summary const& s) {
  int const devices = static_cast<int>(s.devices.size());
  std::string r;
  std::vector<std::pair<std::string, std::string>> device_legend;
  if (devices <= 16)
    for (int d = 0; d < devices; ++d)
      device_legend.push_back({palette(d, devices), "device " + std::to_string(d)});
  else
    device_legend.push_back({"var(--accent)", std::to_string(devices) + " devices, from left to right"});
  r +=
      "<section>\n<div class=\"bar\"><h2>Graph and placement</h2><button id=\"graph-out\" type=\"button\" "
      "aria-label=\"smaller\">\xe2\x88\x92</button><button id=\"graph-in\" type=\"button\" "
      "aria-label=\"larger\">+</button><button "
      "id=\"graph-fit\" type=\"button\">fit</button></div>\n<div class=\"two\">\n<div class=\"scroll "
      "graph\">\n" +
      graph_svg(t.graph, t.forward_nodes, s) +
      "</div>\n<div><div id=\"details\"></div>\n<h2 style=\"margin-top:20px\">Devices</h2>\n" +
      legend(device_legend) +
      "<p class=\"soft\" style=\"font-size:12.5px;margin-top:10px\">The stripe in a box shows the devices "
      "that an operator runs on; the "
      "warmer the box, the larger its share of the step.</p></div>\n</div>\n</section>\n";
  return r;
}
/// The graph as Unity draws it, unless it is so large that nobody could read it.
inline std::string parallel_section(training_graph const& t, plan const& p) {
  if (t.forward_nodes > max_parallel_nodes || p.nodes.size() != idx(t.forward_nodes))
    return "";
  return "<section>\n<div class=\"bar\"><h2>Parallel computation graph</h2>" +
         legend({{"#4c8bf5", "partition"},
                 {"#9b6bdf", "combine"},
                 {"#2fa36b", "replicate"},
                 {"#e8973a", "reduce"}}) +
         "</div>\n<div class=\"scroll\">\n" + parallel_svg(parallel_graph_of(t, p)) +
         "</div>\n</section>\n";
}
/// Timelines, and memory over time: the page's script draws them.
inline std::string time_sections() {
  std::string r;
  r +=
      "<section>\n<div class=\"bar\"><h2>Timeline of one step</h2>" +
      legend({{"var(--forward)", "forward"},
              {"var(--backward)", "backward"},
              {"var(--update)", "update"},
              {"var(--move)", "reshard"}}) +
      "<label class=\"check\"><input type=\"checkbox\" id=\"together\">one time scale</label><button "
      "id=\"time-out\" "
      "type=\"button\" aria-label=\"show more time\">\xe2\x88\x92</button><button id=\"time-in\" "
      "type=\"button\" "
      "aria-label=\"show less time\">+</button><button id=\"time-all\" "
      "type=\"button\">all</button></div>\n<div class=\"chart\"><canvas "
      "id=\"timeline\" tabindex=\"0\" role=\"img\" aria-label=\"timelines; arrow keys move, + and - zoom, 0 "
      "shows all\"></canvas></div>\n"
      "<p class=\"soft\" style=\"font-size:12.5px;margin-top:8px\">Drag or arrow keys to move, "
      "double-click, Ctrl + wheel or + and "
      "\xe2\x88\x92 to zoom, click a span to find its operator. \xe2\x87\x84 marks communication. Devices "
      "on which the same happens "
      "share a row.</p>\n</section>\n";
  r +=
      "<section>\n<div class=\"bar\"><h2>Memory over time, predicted</h2><div class=\"legend\" "
      "id=\"memory-legend\"></div></div>\n<div class=\"chart\"><canvas id=\"memory\" role=\"img\" "
      "aria-label=\"memory over "
      "time\"></canvas></div>\n<p class=\"soft\" "
      "style=\"font-size:12.5px;margin-top:8px\">Bytes alive on each device; dashed: the arena that is "
      "allocated once.</p>\n</section>\n";
  return r;
}
/// Bytes by collective, and peak memory by device.
inline std::string bytes_and_memory(plan_summary const& s) {
  int const devices = static_cast<int>(s.devices.size());
  std::string r;
  r +=
      "<div class=\"halves\">\n<section><h2>Bytes moved per step, all devices</h2><div "
      "class=\"table\"><table class=\"plain\"><tbody>\n";
  double most = 0;
  for (double b : s.bytes) most = std::max(most, b);
  for (int k = 0; k < move_kinds; ++k) {
    auto const i = idx(k);
    if (static_cast<ir::reshard_kind>(k) == ir::reshard_kind::slice) continue;
    r += meter_row(move_text(static_cast<ir::reshard_kind>(k)), bytes_text(s.bytes[i]),
                   most > 0 ? s.bytes[i] / most : 0,
                   std::to_string(s.times[i]) + (s.times[i] == 1 ? " task" : " tasks"), "var(--move)");
  }
  r +=
      "</tbody></table></div></section>\n<section><h2>Peak memory per device</h2><div "
      "class=\"table\"><table class=\"plain\"><tbody>\n";
  // neighbours that are alike share a line where devices are many
  for (int d = 0, next; d < devices; d = next) {
    device_summary const& x = s.devices[idx(d)];
    auto alike = [&](device_summary const& y) { return y.peak == x.peak && y.capacity == x.capacity; };
    for (next = d + 1; devices > 16 && next < devices && alike(s.devices[idx(next)]);)
      ++next;
    r += meter_row("device " + std::to_string(d) + (next > d + 1 ? "-" + std::to_string(next - 1) : ""),
                   bytes_text(static_cast<double>(x.peak)), filled(x, s.peak()),
                   x.capacity > 0 ? "of " + bytes_text(static_cast<double>(x.capacity)) : "",
                   palette(d, devices));
  }
  return r + "</tbody></table></div></section>\n</div>\n";
}

}  // namespace detail

/// A page that opens in any browser without a network. It shows the graph with its placement, the parallel
/// computation graph, what dominates, timelines (zoomable), and memory over time. Also bytes by collective,
/// peak memory per device and every operator. With `compared`, the first of which is this plan, it says why
/// the others lose. All text is escaped, and nothing outside is referred to. Light or dark as the reader
/// prefers. Size: about 20 bytes per span. Devices on which the same happens at the same time share their
/// spans.
inline std::string html_report(training_graph const& t, plan const& p, program const& q,
                               timeline const& predicted, std::vector<named_timeline> const& others = {},
                               std::vector<plan_summary> const& compared = {}) {
  using namespace detail;
  plan_summary const s = summary_of("", t, p, q, predicted);
  std::string r = detail::page_head(s, q.tasks.size()) + detail::page_cards(s, predicted, others);
  r += "<section class=\"why\"><h2>What dominates</h2><p>" + html_text(s.dominated) +
       "</p></section>\n" + detail::comparison_section(compared);
  r += detail::graph_section(t, s) + detail::parallel_section(t, p) + detail::time_sections()
      + detail::bytes_and_memory(s);
  r +=
      "<section><h2>Operators</h2><div class=\"table\"><table "
      "id=\"operator-table\"><thead><tr><th tabindex=\"0\">name</th><th tabindex=\"0\">operator</th><th "
      "tabindex=\"0\">split</th><th "
      "tabindex=\"0\">devices</th><th class=\"n\">compute</th><th "
      "class=\"n\">moves</th><th class=\"n\">bytes moved</th></tr></thead><tbody "
      "id=\"operators\"></tbody></table></div></section>\n</main>\n<div id=\"tip\"></div>\n";
  r += "<script type=\"application/json\" id=\"data\">" +
       detail::script_json(detail::report_data(t, s, q, predicted, others)) + "</script>\n<script>"
           + detail::html_script + detail::html_timelines + "</script>\n</body>\n</html>\n";
  return r;
}

}  // namespace tensorpar::report
