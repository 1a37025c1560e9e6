// tensorpar/report/page/graph_svg.hpp - a forward graph with its placement as SVG to stand inside a page
#pragma once
#include <set>
#include <tensorpar/core/index.hpp>
#include <tensorpar/report/page/device_groups.hpp>
#include <tensorpar/report/page/folds.hpp>
#include <tensorpar/report/page/graph_layout.hpp>

namespace tensorpar::report {

namespace detail {

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
      path += " C" + short_number(p[i - 1].first) + " " + short_number(mid) + " " + short_number(p[i].first) +
              " " + short_number(mid) + " " + short_number(p[i].first) + " " + short_number(p[i].second);
  }
  return "<path d=\"" + path + "\"/>\n";
}
inline std::string svg_start(std::string const& id, drawing const& d, std::string const& label) {
  constexpr double margin = 14;
  std::string const width = short_number(d.width + 2 * margin), height = short_number(d.height + 2 * margin),
                    from = short_number(-margin);
  return "<svg id=\"" + id + "\" width=\"" + width + "\" height=\"" + height + "\" viewBox=\"" + from + " " +
         from + " " + width + " " + height + "\" role=\"" + (id == "graph" ? "group" : "img") +
         "\" aria-label=\"" + label + "\">\n";
}

/// What the pictures of one graph have in common.
struct graph_picture {
  computation_graph const& graph;
  plan_summary const& summary;
  device_groups const& groups;
  folding const& folds;
  double slowest = 0;  // seconds of the operator whose box is warmest
};
inline std::string rounded(char const* cls, double x, double y, double width, double height, int radius,
                           std::string const& extra = "") {
  return "<rect class=\"" + std::string(cls) + "\" x=\"" + short_number(x) + "\" y=\"" + short_number(y) +
         "\" width=\"" + short_number(width) + "\" height=\"" + short_number(height) + "\" rx=\"" +
         std::to_string(radius) + "\"" + extra + "/>";
}
inline std::string svg_text(char const* cls, double x, double y, std::string const& text) {
  return "<text class=\"" + std::string(cls) + "\" x=\"" + short_number(x) + "\" y=\"" + short_number(y) +
         "\">" + html_text(text) + "</text>";
}
/// The button that opens or closes a fold, at the right end of a box.
inline std::string fold_badge(int number, fold const& f, int times, bool open, drawn_node const& b) {
  std::string const label = open ? "\xe2\x88\x92 fold" : "\xc3\x97 " + std::to_string(times);
  double const width = 16 + 6.5 * static_cast<double>(open ? 6 : label.size() - 1);
  std::string const says = (open ? "fold " : "unfold ") + std::to_string(f.times) + " repetitions of " +
                           std::to_string(f.unit) + (f.unit == 1 ? " operator" : " operators");
  return "<g class=\"badge\" role=\"button\" tabindex=\"0\" data-fold=\"" + std::to_string(number) +
         "\" aria-expanded=\"" + (open ? "true" : "false") + "\" aria-label=\"" + says + "\"><title>" + says +
         "</title>" + rounded("", b.x + b.width / 2 - width - 6, b.y + 6, width, 17, 8) +
         svg_text("", b.x + b.width / 2 - width / 2 - 6, b.y + 18.5, label) + "</g>\n";
}
inline std::string operator_box(graph_picture const& p, int v, drawn_node const& b, int open) {
  operator_summary const none, &o = idx(v) < p.summary.operators.size() ? p.summary.operators[idx(v)] : none;
  std::string const kind = p.graph.node(v).op.op ? std::string(p.graph.node(v).op.op->name) : "";
  double const left = b.x - b.width / 2;
  bool const known = idx(v) < p.folds.shown.size();
  int const number = known ? p.folds.fold_of[idx(v)] : -1;
  bool const is_open = number >= 0 && (open == number || open == folding::all_folds);
  int const times = known && !is_open ? p.folds.times[idx(v)] : 1;
  double const heat = p.slowest > 0 ? (o.compute + o.move) / p.slowest : 0;
  std::string title = (o.name.empty() ? kind : o.name + ": " + o.op) + " \xe2\x80\x94 " + o.sharding +
                      ", device " + devices_text(o.devices);
  if (times == 1)
    for (std::string const& word : choice_words(o.choice)) title += ", " + word;
  std::string r = "<g class=\"op\" data-node=\"" + std::to_string(v) + "\" tabindex=\"0\"><title>" +
                  html_text(title) + "</title>" + rounded("card", left, b.y, b.width, b.height, 7);
  if (number >= 0) r += rounded("folded", left, b.y + 4, 3, b.height - 8, 1);
  if (heat > 0.01)
    r += rounded("heat", left, b.y, b.width, b.height, 7,
                 " style=\"opacity:" + printed("%.2f", 0.32 * heat) + "\"");
  bool const badge = times > 1 || (is_open && v == p.folds.folds[idx(number)].first);
  std::vector<int> const used = p.groups.among(o.devices);
  std::string const letters = used.size() > 4 ? "" : group_letters(p.groups, used);
  double const wide = 7.5 * static_cast<double>(letters.size());
  r += svg_text("name", left + 10, b.y + 18, shortened(box_title(o.name, kind), badge ? 16 : 25)) +
       svg_text("how", left + 10, b.y + 34, shortened(o.sharding, 29)) +
       group_stripe(used, p.groups.size(), left + 10, b.y + 41, b.width - 20 - (wide > 0 ? wide + 4 : 0));
  if (!letters.empty()) r += svg_text("letters", left + b.width - 9 - wide, b.y + 47.5, letters);
  r += "</g>\n";
  if (badge) r += fold_badge(number, p.folds.folds[idx(number)], times, is_open, b);
  return r;
}

/// Edges between what is shown: of a closed fold those of its first run, to its outside those of all.
class shown_edges {
  folding const& f_;
  int open_;
  std::set<std::pair<int, int>> known_;

 public:
  std::vector<std::pair<int, int>> edges;

  shown_edges(folding const& f, int open) : f_(f), open_(open) {}
  int shown(int v) const { return idx(v) < f_.shown.size() ? f_.stands_for(v, open_) : v; }
  /// From an operator or input `u`, whose number is `from` in the picture.
  void add(int from, int u, int v) {
    int const to = shown(v);
    bool const both = u >= 0 && idx(v) < f_.shown.size() && f_.fold_of[idx(u)] >= 0 &&
                      f_.fold_of[idx(u)] == f_.fold_of[idx(v)];
    if (both && (from != u || to != v)) {  // one of them is hidden
      fold const& x = f_.folds[idx(f_.fold_of[idx(u)])];
      if ((u - x.first) / x.unit != (v - x.first) / x.unit || from >= to) return;
    }
    if (from != to && known_.insert({from, to}).second) edges.push_back({from, to});
  }
};

}  // namespace detail

/// Above this many boxes no graph is drawn: nobody could read it, and browsers need seconds.
inline constexpr int max_drawn_operators = 2500;

/// Boxes for operators, with a stripe of the device groups they run on and a tint by their share of the step;
/// pills for inputs. Operators are `<g class="op" data-node="id">`, and those that stand for others have a
/// button with the number. `open`: the fold that is unfolded, -1 for none, `folding::all_folds` for all.
/// Preconditions: groups and folds are those of the summary. O(layout).
inline std::string graph_svg(computation_graph const& g, int forward_nodes, plan_summary const& s,
                             device_groups const& groups, folding const& folds, int open = -1) {
  constexpr double op_width = 190, op_height = 52, pill_height = 26;
  detail::shown_edges shown(folds, open);
  std::vector<std::pair<double, double>> sizes;
  std::vector<int> box_of(idx(forward_nodes), -1), nodes, inputs;
  std::map<int, int> pill;
  for (int v = 0; v < forward_nodes; ++v)
    if (shown.shown(v) == v) {
      box_of[idx(v)] = static_cast<int>(nodes.size());
      nodes.push_back(v);
      sizes.push_back({op_width, op_height});
    }
  int const first_input = forward_nodes;  // inputs are numbered behind the operators
  for (int v = 0; v < forward_nodes; ++v)
    for (int x : g.node(v).in) {
      graph_value const& y = g.value(x);
      if (y.role == value_role::input) {
        if (shown.shown(v) != v) continue;  // inputs of what is hidden are hidden, too
        auto const [it, fresh] = pill.insert({x, first_input + static_cast<int>(inputs.size())});
        if (fresh) {
          sizes.push_back({std::min(180.0, 40 + 7.0 * static_cast<double>(y.name.size())), pill_height});
          inputs.push_back(x);
        }
        shown.add(it->second, -1, v);
      } else if (y.producer >= 0) {
        shown.add(shown.shown(y.producer), y.producer, v);
      }
    }
  auto const box = [&](int v) {
    return v < first_input ? box_of[idx(v)] : static_cast<int>(nodes.size()) + v - first_input;
  };
  for (auto& [from, to] : shown.edges) from = box(from), to = box(to);
  drawing const d = draw_layered(sizes, shown.edges);
  detail::graph_picture p{g, s, groups, folds, 0};
  for (operator_summary const& o : s.operators) p.slowest = std::max(p.slowest, o.compute + o.move);
  std::string r = detail::svg_start("graph", d, "graph of the model") + "<g class=\"edges\">\n";
  for (drawn_edge const& e : d.edges) r += detail::edge_path(e);
  r += "</g>\n";
  for (std::size_t i = 0; i < nodes.size(); ++i) r += detail::operator_box(p, nodes[i], d.nodes[i], open);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    drawn_node const& b = d.nodes[nodes.size() + i];
    graph_value const& x = g.value(inputs[i]);
    r += "<g class=\"input\"><title>" + html_text("input " + x.name + " " + op::spell(x.type)) + "</title>" +
         detail::rounded("", b.x - b.width / 2, b.y, b.width, b.height, 13) +
         detail::svg_text("", b.x, b.y + 17, shortened(x.name, 22)) + "</g>\n";
  }
  return r + "</svg>\n";
}

}  // namespace tensorpar::report
