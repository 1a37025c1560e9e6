// tensorpar/report/page/parallel_svg.hpp - a plan's parallel computation graph, as Unity draws it: partition,
// combine, replicate and reduce as operators of their own
#pragma once
#include <map>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/differentiate.hpp>
#include <tensorpar/plan/plan.hpp>
#include <tensorpar/report/dot.hpp>
#include <tensorpar/report/page/graph_svg.hpp>

namespace tensorpar::report {

namespace detail {

/// The forward operators alone.
inline computation_graph forward_of(training_graph const& t) {
  computation_graph g = t.graph;
  g.nodes.resize(idx(t.forward_nodes));
  std::erase_if(g.outputs, [&](graph_port const& o) { return g.value(o.value).producer >= t.forward_nodes; });
  return g;
}

}  // namespace detail

/// The parallel computation graph of a step's forward operators (Unity, section 4): between operators stand
/// the parallel operators that their shardings imply. Precondition: the plan decides about the forward
/// operators one for one, as the plan of a `planned_step` does. O(nodes * operands).
inline ir::parallel_graph parallel_graph_of(training_graph const& t, plan const& p) {
  std::vector<ir::sharding> shardings;
  for (op_strategy const& n : p.nodes) shardings.push_back(n.sharding);
  return ir::parallelize(detail::forward_of(t), shardings);
}

/// Operators as cards, parallel operators as coloured pills, inputs and parameters as dashed ones. O(layout).
inline std::string parallel_svg(ir::parallel_graph const& p) {
  using detail::short_number;
  computation_graph const& g = p.graph;
  std::vector<std::pair<double, double>> sizes;
  for (graph_node const& n : g.nodes)
    sizes.push_back(is_parallel(n.op) ? std::pair{150.0, 24.0} : std::pair{170.0, 34.0});
  std::vector<std::pair<int, int>> edges;
  std::vector<int> sources;
  std::map<int, int> source_of;
  for (int v = 0; v < g.node_count(); ++v)
    for (int x : g.node(v).in) {
      int from = g.value(x).producer;
      if (from < 0) {
        auto const [it, fresh] = source_of.insert({x, static_cast<int>(sizes.size())});
        if (fresh) {
          sizes.push_back({std::min(180.0, 40 + 7.0 * static_cast<double>(g.value(x).name.size())), 24});
          sources.push_back(x);
        }
        from = it->second;
      }
      edges.push_back({from, v});
    }
  drawing const d = draw_layered(sizes, edges);
  constexpr double margin = 14;
  std::string r = "<svg id=\"parallel\" width=\"" + detail::short_number(d.width + 2 * margin)
      + "\" height=\"" + detail::short_number(d.height + 2 * margin) + "\" viewBox=\""
                      + detail::short_number(-margin) + " " +
                  detail::short_number(-margin) + " " + detail::short_number(d.width + 2 * margin) + " " +
                  detail::short_number(d.height + 2 * margin) +
                  "\" role=\"img\" aria-label=\"parallel computation graph\">\n<g class=\"edges\">\n";
  for (drawn_edge const& e : d.edges) r += detail::edge_path(e);
  r += "</g>\n";
  auto const box = [&](drawn_node const& b, std::string const& cls, std::string const& colour,
                       std::string const& title, std::string const& text) {
    r += "<g class=\"" + cls + "\"><title>" + html_text(title) + "</title><rect x=\"" +
         detail::short_number(b.x - b.width / 2) + "\" y=\"" + detail::short_number(b.y) + "\" width=\"" +
         detail::short_number(b.width) + "\" height=\"" + detail::short_number(b.height) + "\" rx=\"" +
         detail::short_number(b.height / (cls == "card" ? 5 : 2)) + "\"" +
         (colour.empty() ? "" : " style=\"fill:" + colour + "\"") + "/><text x=\""
             + detail::short_number(b.x) +
         "\" y=\"" + detail::short_number(b.y + b.height / 2 + 4) + "\">" + html_text(shortened(text, 24)) +
         "</text></g>\n";
  };
  for (int v = 0; v < g.node_count(); ++v) {
    graph_node const& n = g.node(v);
    std::string title = op::spell(n.op);
    for (int x : n.out) title += " -> " + ir::spell(p.shapes[idx(x)]);
    drawn_node const& b = d.nodes[idx(v)];
    if (is_parallel(n.op)) {
      box(b, "pill", detail::parallel_colour(n.op), title, op::spell(n.op));
    } else {
      box(b, "card", "", title, detail::box_title(n.name, std::string(n.op.op->name)));
    }
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    graph_value const& x = g.value(sources[i]);
    box(d.nodes[idx(g.node_count()) + i], "input", "", x.name + " " + op::spell(x.type),
        x.name);
  }
  return r + "</svg>\n";
}

}  // namespace tensorpar::report
