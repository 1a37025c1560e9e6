// tensorpar/report/page/graph_svg.hpp - a forward graph with its placement as SVG to stand inside a page
#pragma once
#include <set>
#include <tensorpar/core/index.hpp>
#include <tensorpar/report/page/graph_layout.hpp>
#include <tensorpar/report/summary.hpp>

namespace tensorpar::report {

/// Text for HTML and SVG, in elements and in quoted attributes. Control characters become spaces.
inline std::string html_text(std::string_view s) {
  std::string r;
  for (char c : s) {
    switch (c) {
      case '&': r += "&amp;"; break;
      case '<': r += "&lt;"; break;
      case '>': r += "&gt;"; break;
      case '"': r += "&quot;"; break;
      case '\'': r += "&#39;"; break;
      default: r += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return r;
}

namespace detail {

/// One colour per device: eight that differ well, beyond that around the colour circle.
inline std::string palette(int device, int devices) {
  constexpr char const* eight[] = {"#4c8bf5", "#f2994a", "#27ae60", "#bb6bd9",
                                   "#eb5757", "#2ab7ca", "#c9a227", "#8d6e63"};
  if (devices <= 8) return eight[device % 8];
  return "hsl(" + std::to_string(device * 360 / devices) + " " + (device % 2 ? "62%" : "72%") + " " +
         (device % 3 == 1 ? "46%" : "58%") + ")";
}
inline std::string short_number(double x) {
  std::string r = printed("%.1f", x);
  if (r.ends_with(".0")) r.resize(r.size() - 2);
  return r;
}
/// Of a stripe: from device `first` on, so many devices wide.
inline std::string stripe_part(std::string const& cls, int first, double width) {
  return "<rect class=\"" + cls + "\" x=\"" + std::to_string(first) + "\" width=\"" + short_number(width) +
         "\" height=\"1\"/>";
}
/// Which devices are used: up to 16, a segment each in the device's colour (device_colours), with what is
/// between in one; beyond that, one bar with the used runs filled. Drawn in units of a device's width.
inline std::string device_stripe(std::vector<int> const& used, int devices, double x, double y,
                                 double width) {
  double const w = devices > 0 ? width / devices : 0;
  std::string r = "<g transform=\"translate(" + short_number(x) + " " + short_number(y) + ") scale(" +
                  printed("%.3g", w) + " 5)\">";
  if (devices <= 16) {
    double const gap = w > 0 ? 1.5 / w : 0;
    for (int d = 0, next; d < devices; d = next) {
      next = d + 1;
      if (std::binary_search(used.begin(), used.end(), d)) {
        r += stripe_part("seg d" + std::to_string(d), d, 1 - gap);
        continue;
      }
      while (next < devices && !std::binary_search(used.begin(), used.end(), next)) ++next;
      r += stripe_part("seg off", d, next - d - gap);
    }
    return r + "</g>";
  }
  if (used.size() < idx(devices)) r += stripe_part("seg off", 0, devices);
  for (std::size_t i = 0, j; i < used.size(); i = j) {
    for (j = i + 1; j < used.size() && used[j] == used[j - 1] + 1;) ++j;
    r += stripe_part("seg many", used[i], std::max(static_cast<double>(j - i), 0.8 / w));
  }
  return r + "</g>";
}
/// The colours of the segments, said once.
inline std::string device_colours(int devices) {
  if (devices > 16) return "";
  std::string r = "<style>";
  for (int d = 0; d < devices; ++d)
    r += "#graph .d" + std::to_string(d) + "{fill:" + palette(d, devices) + "}";
  return r + "</style>\n";
}
/// "linear2", "head . linear": a name that was made from the kind says the kind already.
inline std::string box_title(std::string const& name, std::string const& kind) {
  if (name.empty() ||
      (name.starts_with(kind) && name.find_first_not_of("0123456789", kind.size()) == name.npos))
    return name.empty() ? kind : name;
  return name + "  \xc2\xb7  " + kind;
}

/// A line from box to box, bent halfway between layers.
inline std::string edge_path(drawn_edge const& e) {
  auto const& p = e.points;
  std::string path = "M" + short_number(p[0].first) + " " + short_number(p[0].second);
  for (std::size_t i = 1; i < p.size(); ++i) {
    double const mid = (p[i - 1].second + p[i].second) / 2;
    if (i % 2 == 0)
      path += " L" + short_number(p[i].first) + " " + short_number(p[i].second);
    else
      path += " C" + short_number(p[i - 1].first) + " " + short_number(mid) + " " +
              short_number(p[i].first) + " " + short_number(mid) + " " + short_number(p[i].first) + " " +
              short_number(p[i].second);
  }
  return "<path d=\"" + path + "\"/>\n";
}
/// `slowest`: seconds of the operator whose box is warmest.
inline std::string operator_box(computation_graph const& g, int v, operator_summary const& o,
                                drawn_node const& b, double slowest, int devices) {
  std::string const kind = g.node(v).op.op ? std::string(g.node(v).op.op->name) : "";
  double const left = b.x - b.width / 2, heat = slowest > 0 ? (o.compute + o.move) / slowest : 0;
  std::string r = "<g class=\"op\" data-node=\"" + std::to_string(v) + "\" tabindex=\"0\"><title>" +
       html_text((o.name.empty() ? kind : o.name + ": " + o.op) + " \xe2\x80\x94 " + o.sharding +
                 ", device " + devices_text(o.devices)) +
       "</title>";
  auto box = [&](char const* cls, std::string const& extra) {
    r += "<rect class=\"" + std::string(cls) + "\" x=\"" + short_number(left) + "\" y=\"" +
         short_number(b.y) + "\" width=\"" + short_number(b.width) + "\" height=\"" +
         short_number(b.height) + "\" rx=\"7\"" + extra + "/>";
  };
  box("card", "");
  if (heat > 0.01) box("heat", " style=\"opacity:" + printed("%.2f", 0.32 * heat) + "\"");
  auto line = [&](char const* cls, double y, std::string const& text, std::size_t most) {
    r += "<text class=\"" + std::string(cls) + "\" x=\"" + short_number(left + 10) + "\" y=\"" +
         short_number(b.y + y) + "\">" + html_text(report::shortened(text, most)) + "</text>";
  };
  line("name", 18, box_title(o.name, kind), 25);
  line("how", 34, o.sharding, 29);
  r += device_stripe(o.devices, devices, left + 10, b.y + 41, b.width - 20);
  return r + "</g>\n";
}

}  // namespace detail

/// Boxes for operators, with a stripe of the devices they run on and a tint by their share of the step; pills
/// for inputs. Operators are `<g class="op" data-node="id">`. O(layout).
inline std::string graph_svg(computation_graph const& g, int forward_nodes, plan_summary const& s) {
  using detail::short_number;
  constexpr double op_width = 190, op_height = 52, pill_height = 26;
  std::vector<std::pair<double, double>> sizes(idx(forward_nodes),
                                               {op_width, op_height});
  std::vector<std::pair<int, int>> edges;
  std::set<std::pair<int, int>> known;
  std::vector<int> inputs;
  std::map<int, int> pill;
  for (int v = 0; v < forward_nodes; ++v)
    for (int x : g.node(v).in) {
      graph_value const& y = g.value(x);
      int from = y.producer;
      if (y.role == value_role::input) {
        auto const [it, fresh] = pill.insert({x, static_cast<int>(sizes.size())});
        if (fresh) {
          sizes.push_back({std::min(180.0, 40 + 7.0 * static_cast<double>(y.name.size())), pill_height});
          inputs.push_back(x);
        }
        from = it->second;
      } else if (from < 0)
        continue;
      std::pair<int, int> const e{from, v};
      if (known.insert(e).second) edges.push_back(e);
    }
  drawing const d = draw_layered(sizes, edges);
  constexpr double margin = 14;
  double slowest = 0;
  for (operator_summary const& o : s.operators) slowest = std::max(slowest, o.compute + o.move);
  std::string r = "<svg id=\"graph\" width=\"" + detail::short_number(d.width + 2 * margin) + "\" height=\"" +
                  detail::short_number(d.height + 2 * margin) + "\" viewBox=\""
                      + detail::short_number(-margin) + " " +
                  detail::short_number(-margin) + " " + detail::short_number(d.width + 2 * margin) + " " +
                  detail::short_number(d.height + 2 * margin) +
                  "\" role=\"img\" aria-label=\"graph of the model\">\n" +
                  detail::device_colours(static_cast<int>(s.devices.size())) + "<g class=\"edges\">\n";
  for (drawn_edge const& e : d.edges) r += detail::edge_path(e);
  r += "</g>\n";
  int const devices = static_cast<int>(s.devices.size());
  for (int v = 0; v < forward_nodes; ++v)
    r += detail::operator_box(g, v,
                              idx(v) < s.operators.size()
                                  ? s.operators[idx(v)]
                                  : operator_summary{},
                              d.nodes[idx(v)], slowest, devices);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    drawn_node const& b = d.nodes[idx(forward_nodes) + i];
    graph_value const& x = g.value(inputs[i]);
    r += "<g class=\"input\"><title>" + html_text("input " + x.name + " " + op::spell(x.type)) +
         "</title><rect x=\"" + detail::short_number(b.x - b.width / 2) + "\" y=\""
             + detail::short_number(b.y) +
         "\" width=\"" + detail::short_number(b.width) + "\" height=\"" + detail::short_number(b.height) +
         "\" rx=\"13\"/><text x=\"" + detail::short_number(b.x) + "\" y=\"" + detail::short_number(b.y + 17)
             + "\">" + html_text(shortened(x.name, 22)) + "</text></g>\n";
  }
  return r + "</svg>\n";
}

}  // namespace tensorpar::report
