// tensorpar/prover/rule_dot.hpp - rules as pictures: both sides side by side, for Graphviz
#pragma once
#include <tensorpar/core/index.hpp>
#include <tensorpar/op/kinds/parallel.hpp>
#include <tensorpar/rewrite/rule_text.hpp>

namespace tensorpar::prover {

/// A digraph with a cluster per side; a tensor variable stands in both under its name. O(size).
inline std::string to_dot(rewrite::rule const& r) {
  auto quoted = [](std::string_view s) {
    std::string q = "\"";
    for (char c : s) {
      if (c == '"' || c == '\\') q += '\\';
      q += c;
    }
    return q + "\"";
  };
  std::string s = "digraph {\n  rankdir=TB; node [fontname=\"sans-serif\"]; label=" + quoted(r.name) + ";\n";
  for (rewrite::pattern_graph const* g : {&r.source, &r.target}) {
    bool const source = g == &r.source;
    std::string const p = source ? "s" : "t";
    auto id = [&](rewrite::pattern_value v) {
      return v.node < 0 ? p + "x" + std::to_string(v.slot) : p + std::to_string(v.node);
    };
    s += "  subgraph cluster_" + p + " {\n    label=" + std::string(source ? "\"source\"" : "\"target\"") +
         ";\n";
    rewrite::detail::mentions const used = rewrite::detail::mentioned(r, *g);
    for (std::size_t x = 0; x < r.tensors.size(); ++x)
      if (used.tensors[x])
        s += "    " + p + "x" + std::to_string(x) + " [shape=plaintext, label=" + quoted(r.tensors[x]) +
             "];\n";
    for (std::size_t v = 0; v < g->nodes.size(); ++v) {
      rewrite::pattern_node const& n = g->nodes[v];
      std::string label = n.op ? std::string(n.op->name)
                               : r.parameters[idx(n.function)].name,
                  attributes;
      bool const shardings = n.op && is_parallel(*n.op);
      for (std::size_t i = 0; i < n.attr.size(); ++i)
        if (!n.attr[i].open)
          attributes +=
              (attributes.empty() ? "" : ", ") +
              rewrite::detail::spell_term(r, n.attr[i], n.op->attr_kind(static_cast<int>(i)) == 'f');
      if (!attributes.empty()) label += " (" + attributes + ")";
      s += "    " + p + std::to_string(v) +
           " [shape=box, style=filled, fillcolor=" + (shardings ? "\"#ffe0b0\"" : "\"#d8f0d8\"") +
           ", label=" + quoted(label) + "];\n";
    }
    for (std::size_t v = 0; v < g->nodes.size(); ++v)
      for (std::size_t k = 0; k < g->nodes[v].in.size(); ++k)
        s += "    " + id(g->nodes[v].in[k]) + " -> " + p + std::to_string(v) + ";\n";
    for (std::size_t k = 0; k < g->outputs.size(); ++k) {
      std::string const out = p + "y" + std::to_string(k);
      s += "    " + out + " [shape=plaintext, label=\"out" +
           (g->outputs.size() > 1 ? std::to_string(k) : "") + "\"];\n    " + id(g->outputs[k]) + " -> " +
           out + ";\n";
    }
    s += "  }\n";
  }
  return s + "}\n";
}

}  // namespace tensorpar::prover
