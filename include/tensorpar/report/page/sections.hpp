// tensorpar/report/page/sections.hpp - the parts of a plan's page, from what it is compared with to its
// operators
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/report/page/data.hpp>
#include <tensorpar/report/page/graph_svg.hpp>
#include <tensorpar/report/page/notes.hpp>
#include <tensorpar/report/page/parallel_svg.hpp>

namespace tensorpar::report::detail {

/// The plan beside others and why they lost, and which operators make the difference. `all`: plans of the
/// same graph, this one first; fewer than two are none. Nothing without others.
inline std::string comparison_section(plan_summary const& s, std::vector<plan_summary> const& all,
                                      std::vector<rival> const& others) {
  if (all.size() < 2 && others.empty()) return "";
  plan_summary const& chosen = all.size() < 2 ? s : all[0];
  rival self = rival_of(chosen, chosen);
  self.reason.clear();
  if (self.name.empty()) self.name = "this plan";
  std::vector<rival> rivals;
  for (std::size_t k = 1; k < all.size(); ++k) rivals.push_back(rival_of(chosen, all[k]));
  rivals.insert(rivals.end(), others.begin(), others.end());
  std::vector<std::vector<std::string>> rows = rival_rows(self, rivals);
  for (auto& row : rows)
    for (std::string& cell : row) cell = html_text(cell);
  for (std::size_t k = 1; k < all.size(); ++k) {
    std::vector<std::string> const lines = why_not(chosen, all[k]);
    std::string more = "<li>" + html_text("moves " + moved_text(all[k].bytes)) + "</li>";
    for (std::size_t i = 1; i < lines.size(); ++i) more += "<li>" + html_text(lines[i]) + "</li>";
    rows[k + 1].back() += "<details><summary>operators</summary><ul>" + more + "</ul></details>";
  }
  return "<section><h2>Compared</h2>" + table(rows, {false, false, true, true, true}) + "</section>\n";
}

/// The picture with everything folded, and one for each fold that may be opened: they wait in templates.
inline std::string graph_pictures(training_graph const& t, page_parts const& p) {
  int const n = static_cast<int>(p.folds.shown.size());
  int const drawn = n - static_cast<int>(std::count(p.folds.times.begin(), p.folds.times.end(), 0));
  auto const picture = [&](int open) {
    return graph_svg(t.graph, t.forward_nodes, p.summary, p.groups, p.folds, open);
  };
  if (drawn > max_drawn_operators)
    return "<p class=\"soft\">" + std::to_string(drawn) +
           " operators are too many to be drawn; the table below has them all.</p>\n";
  std::string r = picture(-1);
  int left = max_drawn_operators;  // boxes: the page stays small
  auto const waiting = [&](int open, int boxes) {
    if (boxes > left) return;
    left -= boxes;
    r += "<template data-open=\"" + std::to_string(open) + "\">" + picture(open) + "</template>\n";
  };
  for (std::size_t k = 0; k < p.folds.folds.size(); ++k) {
    int boxes = drawn;
    fold const& f = p.folds.folds[k];
    for (int v = f.first; v < f.end(); ++v) boxes += p.folds.times[idx(v)] == 0;
    waiting(static_cast<int>(k), boxes);
  }
  if (p.folds.folds.size() > 1) waiting(folding::all_folds, n);
  return r;
}
inline std::string graph_section(training_graph const& t, page_parts const& p) {
  std::string const buttons =
      p.folds.folds.empty()
          ? ""
          : "<button id=\"unfold\" type=\"button\" aria-expanded=\"false\">unfold all</button>";
  return "<section>\n<div class=\"bar\"><h2>Graph and placement</h2>" + buttons +
         "<button id=\"graph-out\" type=\"button\" aria-label=\"smaller\">\xe2\x88\x92</button><button "
         "id=\"graph-in\" type=\"button\" aria-label=\"larger\">+</button><button id=\"graph-fit\" "
         "type=\"button\">fit</button></div>\n<div class=\"two\">\n<div class=\"scroll graph\" "
         "id=\"pictures\">\n" +
         graph_pictures(t, p) +
         "</div>\n<div><div id=\"details\"></div>\n<h2 style=\"margin-top:20px\">Devices</h2>\n" +
         group_legend(p.groups) +
         "<p class=\"note\">Devices on which the same operators run share a colour, here and in all that "
         "follows. The stripe in a box shows whose devices run it; the warmer the box, the larger its share "
         "of "
         "the step. A number behind \xc3\x97 says for how many operators a box stands; click it to unfold "
         "them.</p></div>\n</div>\n</section>\n";
}
/// Pages show parallel computation graphs of at most so many operators after folding.
inline constexpr int max_parallel_nodes = 600;
/// The graph as Unity draws it, unless it is so large that nobody could read it.
inline std::string parallel_section(training_graph const& t, plan const& p, device_groups const& groups) {
  if (t.forward_nodes > 10 * max_parallel_nodes || p.nodes.size() != idx(t.forward_nodes) ||
      t.forward_nodes == 0)
    return "";
  ir::parallel_graph const g = parallel_graph_of(t, p);
  folding const folds = fold_parallel(g);
  if (std::count(folds.times.begin(), folds.times.end(), 0) + max_parallel_nodes < g.graph.node_count())
    return "";
  return "<section>\n<div class=\"bar\"><h2>Parallel computation graph</h2>" +
         legend({{parallel_colour(parallel::partition{}), "partition"},
                 {parallel_colour(parallel::combine{}), "combine"},
                 {parallel_colour(parallel::replicate{}), "replicate"},
                 {parallel_colour(parallel::reduce{}), "reduce"}}) +
         "</div>\n<div class=\"scroll\">\n" + parallel_svg(g, groups, folds) + "</div>\n</section>\n";
}

/// What the simulated step's time is made of.
inline std::string chain_section(chain_summary const& c) {
  double const all = c.computing + c.communicating + c.waiting;
  if (all <= 0) return "";
  std::string r =
      "<section><h2>Critical chain of the predicted step</h2><p>" +
      html_text("Tasks that each waited for the one before, up to the end of the step: computing " +
                percent_text(c.computing / all) + ", communicating " + percent_text(c.communicating / all) +
                ", waiting " + percent_text(c.waiting / all) + " of " + seconds_text(all) +
                ". The timeline marks them.") +
      "</p><div class=\"table\"><table class=\"plain\"><tbody>\n";
  std::size_t const told = std::min<std::size_t>(c.parts.size(), 8);
  for (std::size_t i = 0; i < told; ++i)
    r += meter_row(c.parts[i].what, seconds_text(c.parts[i].seconds), c.parts[i].seconds / all,
                   percent_text(c.parts[i].seconds / all) + " in " + std::to_string(c.parts[i].tasks) +
                       (c.parts[i].tasks == 1 ? " task" : " tasks"));
  return r + "</tbody></table></div></section>\n";
}
/// Timelines, and memory over time: the page's script draws them.
inline std::string time_sections() {
  std::string r;
  r += "<section>\n<div class=\"bar\"><h2>Timeline of one step</h2>" +
       legend({{"var(--forward)", "forward"},
               {"var(--backward)", "backward"},
               {"var(--update)", "update"},
               {"var(--move)", "reshard"}}) +
       "<label class=\"check\"><input type=\"checkbox\" id=\"chain\" checked>critical chain</label>"
       "<label class=\"check\"><input type=\"checkbox\" id=\"together\">one time scale</label><button "
       "id=\"time-out\" "
       "type=\"button\" aria-label=\"show more time\">\xe2\x88\x92</button><button id=\"time-in\" "
       "type=\"button\" "
       "aria-label=\"show less time\">+</button><button id=\"time-all\" "
       "type=\"button\">all</button></div>\n<div class=\"chart\"><canvas "
       "id=\"timeline\" tabindex=\"0\" role=\"img\" aria-label=\"timelines; arrow keys move, + and - zoom, 0 "
       "shows all\"></canvas></div>\n"
       "<p class=\"note\">Drag or arrow keys to move, "
       "double-click, Ctrl + wheel or + and "
       "\xe2\x88\x92 to zoom, click a span to find its operator. \xe2\x87\x84 marks communication. Devices "
       "on which the same happens "
       "share a row. A line under spans marks the critical chain of the predicted step.</p>\n</section>\n";
  r += "<section>\n<div class=\"bar\"><h2>Memory over time, predicted</h2><div class=\"legend\" "
       "id=\"memory-legend\"></div></div>\n<div class=\"chart\"><canvas id=\"memory\" role=\"img\" "
       "aria-label=\"memory over "
       "time\"></canvas></div>\n<p class=\"note\">Bytes alive on each device; dashed: the arena that is "
       "allocated once.</p>\n</section>\n";
  return r;
}

/// Bytes by collective.
inline std::string bytes_section(plan_summary const& s) {
  std::string r =
      "<section><h2>Bytes moved per step, all devices</h2><div class=\"table\"><table "
      "class=\"plain\"><tbody>\n";
  double most = 0;
  for (double b : s.bytes) most = std::max(most, b);
  for (int k = 0; k < move_kinds; ++k) {
    auto const i = idx(k);
    if (static_cast<ir::reshard_kind>(k) == ir::reshard_kind::slice) continue;
    r += meter_row(move_text(static_cast<ir::reshard_kind>(k)), bytes_text(s.bytes[i]),
                   most > 0 ? s.bytes[i] / most : 0,
                   std::to_string(s.times[i]) + (s.times[i] == 1 ? " task" : " tasks"), "var(--move)");
  }
  return r + "</tbody></table></div></section>\n";
}

/// Devices whose memory is alike.
struct memory_row {
  std::vector<int> devices;
  int group = 0;
  i64 peak = 0, capacity = 0;
  passes::memory_by_kind parts;
};
/// Rows by their first device. O(devices * rows).
inline std::vector<memory_row> memory_rows(plan_summary const& s, device_groups const& groups) {
  std::vector<memory_row> r;
  for (std::size_t d = 0; d < s.devices.size(); ++d) {
    memory_row x{{static_cast<int>(d)},
                 groups.of[d],
                 s.devices[d].peak,
                 s.devices[d].capacity,
                 s.devices[d].memory};
    auto const same = std::find_if(r.begin(), r.end(), [&](memory_row const& y) {
      return y.group == x.group && y.peak == x.peak && y.capacity == x.capacity && y.parts == x.parts;
    });
    if (same != r.end())
      same->devices.push_back(static_cast<int>(d));
    else
      r.push_back(std::move(x));
  }
  return r;
}
/// A bar as long as the fullest device or the largest memory, whichever is more, filled in the group's
/// colour: parts in shades of it, a mark where the memory ends.
inline std::string memory_bar(memory_row const& x, double longest) {
  auto const percent = [&](double bytes) {
    return printed("%.2f", longest > 0 ? 100 * bytes / longest : 0) + "%";
  };
  double const room = static_cast<double>(x.capacity);
  std::string r =
      "<div class=\"fill" + std::string(x.capacity > 0 && x.peak > x.capacity ? " over" : "") + "\">";
  if (x.capacity > 0) r += "<b style=\"width:" + percent(room) + "\"></b>";
  r += "<span>";
  double shade = 100, told = 0;
  for (std::size_t k = 0; k < x.parts.bytes.size(); ++k) {
    double const bytes = static_cast<double>(x.parts.bytes[k]);
    if (bytes > 0)
      r += "<i title=\"" + std::string(passes::memory_kind_names[k]) + "\" style=\"width:" + percent(bytes) +
           ";background:" + group_css(x.group) + ";opacity:" + printed("%.0f", shade) + "%\"></i>";
    shade -= 16;
    told += bytes;
  }
  double const rest = static_cast<double>(x.peak) - told;
  if (rest > 0)
    r += "<i style=\"width:" + percent(rest) + ";background:" + group_css(x.group) +
         (told > 0 ? ";opacity:15%" : "") + "\"></i>";
  return r + "</span></div>";
}
/// Peak memory against capacity; devices that are alike share a row.
inline std::string memory_section(plan_summary const& s, device_groups const& groups) {
  std::vector<memory_row> const rows = memory_rows(s, groups);
  double longest = 0;
  for (memory_row const& x : rows)
    longest = std::max({longest, static_cast<double>(x.peak), static_cast<double>(x.capacity)});
  std::string r =
      "<section><h2>Peak memory per device</h2><div class=\"table\"><table class=\"plain\" "
      "id=\"memory-table\"><tbody>\n";
  for (memory_row const& x : rows) {
    std::string more = memory_text(x.parts, " \xc2\xb7 "),
                letter = groups.size() > 1 ? group_name(x.group) + " " : "";
    if (i64 const lacks = x.peak - x.capacity; x.capacity > 0 && lacks > 0)
      more += (more.empty() ? "" : " \xc2\xb7 ") +
              ("does not fit: lacks " + bytes_text(static_cast<double>(lacks)));
    r += "<tr><td>" + swatch(group_css(x.group)) +
         html_text(letter + (x.devices.size() == 1 ? "device " : "devices ") + devices_text(x.devices)) +
         "</td><td class=\"n\">" + bytes_text(static_cast<double>(x.peak)) + "</td><td class=\"wide\">" +
         memory_bar(x, longest) + (more.empty() ? "" : "<p class=\"note\">" + html_text(more) + "</p>") +
         "</td><td class=\"n soft\">" +
         (x.capacity > 0 ? "of " + bytes_text(static_cast<double>(x.capacity)) + ", " +
                               percent_text(static_cast<double>(x.peak) / static_cast<double>(x.capacity))
                         : "") +
         "</td></tr>\n";
  }
  return r + "</tbody></table></div></section>\n";
}

/// The page's script fills the table.
inline std::string operators_section() {
  std::string r = "<section><h2>Operators</h2><div class=\"table\"><table id=\"operator-table\"><thead><tr>";
  for (char const* name : {"name", "operator", "split", "saves", "devices"})
    r += "<th tabindex=\"0\">" + std::string(name) + "</th>";
  for (char const* name : {"compute", "moves", "bytes moved"})
    r += "<th tabindex=\"0\" class=\"n\">" + std::string(name) + "</th>";
  return r +
         "</tr></thead><tbody id=\"operators\"></tbody></table></div>\n<p class=\"note\">Seconds of the "
         "busiest device and bytes of all; a row with \xc3\x97 tells the sum of the operators that it stands "
         "for.</p></section>\n";
}

}  // namespace tensorpar::report::detail
