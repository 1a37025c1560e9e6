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

/// Folds of a parallel computation graph: as those of its operators (page/folds.hpp), parallel operators with
/// those that they serve. O(nodes * period).
inline folding fold_parallel(ir::parallel_graph const& p) {
  std::map<std::string, int> number;
  std::vector<int> keys, places;
  for (int v = 0; v < p.graph.node_count(); ++v) {
    graph_node const& n = p.graph.node(v);
    std::string key = detail::without_seed(op::spell(n.op)) + "|" + std::to_string(n.block) + "|" +
                      devices_text(sharding_devices(p.meshes[idx(v)]));
    for (int x : n.in) key += "|" + ir::spell(p.shapes[idx(x)]);
    for (int y : n.out) key += ">" + ir::spell(p.shapes[idx(y)]);
    keys.push_back(number.insert({key, static_cast<int>(number.size())}).first->second);
    places.push_back(place_of(n));
  }
  return fold_alike(keys, places);
}

namespace detail {

/// "partition axis 0 / 8", "replicate / 8": short enough for a pill.
inline std::string pill_text(op::any_op const& op) {
  std::string r = op::spell(op);
  for (auto const& [from, to] :
       {std::pair{"{dim=", " axis "}, {"{degree=", " / "}, {",degree=", " / "}, {"}", ""}})
    if (std::size_t const at = r.find(from); at != r.npos) r.replace(at, std::string_view(from).size(), to);
  return r;
}
/// A card of an operator with the groups of its devices, a pill of a parallel one, or a pill of an input.
inline std::string parallel_box(drawn_node const& b, std::string const& cls, std::string const& colour,
                                std::string const& title, std::string const& text,
                                std::string const& inside = "") {
  return "<g class=\"" + cls + "\"><title>" + html_text(title) + "</title>" +
         rounded("", b.x - b.width / 2, b.y, b.width, b.height,
                 static_cast<int>(b.height) / (cls == "card" ? 5 : 2),
                 colour.empty() ? "" : " style=\"fill:" + colour + "\"") +
         svg_text("", b.x, b.y + (cls == "card" ? 19 : b.height / 2 + 4), shortened(text, 24)) + inside +
         "</g>\n";
}

}  // namespace detail

/// Operators as cards with the groups of their devices, parallel operators as coloured pills, inputs and
/// parameters as dashed ones. What repeats is drawn once, with the number of repetitions. Precondition:
/// `folds` is `fold_parallel` of the graph. O(layout).
inline std::string parallel_svg(ir::parallel_graph const& p, device_groups const& groups,
                                folding const& folds) {
  computation_graph const& g = p.graph;
  detail::shown_edges shown(folds, -1);
  std::vector<std::pair<double, double>> sizes;
  std::vector<int> nodes, sources, box_of(idx(g.node_count()), -1);
  for (int v = 0; v < g.node_count(); ++v)
    if (shown.shown(v) == v) {
      box_of[idx(v)] = static_cast<int>(nodes.size());
      nodes.push_back(v);
      sizes.push_back(is_parallel(g.node(v).op) ? std::pair{172.0, 24.0} : std::pair{170.0, 38.0});
    }
  std::map<int, int> source_of;
  for (int v = 0; v < g.node_count(); ++v)
    for (int x : g.node(v).in) {
      int const from = g.value(x).producer;
      if (from >= 0) {
        shown.add(shown.shown(from), from, v);
      } else if (shown.shown(v) == v) {  // weights of what is hidden are hidden, too
        auto const [it, fresh] = source_of.insert({x, g.node_count() + static_cast<int>(sources.size())});
        if (fresh) {
          sizes.push_back({std::min(180.0, 40 + 7.0 * static_cast<double>(g.value(x).name.size())), 24});
          sources.push_back(x);
        }
        shown.add(it->second, -1, v);
      }
    }
  auto const box = [&](int v) {
    return v < g.node_count() ? box_of[idx(v)] : static_cast<int>(nodes.size()) + v - g.node_count();
  };
  for (auto& [from, to] : shown.edges) from = box(from), to = box(to);
  drawing const d = draw_layered(sizes, shown.edges);
  std::string r = detail::svg_start("parallel", d, "parallel computation graph") + "<g class=\"edges\">\n";
  for (drawn_edge const& e : d.edges) r += detail::edge_path(e);
  r += "</g>\n";
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    graph_node const& n = g.node(nodes[i]);
    std::string title = op::spell(n.op);
    for (int x : n.out) title += " -> " + ir::spell(p.shapes[idx(x)]);
    drawn_node const& b = d.nodes[i];
    int const times = folds.times[idx(nodes[i])];
    std::string const many = times > 1 ? "  \xc3\x97 " + std::to_string(times) : "";
    if (is_parallel(n.op)) {
      r += detail::parallel_box(b, "pill", detail::parallel_colour(n.op), title,
                                detail::pill_text(n.op) + many);
      continue;
    }
    std::vector<int> const used = groups.among(sharding_devices(p.meshes[idx(nodes[i])]));
    std::string const name = detail::box_title(n.name, std::string(n.op.op->name));
    r += detail::parallel_box(
        b, "card", "", title, shortened(name, many.empty() ? 24 : 16) + many,
        detail::group_stripe(used, groups.size(), b.x - b.width / 2 + 10, b.y + 28, b.width - 20));
  }
  for (std::size_t i = 0; i < sources.size(); ++i) {
    graph_value const& x = g.value(sources[i]);
    r += detail::parallel_box(d.nodes[nodes.size() + i], "input", "", x.name + " " + op::spell(x.type),
                              x.name);
  }
  return r + "</svg>\n";
}

}  // namespace tensorpar::report
