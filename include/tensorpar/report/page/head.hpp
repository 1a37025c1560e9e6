// tensorpar/report/page/head.hpp - the first and the last part of a page: numbers of the step, and of the
// cluster
#pragma once
#include <tensorpar/core/config.hpp>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/machine/machine.hpp>
#include <tensorpar/report/page/data.hpp>
#include <tensorpar/report/page/notes.hpp>
#include <tensorpar/report/page/style.hpp>
#include <tensorpar/report/text.hpp>

namespace tensorpar::report::detail {

inline std::string page_title(plan_summary const& s) {
  std::size_t const devices = s.devices.size();
  return (s.model.empty() ? "plan" : s.model) + " on " + std::to_string(devices) +
         (devices == 1 ? " device" : " devices");
}
/// Up to the title. `style`: CSS besides that of all pages.
inline std::string page_start(std::string const& title, std::string const& style) {
  return "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" "
         "content=\"width=device-width, initial-scale=1\">\n<title>" +
         html_text(title) + "</title>\n<style>" + html_style + style + "</style>\n</head>\n<body>\n<main>\n";
}
/// Up to the first card.
inline std::string page_head(plan_summary const& s, std::size_t tasks, page_notes const& notes,
                             std::string const& style) {
  std::string const title = page_title(s), dot = " \xc2\xb7 ";
  std::string r = page_start(title, style) + "<header><div><h1>" + html_text(title) + "</h1>";
  if (!notes.strategy.empty()) r += "<p class=\"strategy\">" + html_text(notes.strategy) + "</p>";
  r += "<p class=\"soft\">" + html_text((s.cluster.empty() ? "" : "cluster " + s.cluster + dot) +
                                        std::to_string(s.operators.size()) + " operators" + dot +
                                        std::to_string(tasks) + " tasks per step" + dot + settings_text(s));
  if (s.ordered) r += html_text(dot + "operators in the plan's own order");
  r += "</p>";
  if (!s.numbers.empty()) r += "<p class=\"soft\">" + html_text("numbers in " + s.numbers) + "</p>";
  return r + "</div><button id=\"theme\" type=\"button\">light / dark</button></header>\n";
}

/// "220 PFLOP".
inline std::string flop_text(double flops) {
  char const* unit[] = {"FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP", "ZFLOP"};
  int u = 0;
  for (; flops >= 999.5 && u < 7; flops /= 1000) ++u;
  return three(flops) + " " + unit[u];
}
/// How much of the fullest device is used, or what a device lacks.
inline std::string peak_card(plan_summary const& s) {
  i64 const peak = s.peak(), lacks = s.lacks();
  double room = 0;
  for (device_summary const& d : s.devices)
    if (d.peak == peak && room == 0) room = static_cast<double>(d.capacity);
  std::string more =
      lacks > 0 ? "does not fit: a device lacks " + bytes_text(static_cast<double>(lacks)) + "; " : "";
  if (room > 0) more += three(100 * static_cast<double>(peak) / room) + " % of " + bytes_text(room);
  if (!s.scratch.empty()) more += (more.empty() ? "" : "; ") + s.scratch;
  return card(bytes_text(static_cast<double>(peak)), "peak memory of a device", more);
}
/// The step by prediction and by others, throughput, communication that nothing hides, memory, bytes.
inline std::string page_cards(plan_summary const& s, timeline const& predicted,
                              std::vector<named_timeline> const& others) {
  std::string const bound = bound_text(s).empty()
                                ? "simulated"
                                : "bound " + seconds_text(s.bound) + ", gap " +
                                      gap_text(above_bound(s), s.bound);
  std::string r = "<div class=\"cards\">\n" + card(seconds_text(s.seconds), "predicted step", bound);
  if (s.rate.samples > 0) {
    double const devices = static_cast<double>(std::max<std::size_t>(1, s.devices.size()));
    std::string more = three(s.rate.samples / devices) + " a device";
    if (s.rate.tokens > 0)
      more += "; " + printed("%.0f", s.rate.tokens) + " tokens/s, " + three(s.rate.tokens / devices) +
              " a device";
    r += card(three(s.rate.samples) + " samples/s", "throughput", more);
    r += card(printed("%.1f", 100 * s.rate.mfu) + " %", "of the devices' FLOP/s (MFU)",
              flop_text(s.rate.model_flops) + " in a step, what is computed again aside");
  }
  if (s.communication.device >= 0 && s.seconds > 0)
    r += card(seconds_text(s.communication.exposed), "exposed communication",
              percent_text(s.communication.exposed / s.seconds) + " of the step device " +
                  std::to_string(s.communication.device) + " communicates and does not compute, of " +
                  seconds_text(s.communication.communicating) + " of communication");
  timeline const* before = &predicted;
  for (named_timeline const& x : others) {
    std::string const than = before == &predicted ? "against the prediction" : "against the one before";
    r += card(seconds_text(x.time.seconds), "step " + x.name,
              before->seconds > 0
                  ? printed("%+.0f", 100 * (x.time.seconds / before->seconds - 1)) + " % " + than
                  : "");
    before = &x.time;
  }
  r += peak_card(s) + card(bytes_text(s.sent()), "moved per step", "by all devices together");
  return r + "</div>\n";
}

/// What dominates the step, and what is known about better plans.
inline std::string words_section(plan_summary const& s) {
  std::string const bound = bound_text(s);
  return "<section class=\"why\"><h2>What dominates</h2><p>" + html_text(s.dominated) + "</p>" +
         (bound.empty() ? "" : "<p class=\"soft\">" + html_text(bound) + "</p>") + "</section>\n";
}

/// A share of a peak, or that it is not known.
inline std::string share_text(double share) { return share > 0 ? percent_text(share) : "-"; }
/// Device kinds and link levels of a cluster, with the numbers that plans are priced by.
inline std::string cluster_tables(machine const& m) {
  std::vector<std::vector<std::string>> kinds{{"devices", "", "products", "memory", "memory bandwidth",
                                               "launch", "reached in products", "in attention",
                                               "of bandwidth", "while communicating", "sustained"}},
      links{{"links", "devices that they join", "bandwidth of a device", "latency"}};
  for (std::size_t k = 0; k < m.kinds.size(); ++k) {
    device_kind const& x = m.kinds[k];
    kernel_efficiency const& e = x.efficiency;
    kinds.push_back({std::to_string(std::count(m.device.begin(), m.device.end(), static_cast<int>(k))),
                     html_text(x.name), printed("%.4g", x.flops / 1e12) + " TFLOP/s",
                     bytes_text(static_cast<double>(x.memory)),
                     printed("%.4g", x.memory_bandwidth / 1e9) + " GB/s", seconds_text(x.launch),
                     share_text(e.products), share_text(e.attention), share_text(e.memory),
                     share_text(e.while_communicating), share_text(e.sustained)});
  }
  for (link_level const& l : m.links)
    links.push_back({html_text(l.name), std::to_string(l.group), printed("%.4g", l.bandwidth / 1e9) + " GB/s",
                     seconds_text(l.latency)});
  return table(kinds, {true, false, true, true, true, true, true, true, true, true, true}) +
         (m.links.empty() ? "" : table(links, {false, true, true, true})) +
         (m.lane_per_link ? "<p>Links of different levels are in use at the same time.</p>" : "");
}
/// The cluster, and who made the page of what.
inline std::string page_foot(machine const& m, page_notes const& notes) {
  std::string r =
      "<section><h2>" + html_text("Cluster" + (m.name.empty() ? "" : " " + m.name)) + "</h2>\n" +
      cluster_tables(m) + "</section>\n<footer class=\"soft\"><p>" +
      html_text("tensorpar " + std::to_string(version_major) + "." + std::to_string(version_minor) +
                (notes.date.empty() ? "" : " \xc2\xb7 " + notes.date)) +
      "</p>";
  if (!notes.command.empty()) r += "<p><code>" + html_text(notes.command) + "</code></p>";
  return r + "</footer>\n";
}

}  // namespace tensorpar::report::detail
