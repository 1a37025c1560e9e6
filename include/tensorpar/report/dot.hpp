// tensorpar/report/dot.hpp - a computation graph for Graphviz, with how each operator is sharded
#pragma once
#include <set>
#include <tensorpar/core/index.hpp>
#include <tensorpar/ir/parallel_graph.hpp>
#include <tensorpar/report/summary.hpp>

namespace tensorpar::report {

namespace detail {
/// Inside double quotes of the DOT language: quotes and backslashes escaped, line ends and control characters
/// removed.
inline std::string dot_text(std::string const& s) {
  std::string r;
  for (char c : s) {
    if (c == '"' || c == '\\') r += '\\';
    r += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return r;
}
inline char const* device_colour(int d) {
  constexpr char const* c[] = {"#8ecae6", "#ffb703", "#90be6d", "#cdb4db",
                               "#f28482", "#84a98c", "#f5cac3", "#a8dadc"};
  return c[d % 8];
}
/// The colour of a parallel operator's kind.
inline char const* parallel_colour(op::any_op const& op) {
  if (op.is<parallel::partition>()) return "#2f6fde";
  if (op.is<parallel::combine>()) return "#8a55d7";
  if (op.is<parallel::reduce>()) return "#b9630f";
  return "#1f8a57";
}
}  // namespace detail

/// Operators as boxes, inputs as ellipses, edges labelled with shapes; parameters are left out, they follow
/// their operator. With a plan, forward operators say how they are sharded and are coloured by their first
/// device. One statement per line. O(nodes + edges).
inline std::string to_dot(computation_graph const& g, plan const* p = nullptr) {
  using detail::dot_text;
  std::string r =
      "digraph tensorpar {\n  rankdir=TB;\n  node [shape=box, style=\"rounded,filled\", fillcolor=white, "
      "fontname=\"Helvetica\", "
      "fontsize=11];\n"
      "  edge [fontname=\"Helvetica\", fontsize=9];\n";
  for (std::size_t x = 0; x < g.values.size(); ++x)
    if (g.values[x].role == value_role::input)
      r += "  v" + std::to_string(x) + " [shape=ellipse, label=\"" + detail::dot_text(g.values[x].name)
          + "\\n" + detail::dot_text(op::spell(g.values[x].type)) + "\"];\n";
  for (int v = 0; v < g.node_count(); ++v) {
    graph_node const& n = g.node(v);
    r += "  n" + std::to_string(v) + " [label=\"" + (n.name.empty() ? "" : detail::dot_text(n.name) + "\\n") +
         detail::dot_text(op_text(n.op));
    std::string colour;
    if (p && n.phase == step_phase::forward && idx(v) < p->nodes.size()) {
      ir::sharding const& s = p->nodes[idx(v)].sharding;
      std::vector<int> const d = sharding_devices(s);
      r += "\\n" + detail::dot_text(sharding_text(g, v, s)) + " @ " + devices_text(d);
      colour = std::string(", fillcolor=\"") + detail::device_colour(d.front()) + "\"";
    }
    r += "\"" + colour +
         (n.phase == step_phase::backward ? ", style=\"rounded,dashed\""
          : n.phase == step_phase::update ? ", style=\"rounded,dotted\""
                                          : "") +
         "];\n";
  }
  for (int v = 0; v < g.node_count(); ++v)
    for (int x : g.node(v).in) {
      graph_value const& y = g.value(x);
      if (y.role == value_role::parameter || y.role == value_role::state) continue;
      r += "  " + (y.producer < 0 ? "v" + std::to_string(x) : "n" + std::to_string(y.producer)) + " -> n" +
           std::to_string(v) + " [label=\"" + detail::dot_text(op::spell(y.type)) + "\"];\n";
    }
  return r + "}\n";
}

/// A parallel computation graph: parallel operators as coloured ellipses. One statement per line. O(nodes +
/// edges).
inline std::string to_dot(ir::parallel_graph const& p) {
  computation_graph const& g = p.graph;
  std::string r =
      "digraph tensorpar {\n  rankdir=TB;\n  node [shape=box, style=\"rounded,filled\", fillcolor=white, "
      "fontname=\"Helvetica\", fontsize=11];\n";
  auto const source = [&](int x) {
    int const from = g.value(x).producer;
    return from >= 0 ? "n" + std::to_string(from) : "v" + std::to_string(x);
  };
  std::set<int> known;
  for (int v = 0; v < g.node_count(); ++v) {
    graph_node const& n = g.node(v);
    std::string const id = "n" + std::to_string(v);
    if (is_parallel(n.op)) {
      r += "  " + id + " [label=\"" + detail::dot_text(op::spell(n.op)) +
           "\", shape=ellipse, fontcolor=white, fillcolor=\"" + detail::parallel_colour(n.op) + "\"];\n";
    } else {
      r += "  " + id + " [label=\"" + detail::dot_text(n.name + " " + op::spell(n.op)) + "\"];\n";
    }
    for (int x : n.in) {
      if (g.value(x).producer < 0 && known.insert(x).second)
        r += "  " + source(x) + " [label=\"" + detail::dot_text(g.value(x).name) +
             "\", shape=ellipse, style=dashed];\n";
      r += "  " + source(x) + " -> " + id + ";\n";
    }
  }
  return r + "}\n";
}

}  // namespace tensorpar::report
