// tensorpar/report/page/pipeline_page.hpp - one page about a pipeline: stages over time, the graph of stages,
// memory; needs no network
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/report/page/device_groups.hpp>
#include <tensorpar/report/page/head.hpp>
#include <tensorpar/report/pipeline_text.hpp>

namespace tensorpar::report {

/// A pipeline to show: how it was planned, what runs, and its run with passes kept.
struct pipeline_view {
  std::string name;                    // of the planner or schedule
  tensorpar::pipeline pipeline;
  passes::stage_edges edges;
  simulation::pipeline_run run;
  std::vector<double> bytes;           // by stage, on each of its devices; may be empty
};

namespace detail {

/// "A devices 0-3": letter and colour of a group are its number's, as on the page of a plan.
inline std::string named_group(pipeline const& p, int group) {
  return (p.groups.size() > 1 ? group_name(group) + " " : "") + group_text(p.groups[idx(group)]);
}

/// Stages in columns by depth, an arrow per edge.
inline std::string stage_graph_svg(pipeline_view const& v) {
  std::size_t const n = v.pipeline.stages.size();
  std::vector<int> depth(n, 0), row(n, 0), used;
  for (std::size_t s = 0; s < n; ++s) {
    for (int u : v.edges[s]) depth[s] = std::max(depth[s], depth[idx(u)] + 1);
    auto const d = idx(depth[s]);
    if (used.size() <= d) used.resize(d + 1, 0);
    row[s] = used[d]++;
  }
  int rows = 1;
  for (int u : used) rows = std::max(rows, u);
  int const w = 150, h = 46, dx = 190, dy = 60;
  auto x = [&](std::size_t s) { return 10 + dx * depth[s]; };
  auto y = [&](std::size_t s) {
    return 10 + dy * row[s] + dy * (rows - used[idx(depth[s])]) / 2;
  };
  std::string r = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" +
                  std::to_string(20 + dx * static_cast<int>(used.size())) + "\" height=\"" +
                  std::to_string(20 + dy * rows) + "\" role=\"img\" aria-label=\"graph of stages\">\n";
  for (std::size_t s = 0; s < n; ++s)
    for (int u : v.edges[s]) {
      auto const a = idx(u);
      int const x0 = x(a) + w, y0 = y(a) + h / 2, x1 = x(s), y1 = y(s) + h / 2, m = (x1 - x0) / 2;
      r += "<path d=\"M" + std::to_string(x0) + " " + std::to_string(y0) + "C" + std::to_string(x0 + m) +
           " " + std::to_string(y0) + " " + std::to_string(x1 - m) + " " + std::to_string(y1) + " " +
           std::to_string(x1) + " " + std::to_string(y1) +
           "\" fill=\"none\" stroke=\"var(--edge)\" stroke-width=\"1.4\"/>\n";
    }
  for (std::size_t s = 0; s < n; ++s) {
    pipeline_stage const& q = v.pipeline.stages[s];
    r += "<rect x=\"" + std::to_string(x(s)) + "\" y=\"" + std::to_string(y(s)) + "\" width=\"" +
         std::to_string(w) + "\" height=\"" + std::to_string(h) +
         "\" rx=\"7\" fill=\"var(--card)\" stroke=\"var(--line)\"/><text x=\"" + std::to_string(x(s) + 10) +
         "\" y=\"" + std::to_string(y(s) + 19) +
         "\" fill=\"var(--text)\" font-size=\"12\" font-weight=\"600\">stage " + std::to_string(s) +
         "</text><text x=\"" + std::to_string(x(s) + 10) + "\" y=\"" + std::to_string(y(s) + 36) +
         "\" fill=\"var(--soft)\" font-size=\"11\">" +
         html_text(named_group(v.pipeline, q.group) + ", batch " + std::to_string(q.micro_batch)) +
         "</text><rect x=\"" + std::to_string(x(s) + w - 21) + "\" y=\"" + std::to_string(y(s) + 9) +
         "\" width=\"11\" height=\"11\" rx=\"3\" style=\"fill:" + group_css(q.group) + "\"/>\n";
  }
  return r + "</svg>\n";
}

/// Groups down, time across; all views of a page share `seconds`, so that lengths can be compared.
inline std::string passes_svg(pipeline_view const& v, double seconds) {
  require_passes(v.pipeline, v.run);
  double const width = 1160, row = 26, left = 130;
  std::string r = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " +
                  printed("%.0f", width + left + 10) + " " +
                  printed("%.0f", row * static_cast<double>(v.pipeline.groups.size()) + 8) +
                  "\" width=\"100%\" role=\"img\" aria-label=\"passes over time\">\n";
  char const* colour[] = {"var(--forward)", "var(--backward)", "var(--update)"};
  double const scale = seconds > 0 ? width / seconds : 0;
  for (std::size_t g = 0; g < v.pipeline.groups.size(); ++g) {
    double const top = 4 + row * static_cast<double>(g);
    std::string const y = printed("%.0f", top);
    r += "<rect x=\"0\" y=\"" + printed("%.0f", top + 6) + "\" width=\"9\" height=\"9\" rx=\"2\"" +
         " style=\"fill:" + group_css(static_cast<int>(g)) + "\"/><text x=\"13\" y=\"" +
         printed("%.0f", top + 15) + "\" fill=\"var(--soft)\" font-size=\"11\">" +
         html_text(named_group(v.pipeline, static_cast<int>(g))) + "</text><rect x=\"" +
         printed("%.0f", left) + "\" y=\"" + y + "\" width=\"" + printed("%.2f", v.run.makespan * scale) +
         "\" height=\"20\" fill=\"var(--off)\"/>\n";
    for (std::size_t i = 0; i < v.run.passes[g].size(); ++i) {
      pass_entry const& e = v.pipeline.schedule[g][i];
      simulation::pass_times const t = v.run.passes[g][i];
      double const x = left + t.start * scale, w = (t.end - t.start) * scale;
      r += "<g><rect x=\"" + printed("%.2f", x) + "\" y=\"" + printed("%.0f", top) + "\" width=\"" +
           printed("%.2f", std::max(0.3, w - 0.4)) + "\" height=\"20\" fill=\"" +
           colour[static_cast<int>(e.what)] + "\"><title>stage " + std::to_string(e.stage) + " " +
           std::string(name_of(e.what)) + " " + std::to_string(e.micro_batch) + ": " +
           html_text(seconds_text(t.start)) + " to " + html_text(seconds_text(t.end)) + "</title></rect>";
      if (w > 14)
        r += "<text x=\"" + printed("%.2f", x + w / 2) + "\" y=\"" + printed("%.0f", top + 14) +
             "\" text-anchor=\"middle\" font-size=\"10\" fill=\"#fff\" pointer-events=\"none\">" +
             std::to_string(e.micro_batch) + "</text>";
      r += "</g>\n";
    }
  }
  return r + "</svg>\n";
}

}  // namespace detail

/// A page that opens in any browser without a network: per pipeline its graph of stages, every pass over time
/// on one common scale, idle time, samples in flight and bytes per stage. All text is escaped. Throws `error`
/// if a run was made without its passes. About 250 bytes per pass.
inline std::string pipeline_page(std::string const& title, std::vector<pipeline_view> const& all) {
  using namespace detail;
  double seconds = 0;
  for (pipeline_view const& v : all) seconds = std::max(seconds, v.run.makespan);
  int groups = 0;
  for (pipeline_view const& v : all) groups = std::max(groups, static_cast<int>(v.pipeline.groups.size()));
  std::string r = page_start(title, group_style(groups)) +
                  "<script>if (matchMedia('(prefers-color-scheme: dark)').matches) "
                  "document.documentElement.classList.add('dark')</script>\n<header><div><h1>" +
                  html_text(title) + "</h1></div></header>\n";
  for (pipeline_view const& v : all) {
    pipeline const& p = v.pipeline;
    detail::require_passes(p, v.run);
    if (v.edges.size() != p.stages.size() || v.run.in_flight.size() != p.stages.size() ||
        v.run.busy.size() != p.groups.size() || (!v.bytes.empty() && v.bytes.size() != p.stages.size()))
      throw error("edges, run or bytes of another pipeline", "page about '" + v.name + "'",
                  "those of its " + std::to_string(p.stages.size()) + " stages");
    double idle = 0;
    for (std::size_t g = 0; g < p.groups.size(); ++g)
      idle += v.run.idle(static_cast<int>(g)) * p.groups[g].count;
    int devices = 0;
    for (device_range const& g : p.groups) devices += g.count;
    r +=
        "<section>\n<div class=\"bar\"><h2>" + html_text(v.name) + "</h2>" +
        detail::legend({{"var(--forward)", "forward"}, {"var(--backward)", "backward"},
                {"var(--update)", "gradients of weights"},
                {"var(--off)", "idle"}}) +
        "</div>\n<p class=\"soft\">" +
        html_text(std::to_string(p.stages.size()) + " stages, " + std::to_string(p.mini_batch) +
                  " samples in " + seconds_text(v.run.makespan) +
                  (v.run.makespan > 0 && devices
                       ? ", devices idle " + percent_text(idle / (v.run.makespan * devices)) + " of the time"
                       : "")) +
        "</p>\n<div class=\"scroll\">" + detail::stage_graph_svg(v)
            + "</div>\n<div style=\"margin-top:12px\">" + detail::passes_svg(v, seconds) +
        "</div>\n<div class=\"table\"><table class=\"plain\"><thead><tr><th>stage</th><th>devices</th><th "
        "class=\"n\">micro-batch</th>"
        "<th class=\"n\">micro-batches</th><th class=\"n\">in flight</th><th "
        "class=\"n\">memory</th></tr></thead><tbody>\n";
    for (std::size_t s = 0; s < p.stages.size(); ++s) {
      pipeline_stage const& x = p.stages[s];
      r += "<tr><td>" + std::to_string(s) + "</td><td>" +
           swatch(group_css(x.group)) + html_text(named_group(p, x.group)) + "</td><td class=\"n\">" +
           std::to_string(x.micro_batch) + "</td><td class=\"n\">" +
           std::to_string(p.micro_batches(static_cast<int>(s))) + "</td><td class=\"n\">" +
           std::to_string(v.run.in_flight[s]) + "</td><td class=\"n\">" +
           (s < v.bytes.size() ? html_text(bytes_text(v.bytes[s])) : std::string()) + "</td></tr>\n";
    }
    r += "</tbody></table></div>\n</section>\n";
  }
  return r + "</main>\n</body>\n</html>\n";
}

}  // namespace tensorpar::report
